"""A bad network for tests: loses, doubles and reorders messages by a script, never by luck.

Pure: `Impaired` is told of each message and says what arrives now.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum


class Fate(StrEnum):
    """What happens to one message on its way."""

    DELIVER = "deliver"
    LOSE = "lose"
    DUPLICATE = "duplicate"
    DELAY = "delay"  # it arrives behind the next message that is not delayed


@dataclass(frozen=True)
class Impairment:
    """Fates of the messages of one topic; the same settings give the same fates.

    `script` comes first, then chances drawn from `seed`. A script without chances is followed by
    plain delivery.
    """

    script: tuple[Fate, ...] = ()
    seed: int = 0
    loss: float = 0.0
    duplicate: float = 0.0
    delay: float = 0.0

    def __post_init__(self) -> None:
        """Refuse chances that are none."""
        chances = (self.loss, self.duplicate, self.delay)
        if min(chances) < 0 or sum(chances) > 1:
            raise ValueError("loss, duplicate and delay are chances; together at most 1")

    def fates(self) -> Iterator[Fate]:
        """The fate of each message in turn, without end."""
        yield from self.script
        luck = random.Random(self.seed)
        kinds = (Fate.LOSE, Fate.DUPLICATE, Fate.DELAY, Fate.DELIVER)
        weights = (self.loss, self.duplicate, self.delay)
        while True:
            yield luck.choices(kinds, (*weights, max(0.0, 1 - sum(weights))))[0]


class Impaired:
    """One direction of one connection under an `Impairment` (None: nothing happens to it)."""

    def __init__(self, impairment: Impairment | None) -> None:
        self._fates = impairment.fates() if impairment else None
        self._delayed: list[bytes] = []

    def arriving(self, payload: bytes) -> tuple[bytes, ...]:
        """What arrives, in order, when `payload` is sent."""
        if self._fates is None:
            return (payload,)
        fate = next(self._fates)
        if fate is Fate.LOSE:
            return ()
        if fate is Fate.DELAY and len(self._delayed) < 16:
            self._delayed.append(payload)
            return ()
        late, self._delayed = self._delayed, []
        return (payload, *((payload,) if fate is Fate.DUPLICATE else ()), *late)
