"""What a player may send: size and rate limits, and how refusals are told. Pure.

A message that is too large or too many is counted and dropped. Its sender is told, at most once a
second for each kind, with how many were alike.
"""

from __future__ import annotations

from collections import Counter

from server.protocol.base import MAX_MESSAGE_BYTES
from server.protocol.status import Error
from server.transports.base import Topic

PER_SECOND = {Topic.KEYS: 240.0, Topic.COMMAND: 40.0}
TELL_EVERY_SECONDS = 1.0
_WORDS = {
    "message_too_large": f"a message has more than {MAX_MESSAGE_BYTES} bytes",
    "too_many_messages": "messages come faster than they may; the surplus is dropped",
    "unknown_topic": "nothing listens on this data channel",
}


class Gate:
    """The gate of one connection: a token bucket per topic, filled once a second's worth."""

    def __init__(self, now: float) -> None:
        self._tokens = dict(PER_SECOND)
        self._filled = dict.fromkeys(PER_SECOND, now)
        self._untold: Counter[str] = Counter()
        self._told_at: dict[str, float] = {}
        self.dropped: Counter[str] = Counter()

    def admits(self, topic: Topic | None, size: int, now: float) -> bool:
        """Whether a message of `size` bytes may pass; a refusal is counted."""
        if topic is None or topic not in PER_SECOND:
            return self._refuse("unknown_topic")
        if size > MAX_MESSAGE_BYTES:
            return self._refuse("message_too_large")
        rate = PER_SECOND[topic]
        tokens = min(rate, self._tokens[topic] + (now - self._filled[topic]) * rate)
        self._filled[topic] = now
        self._tokens[topic] = tokens - 1 if tokens >= 1 else tokens
        return tokens >= 1 or self._refuse("too_many_messages")

    def refusals(self, now: float) -> list[Error]:
        """What to tell the sender now; empty where nothing is due."""
        due = [
            code
            for code in self._untold
            if now - self._told_at.get(code, -TELL_EVERY_SECONDS) >= TELL_EVERY_SECONDS
        ]
        errors = [Error(code=code, message=_WORDS[code], count=self._untold[code]) for code in due]
        for code in due:
            self._told_at[code] = now
            del self._untold[code]
        return errors

    def _refuse(self, code: str) -> bool:
        self._untold[code] += 1
        self.dropped[code] += 1
        return False
