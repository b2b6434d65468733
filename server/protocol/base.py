"""What all wire models share. pydantic lives at the wire and in `server/settings.py` only."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer

PROTOCOL_VERSION = 1
MAX_MESSAGE_BYTES = 8192  # of one control message


class WireModel(BaseModel):
    """Frozen, closed, and without NaN or infinity."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, ser_json_inf_nan="constants"
    )


def _u64_from_text(value: object) -> object:
    """Read a decimal string (JSON numbers lose digits beyond 2**53)."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 20:
        return int(value)
    if isinstance(value, str):
        raise ValueError("a decimal string is expected")
    return value


Uint32 = Annotated[int, Field(ge=0, lt=2**32)]
Count = Annotated[int, Field(ge=0, lt=2**31)]
Uint64 = Annotated[
    int,
    BeforeValidator(_u64_from_text, json_schema_input_type=str),
    PlainSerializer(str, return_type=str, when_used="json"),
    Field(ge=0, lt=2**64),
]
KeyCode = Annotated[str, Field(min_length=1, max_length=24, pattern=r"^[A-Za-z0-9]+$")]
Axis = Annotated[float, Field(ge=-1, le=1)]
