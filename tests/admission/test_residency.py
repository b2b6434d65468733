"""Seats: who gets one, and that every one comes back."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from admission.residency import (
    Admitted,
    DuplicateSession,
    DuplicateWorker,
    Occupancy,
    Refused,
    ResidentAdmission,
    SeatFreed,
    SeatLost,
    SeatQuarantined,
    UnknownWorker,
    WorkerEmptied,
)


def admission(**seats: int) -> ResidentAdmission:
    made = ResidentAdmission()
    for worker, count in seats.items():
        assert made.add_worker(worker, count) == []
    return made


def refusal(answer: object) -> str:
    assert isinstance(answer, Refused)
    assert answer.retry_after > 0
    return answer.reason


def test_without_a_worker_nobody_is_admitted():
    assert refusal(ResidentAdmission().request("a")) == "no_worker"


def test_the_least_occupied_worker_by_share_takes_the_next_session():
    seats = admission(small=1, large=4)
    assert [seats.request(s) for s in "abcde"] == [
        Admitted("large"),  # both empty: by name
        Admitted("small"),
        Admitted("large"),
        Admitted("large"),
        Admitted("large"),
    ]
    assert refusal(seats.request("f")) == "full"


def test_a_seat_is_free_when_it_is_released_and_not_before():
    seats = admission(w=1)
    seats.request("a")
    assert refusal(seats.request("b")) == "full"
    assert seats.release("a") == [SeatFreed("a", "w")]
    assert seats.release("a") == []
    assert seats.request("b") == Admitted("w")


def test_a_session_has_one_seat():
    seats = admission(w=2)
    seats.request("a")
    with pytest.raises(DuplicateSession):
        seats.request("a")
    assert seats.occupancy() == Occupancy(free=1, resident=1, quarantined=0)


def test_a_failed_release_keeps_the_seat_and_counts():
    seats = admission(w=1)
    seats.request("a")
    assert seats.quarantine("a") == [SeatQuarantined("a", "w", 1)]
    assert seats.quarantine("a") == [SeatQuarantined("a", "w", 2)]
    assert refusal(seats.request("b")) == "full"
    assert seats.occupancy() == Occupancy(free=0, resident=0, quarantined=1)
    assert seats.release("a") == [SeatFreed("a", "w")]
    assert seats.occupancy() == Occupancy(free=1, resident=0, quarantined=0)
    assert seats.quarantine("a") == []


def test_a_draining_worker_admits_nobody_and_says_when_it_is_empty():
    seats = admission(v=1, w=2)
    assert seats.request("a") == Admitted("v")
    assert seats.drain_worker("v") == []
    assert seats.drain_worker("v") == []
    assert [seats.request(s) for s in "bc"] == [Admitted("w"), Admitted("w")]
    assert refusal(seats.request("d")) == "full"
    assert seats.release("a") == [SeatFreed("a", "v"), WorkerEmptied("v")]
    assert refusal(seats.request("d")) == "full"
    assert admission(idle=1).drain_worker("idle") == [WorkerEmptied("idle")]


def test_a_worker_takes_its_sessions_with_it():
    seats = admission(v=2, w=1)
    for session in "abc":
        seats.request(session)
    seats.quarantine("c")
    assert seats.remove_worker("v") == [SeatLost("a", "v"), SeatLost("c", "v")]
    assert seats.release("a") == []
    assert (seats.worker_of("a"), seats.worker_of("b")) == (None, "w")
    assert seats.occupancy() == Occupancy(free=0, resident=1, quarantined=0)
    assert seats.add_worker("v", 1) == []
    assert seats.request("a") == Admitted("v")


def test_cancelling_is_releasing_before_anything_was_built():
    seats = admission(w=1)
    seats.request("a")
    assert seats.cancel("a") == [SeatFreed("a", "w")]
    assert seats.cancel("a") == []


def test_workers_are_known_once():
    seats = admission(w=1)
    with pytest.raises(DuplicateWorker):
        seats.add_worker("w", 1)
    with pytest.raises(ValueError, match="at least one seat"):
        seats.add_worker("v", 0)
    for call in (seats.remove_worker, seats.drain_worker, seats.occupancy):
        with pytest.raises(UnknownWorker):
            call("nobody")


class SeatMachine(RuleBasedStateMachine):
    """The model: where each session sits, and which seats are quarantined."""

    def __init__(self) -> None:
        super().__init__()
        self.seats = ResidentAdmission()
        self.capacity: dict[str, int] = {}
        self.draining: set[str] = set()
        self.sits: dict[str, str] = {}
        self.bad: set[str] = set()

    sessions = st.sampled_from("abcdef")
    workers = st.sampled_from(["u", "v", "w"])

    @rule(worker=workers, count=st.integers(1, 3))
    def add(self, worker: str, count: int) -> None:
        if worker in self.capacity:
            with pytest.raises(DuplicateWorker):
                self.seats.add_worker(worker, count)
        else:
            self.seats.add_worker(worker, count)
            self.capacity[worker] = count

    @rule(worker=workers)
    def remove(self, worker: str) -> None:
        if worker not in self.capacity:
            with pytest.raises(UnknownWorker):
                self.seats.remove_worker(worker)
            return
        there = sorted(s for s, w in self.sits.items() if w == worker)
        assert self.seats.remove_worker(worker) == [SeatLost(s, worker) for s in there]
        del self.capacity[worker]
        self.draining.discard(worker)
        for session in there:
            del self.sits[session]
            self.bad.discard(session)

    @rule(worker=workers)
    def drain(self, worker: str) -> None:
        if worker in self.capacity:
            newly_empty = worker not in self.draining and not self._load(worker)
            events = self.seats.drain_worker(worker)
            assert events == ([WorkerEmptied(worker)] if newly_empty else [])
            self.draining.add(worker)

    @rule(session=sessions)
    def request(self, session: str) -> None:
        if session in self.sits:
            with pytest.raises(DuplicateSession):
                self.seats.request(session)
            return
        answer = self.seats.request(session)
        admitting = self.capacity.keys() - self.draining
        room = {w for w in admitting if self._load(w) < self.capacity[w]}
        if isinstance(answer, Admitted):
            share = {w: self._load(w) / self.capacity[w] for w in room}
            assert answer.worker in room
            assert share[answer.worker] == min(share.values())
            self.sits[session] = answer.worker
        else:
            assert not room
            assert refusal(answer) == ("full" if admitting else "no_worker")

    @rule(session=sessions)
    def release(self, session: str) -> None:
        events = self.seats.release(session)
        worker = self.sits.pop(session, None)
        self.bad.discard(session)
        expected: list[object] = [] if worker is None else [SeatFreed(session, worker)]
        if worker in self.draining and not self._load(worker):
            expected.append(WorkerEmptied(worker))
        assert events == expected

    @rule(session=sessions)
    def quarantine(self, session: str) -> None:
        events = self.seats.quarantine(session)
        assert bool(events) == (session in self.sits)
        if session in self.sits:
            self.bad.add(session)

    @invariant()
    def every_seat_is_accounted_for(self) -> None:
        total = self.seats.occupancy()
        assert total.free + total.resident + total.quarantined == sum(self.capacity.values())
        assert (total.resident, total.quarantined) == (
            len(self.sits) - len(self.bad),
            len(self.bad),
        )
        for worker, capacity in self.capacity.items():
            own = self.seats.occupancy(worker)
            assert own.capacity == capacity
            assert 0 <= own.free == capacity - self._load(worker)
        for session in "abcdef":
            assert self.seats.worker_of(session) == self.sits.get(session)

    def _load(self, worker: str) -> int:
        return sum(1 for w in self.sits.values() if w == worker)


TestSeats = SeatMachine.TestCase
TestSeats.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
