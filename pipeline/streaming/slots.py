"""The bounded place of one artifact on its way to one consumer, in one session."""

from __future__ import annotations

from collections import deque

from pipeline.streaming.plan import LanePlan


class Lane:
    """Slots of one edge. Sequences pass in order, so four counters say what every slot is.

    A slot of sequence s is free again when s < freed, held by a running consumer when
    freed ≤ s < held, occupied when held ≤ s < filled, reserved when filled ≤ s < reserved.
    Always freed ≤ held ≤ filled ≤ reserved ≤ freed + capacity.
    """

    __slots__ = (
        "artifact",
        "capacity",
        "filled",
        "freed",
        "frees_on_admit",
        "held",
        "pieces",
        "plan",
        "reserved",
        "values",
    )

    def __init__(self, plan: LanePlan) -> None:
        self.plan = plan
        self.artifact = plan.edge.artifact
        self.capacity = plan.edge.capacity
        self.frees_on_admit = plan.frees_on_admit
        self.freed = self.held = self.filled = self.reserved = 0
        self.values: deque[object] = deque()  # of occupied slots; what leaves is in the outbox
        self.pieces: list[object] = []  # of the sequence that is being produced

    @property
    def used(self) -> int:
        """Slots that are not free."""
        return self.reserved - self.freed

    def accepts(self, sequence: int) -> bool:
        """Whether every slot up to that of `sequence` is reserved or could be."""
        return sequence < self.reserved or sequence - self.freed < self.capacity

    def reserve(self, sequence: int) -> None:
        """Free → reserved, up to and including `sequence`. Ask `accepts` first."""
        if sequence >= self.reserved:
            self.reserved = sequence + 1

    def fill(self, value: object) -> None:
        """Reserved → occupied: the next sequence is in."""
        self.values.append(value)
        self.filled += 1

    def fill_outside(self) -> None:
        """Reserved → occupied, where the value waits in the outbox."""
        self.filled += 1

    def hold(self) -> object:
        """Occupied → held, or → free: hands over the only reference to the value."""
        self.held += 1
        if self.frees_on_admit:
            self.freed += 1
        return self.values.popleft()

    def free(self) -> None:
        """Held → free."""
        self.freed += 1

    def taken(self) -> None:
        """Occupied → free: what was in the outbox has been taken."""
        self.held += 1
        self.freed += 1

    def fence(self) -> None:
        """Drop all that no running consumer holds."""
        self.values.clear()
        self.pieces.clear()
        self.filled = self.reserved = self.held

    def restart(self) -> None:
        """Count from sequence 0 again; only when nothing is used."""
        self.freed = self.held = self.filled = self.reserved = 0
