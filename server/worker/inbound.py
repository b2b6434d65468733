"""What players send, from bytes to values: a message of the protocol, or a refusal in words."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import TypeAdapter, ValidationError

from server.protocol.base import MAX_MESSAGE_BYTES
from server.protocol.command import COMMAND, Command
from server.protocol.keys import Keys
from server.transports.base import Topic

KEYS: TypeAdapter[Keys] = TypeAdapter(Keys)


@dataclass(frozen=True)
class Refusal:
    """Something a player sent changes nothing: a stable code, and one sentence."""

    code: str
    message: str


def parse(topic: Topic, payload: bytes) -> Keys | Command | Refusal:
    """The message in `payload`; never raises, whatever the bytes are."""
    if len(payload) > MAX_MESSAGE_BYTES:
        return Refusal("message_too_large", f"a message has at most {MAX_MESSAGE_BYTES} bytes")
    adapter: TypeAdapter[Keys] | TypeAdapter[Command]
    if topic is Topic.KEYS:
        adapter = KEYS
    elif topic is Topic.COMMAND:
        adapter = COMMAND
    else:
        return Refusal("unknown_topic", "nothing listens on this data channel")
    try:
        return adapter.validate_json(payload)
    except ValidationError as fault:
        return Refusal("bad_message", _in_words(fault))


def _in_words(fault: ValidationError) -> str:
    """The first thing that is wrong, without repeating what was sent."""
    first = fault.errors(include_url=False, include_input=False, include_context=False)[0]
    place = ".".join(str(part) for part in first["loc"])[:80]
    return f"{place}: {first['msg']}"[:200] if place else first["msg"][:200]
