"""Topic `veldt.command`: reliable, each acknowledged by `ack` with the same id, or by `error`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from server.protocol.base import Uint32, WireModel

CommandId = Annotated[str, Field(min_length=1, max_length=64)]


class Hello(WireModel):
    """First of a connection, repeated until acknowledged; only then controls count."""

    type: Literal["hello"]
    id: CommandId
    nonce: Uint32 = Field(gt=0)  # random per connection; the upper half of its receipts
    version: int = Field(ge=1, le=1000)


class Reset(WireModel):
    """Begin again from the session's start; bumps the epoch."""

    type: Literal["reset"]
    id: CommandId


class Pause(WireModel):
    """Stop generating; the last frame stands."""

    type: Literal["pause"]
    id: CommandId


class Resume(WireModel):
    """Go on after `pause`."""

    type: Literal["resume"]
    id: CommandId


class Prompt(WireModel):
    """Change the prompt, from the next chunk on. Worlds without prompts refuse it."""

    type: Literal["prompt"]
    id: CommandId
    text: str = Field(max_length=4000)


class Stop(WireModel):
    """End the session."""

    type: Literal["stop"]
    id: CommandId


class Grant(WireModel):
    """Hand the controls to a spectator."""

    type: Literal["grant"]
    id: CommandId
    to: str = Field(min_length=1, max_length=128)


Command = Annotated[
    Hello | Reset | Pause | Resume | Prompt | Stop | Grant, Field(discriminator="type")
]
COMMAND: TypeAdapter[Command] = TypeAdapter(Command)
