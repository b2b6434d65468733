from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pipeline.streaming import ReleaseOn, StreamingEdgeSpec
from pipeline.streaming.plan import LanePlan
from pipeline.streaming.slots import Lane

FREE, RESERVED, OCCUPIED, HELD = "free", "reserved", "occupied", "held"


class LaneMachine(RuleBasedStateMachine):
    """Beside the counters of a lane: a list of places, each with its state and sequence."""

    @initialize(capacity=st.integers(1, 3), on_admit=st.booleans())
    def build(self, capacity: int, on_admit: bool) -> None:
        release = ReleaseOn.ADMIT if on_admit else ReleaseOn.COMPLETE
        edge = StreamingEdgeSpec("a", capacity=capacity, release_on=release)
        self.lane = Lane(LanePlan(0, edge, None, 0))
        self.capacity, self.on_admit = capacity, on_admit
        self.places: list[list[object]] = []  # [state, sequence, value], oldest first
        self.next = 0  # sequence of the next place

    def in_state(self, state: str) -> list[list[object]]:
        return [place for place in self.places if place[0] == state]

    @rule(ahead=st.integers(0, 4))
    def reserve(self, ahead: int) -> None:
        sequence = max(0, self.next - 2) + ahead
        fits = len(self.places) + max(0, sequence + 1 - self.next) <= self.capacity
        assert self.lane.accepts(sequence) is fits
        if fits:
            self.lane.reserve(sequence)
            while self.next <= sequence:
                self.places.append([RESERVED, self.next, None])
                self.next += 1

    @precondition(lambda self: self.in_state(RESERVED))
    @rule(value=st.integers())
    def fill(self, value: int) -> None:
        place = self.in_state(RESERVED)[0]
        place[0], place[2] = OCCUPIED, value
        self.lane.fill(value)

    @precondition(lambda self: self.in_state(OCCUPIED))
    @rule()
    def hold(self) -> None:
        place = self.in_state(OCCUPIED)[0]
        assert self.lane.hold() == place[2], "values pass in order"
        place[0] = HELD
        if self.on_admit:
            self.places.remove(place)

    @precondition(lambda self: self.in_state(HELD))
    @rule()
    def free(self) -> None:
        self.places.remove(self.in_state(HELD)[0])
        self.lane.free()

    @rule()
    def fence(self) -> None:
        self.lane.fence()
        self.places = self.in_state(HELD)
        self.next = self.lane.reserved  # what was dropped comes again, from the same sequence
        if not self.places:
            self.lane.restart()
            self.next = 0

    @invariant()
    def every_place_is_in_one_state(self) -> None:
        if not hasattr(self, "lane"):
            return
        lane = self.lane
        assert lane.used == len(self.places) <= self.capacity
        assert lane.held - lane.freed == len(self.in_state(HELD))
        assert lane.filled - lane.held == len(self.in_state(OCCUPIED)) == len(lane.values)
        assert lane.reserved - lane.filled == len(self.in_state(RESERVED))


TestLane = LaneMachine.TestCase
TestLane.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
