"""A player's prompt as the text encoder was trained to read it. SPEC §5."""

from __future__ import annotations

import html
import re
import unicodedata
from itertools import chain

from pipeline.lingbot.errors import BadPrompt

MAX_PROMPT_CHARACTERS = 8_000  # 512 tokens are some 2,500 characters of English

_COMPATIBLE = chain(
    (0x132, 0x133, 0x149, 0x3000),
    range(0x1C4, 0x1CD),
    range(0x1F1, 0x1F4),
    range(0xFB00, 0xFB07),
    range(0xFF01, 0xFFF0),
)
_CONTROL = chain(
    range(0x09),
    (0x0B, 0x7F, 0xFEFF),
    range(0x0E, 0x20),
    range(0x206A, 0x2070),
    range(0xFFF9, 0xFFFD),
)
_PLAIN: dict[int, str | None] = {
    **{code: unicodedata.normalize("NFKC", chr(code)) for code in _COMPATIBLE},
    0xFB05: "\u017ft",  # a long s stays one
    **dict.fromkeys(_CONTROL),
    **dict.fromkeys((0x2BC, *range(0x2018, 0x201C)), "'"),
    **dict.fromkeys(range(0x201C, 0x2020), '"'),
}
_TERMINAL_ESCAPE = re.compile(r"\x1b\[(?:[0-9;]*)[a-zA-Z]")


def clean_prompt(text: str) -> str:
    r"""What the reference makes of a prompt before it is tokenised.

    The reference uses ftfy, then unescapes HTML twice and collapses white space. ftfy's steps are
    taken here (quotes, ligatures, full-width forms, control characters, broken surrogates, NFC),
    except its guess at text that was decoded wrongly ("Ã©").

    >>> clean_prompt("  a  “red&amp;amp;blue”\n ﬁeld ")
    'a "red&blue" field'

    Raises:
        BadPrompt: it is longer than MAX_PROMPT_CHARACTERS.
    """
    if len(text) > MAX_PROMPT_CHARACTERS:
        raise BadPrompt(
            f"The prompt has {len(text)} characters, at most {MAX_PROMPT_CHARACTERS} are allowed"
        )
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if "<" not in text:
        text = html.unescape(text)
    text = _TERMINAL_ESCAPE.sub("", text).translate(_PLAIN)
    text = unicodedata.normalize("NFC", text)
    return " ".join(html.unescape(html.unescape(text)).split())
