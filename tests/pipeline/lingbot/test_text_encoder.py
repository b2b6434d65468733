from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast, UMT5EncoderModel

from pipeline.lingbot.errors import BadPrompt, BadWeights
from pipeline.lingbot.prompt import MAX_PROMPT_CHARACTERS, clean_prompt
from pipeline.lingbot.text_encoder import (
    build_umt5,
    encode_prompt,
    load_tokenizer,
    published_key,
    tokenize,
)
from tests.pipeline.lingbot.reference import close, fixture, umt5_config

F = fixture("umt5_tiny")
WORDS = ["the", "gate", "of", "a", "grey", "castle", "at", "dusk", '"', "é"]


def encoder() -> UMT5EncoderModel:
    model = build_umt5(umt5_config(F.about))
    state = {name: F[f"w.{published_key(name)}"] for name in model.state_dict()}
    model.load_state_dict(state)
    return model


def test_every_position_of_a_padded_batch_equals_the_reference() -> None:
    out = encoder()(input_ids=F["ids"], attention_mask=F["mask"]).last_hidden_state
    close(out, F["out"])


def test_a_prompt_alone_gives_the_rows_that_the_padded_batch_gave() -> None:
    model = encoder()
    for ids, length, out in zip(F["ids"], F["seq_lens"].tolist(), F["out"], strict=True):
        close(encode_prompt(model, ids[:length]), out[:length])


def test_position_buckets_equal_the_reference() -> None:
    attention = encoder().encoder.block[0].layer[0].SelfAttention
    n = len(F["buckets_row0"])
    positions = torch.arange(n)
    for row in (0, n - 1):
        buckets = attention._relative_position_bucket(positions - row)
        assert torch.equal(buckets, F[f"buckets_row{row}"])


@pytest.fixture(scope="module")
def tokenizer_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A word tokenizer with UMT5's special tokens, saved as transformers saves it."""
    vocab = {token: i for i, token in enumerate(["<pad>", "</s>", "<unk>", *WORDS])}
    built = Tokenizer(models.WordLevel(vocab, unk_token="<unk>"))
    built.normalizer = normalizers.Lowercase()
    built.pre_tokenizer = pre_tokenizers.Whitespace()
    built.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", 1)]
    )
    directory = tmp_path_factory.mktemp("tokenizer")
    PreTrainedTokenizerFast(
        tokenizer_object=built, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    ).save_pretrained(directory)
    return directory


@pytest.fixture(scope="module")
def tokenizer(tokenizer_directory: Path) -> PreTrainedTokenizerBase:
    return load_tokenizer(tokenizer_directory)


def test_a_prompt_is_cleaned_tokenised_ended_and_encoded(
    tokenizer: PreTrainedTokenizerBase,
) -> None:
    ids = tokenize(tokenizer, "  The GREY\n castle   at dusk ")
    assert ids.tolist() == [3, 7, 8, 9, 10, 1]
    assert encode_prompt(encoder(), ids).shape == (6, umt5_config(F.about).dim)


def test_an_empty_prompt_is_the_end_token(tokenizer: PreTrainedTokenizerBase) -> None:
    assert tokenize(tokenizer, " \n ").tolist() == [1]


def test_a_long_prompt_is_cut_with_its_end_token_last(tokenizer: PreTrainedTokenizerBase) -> None:
    ids = tokenize(tokenizer, "castle " * 1000)
    assert len(ids) == 512
    assert ids[-1] == 1


def test_a_prompt_of_100_000_characters_is_refused(tokenizer: PreTrainedTokenizerBase) -> None:
    with pytest.raises(BadPrompt, match=f"100000 characters, at most {MAX_PROMPT_CHARACTERS}"):
        tokenize(tokenizer, "a" * 100_000)


@pytest.mark.parametrize("text", ["\ud800", "castle \udfff", "\x00\x07", "\U000e0001", "\ufffe"])
def test_strange_characters_are_harmless(text: str, tokenizer: PreTrainedTokenizerBase) -> None:
    assert tokenize(tokenizer, text)[-1] == 1


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("a\t b\n\n c", "a b c"),
        ("\u2018a\u2019 \u201cb\u201d", "'a' \"b\""),
        ("x &amp;lt; y", "x < y"),
        ("<b> &amp;amp; c", "<b> & c"),
        ("e\u0301t\u00e9", "\u00e9t\u00e9"),
        ("\uff21\uff22\u3000\uff11", "AB 1"),
        ("e\ufb03cient", "efficient"),
        ("\x1b[31mred\x1b[0m \ufeffsun\x07", "red sun"),
        ("\ud83d\ude00 \ud83d", "\U0001f600 \ufffd"),
    ],
)
def test_prompts_are_cleaned_as_the_reference_cleans_them(text: str, clean: str) -> None:
    assert clean_prompt(text) == clean


def test_a_directory_without_a_tokenizer_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadWeights, match="no usable tokenizer"):
        load_tokenizer(tmp_path)
    with pytest.raises(BadWeights, match="no usable tokenizer"):
        load_tokenizer(tmp_path / "absent")
    (tmp_path / "tokenizer.json").write_text("version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(BadWeights, match="no usable tokenizer"):
        load_tokenizer(tmp_path)


def test_another_tokenizer_is_refused(tmp_path: Path) -> None:
    built = Tokenizer(models.WordLevel({"a": 0, "<pad>": 1, "</s>": 2}, unk_token="a"))
    other = PreTrainedTokenizerFast(tokenizer_object=built, pad_token="<pad>", eos_token="</s>")
    other.save_pretrained(tmp_path)
    with pytest.raises(BadWeights, match="not UMT5's tokenizer"):
        load_tokenizer(tmp_path)
