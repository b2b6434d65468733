"""The wire models as one JSON Schema document, from which the page's types are generated.

`python -m server.protocol.schema` writes `web_client/src/protocol/schema.json`; `--check` only
says whether the committed file is still the same. What the page sends is described as the server
reads it (a field with a default may be left out), what the page receives as the server writes it
(every field is there).
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from admission.session import END_STATE, TERMINAL, TRANSITIONS, EndReason, State, target_of
from server.protocol.base import MAX_MESSAGE_BYTES, PROTOCOL_VERSION
from server.protocol.command import COMMAND
from server.protocol.http import (
    SESSION_EVENT,
    Connect,
    Connection,
    Created,
    CreateSession,
    Problem,
    Readiness,
    SessionView,
    SpectatorLink,
    Worlds,
)
from server.protocol.keys import Keys
from server.protocol.status import STATUS

SCHEMA_FILE: Final = (
    Path(__file__).resolve().parents[2] / "web_client" / "src" / "protocol" / "schema.json"
)
Mode = Literal["validation", "serialization"]

# One row for each message or body that crosses the wire: its name in TypeScript, who reads it.
ROOTS: Final[tuple[tuple[str, Mode, TypeAdapter[Any]], ...]] = (
    ("Keys", "validation", TypeAdapter(Keys)),
    ("Command", "validation", COMMAND),
    ("CreateSession", "validation", TypeAdapter(CreateSession)),
    ("Connect", "validation", TypeAdapter(Connect)),
    ("StatusMessage", "serialization", STATUS),
    ("SessionEvent", "serialization", SESSION_EVENT),
    ("Created", "serialization", TypeAdapter(Created)),
    ("SessionView", "serialization", TypeAdapter(SessionView)),
    ("Connection", "serialization", TypeAdapter(Connection)),
    ("SpectatorLink", "serialization", TypeAdapter(SpectatorLink)),
    ("Worlds", "serialization", TypeAdapter(Worlds)),
    ("Problem", "serialization", TypeAdapter(Problem)),
    ("Readiness", "serialization", TypeAdapter(Readiness)),
)


class _WireSchema(GenerateJsonSchema):
    """What the server writes has every field; a default is what the page fills in where not."""

    def field_is_required(self, field: Any, total: bool) -> bool:
        return self.mode == "serialization" or super().field_is_required(field, total)


def schema() -> dict[str, Any]:
    """Every root and whatever it refers to, under `$defs`, sorted by name."""
    keyed, document = TypeAdapter.json_schemas(
        [(name, mode, adapter) for name, mode, adapter in ROOTS], schema_generator=_WireSchema
    )
    definitions: dict[str, Any] = dict(document.get("$defs", {}))
    for (name, _), root in keyed.items():
        definitions.setdefault(name, root)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Protocol",
        "description": "Written by `python -m server.protocol.schema`; do not edit.",
        "x-protocol-version": PROTOCOL_VERSION,
        "x-max-message-bytes": MAX_MESSAGE_BYTES,
        "x-terminal-states": sorted(state.value for state in State if state in TERMINAL),
        "x-moves": _moves(),
        "x-end-states": {reason.value: state.value for reason, state in END_STATE.items()},
        "$defs": {name: _plain(definitions[name]) for name in sorted(definitions)},
    }


def _moves() -> dict[str, list[str]]:
    """Where a session can go from each state: the server's own table, as the page mirrors it."""
    moves: dict[str, set[str]] = {state.value: set() for state in State}
    for state, cause in TRANSITIONS:
        for reason in EndReason:
            for held in (False, True):
                target = target_of(state, cause, reason=reason, held=held)
                if target is not state:
                    moves[state.value].add(target.value)
    return {state: sorted(targets) for state, targets in moves.items()}


def _plain(node: Any) -> Any:
    """Without titles, which would make a named type of every field; u64 as decimal text."""
    if isinstance(node, list):
        return [_plain(item) for item in node]
    if not isinstance(node, dict):
        return node
    if node.get("type") == "string" and node.get("lt") == 2**64:
        return {"type": "string", "pattern": "^[0-9]{1,20}$"}
    return {
        key: _plain(value)
        for key, value in node.items()
        if not (key == "title" and isinstance(value, str))
    }


def rendered() -> str:
    """The document as it is committed."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def main() -> int:
    """Write the schema, or with `--check` compare it with what is committed."""
    parser = argparse.ArgumentParser(description="JSON Schema of the wire models")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    options = parser.parse_args()
    if options.check:
        same = SCHEMA_FILE.exists() and SCHEMA_FILE.read_text(encoding="utf-8") == rendered()
        if not same:
            print("the wire models have changed: run 'make types' and commit what it writes")
        return 0 if same else 1
    SCHEMA_FILE.parent.mkdir(parents=True, exist_ok=True)
    SCHEMA_FILE.write_text(rendered(), encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
