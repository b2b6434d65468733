"""The lease against a plain list, whatever sessions do."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from admission.lease import ExecutionLease, NotHolder, StillLeaving

SESSIONS = st.sampled_from("abcde")


class LeaseMachine(RuleBasedStateMachine):
    """The model: who waits, in order; who holds; whether the holder has left."""

    def __init__(self) -> None:
        super().__init__()
        self.lease = ExecutionLease()
        self.queue: list[str] = []
        self.holder: str | None = None
        self.left = False

    @rule(session=SESSIONS)
    def want(self, session: str) -> None:
        if self.left and session == self.holder:
            with pytest.raises(StillLeaving):
                self.lease.want(session)
            return
        self.lease.want(session)
        if session not in self.queue:
            self.queue.append(session)

    @rule(session=SESSIONS)
    def unwant(self, session: str) -> None:
        self.lease.unwant(session)
        self._out_of_the_queue(session)

    @rule(ready=st.sets(SESSIONS))
    def grant(self, ready: set[str]) -> None:
        expected = next((s for s in self.queue if s in ready), None)
        asked: list[str] = []

        def grantable(session: str) -> bool:
            asked.append(session)
            return session in ready

        granted = self.lease.grant(grantable)
        if self.holder is not None:
            assert (granted, asked) == (None, [])
            return
        assert granted == expected
        if granted is None:
            assert asked == self.queue
            return
        assert asked == self.queue[: self.queue.index(granted) + 1]
        self._granted(granted)

    @precondition(lambda self: self.holder is None and self.queue)
    @rule()
    def grant_to_anyone(self) -> None:
        head = self.queue[0]
        assert self.lease.grant(lambda session: True) == head
        self._granted(head)

    @rule(session=SESSIONS)
    def release(self, session: str) -> None:
        if session != self.holder:
            with pytest.raises(NotHolder):
                self.lease.release(session)
            return
        self.lease.release(session)
        self.holder, self.left = None, False

    @rule(session=SESSIONS)
    def leave(self, session: str) -> None:
        before = self.lease.counters.left_holding
        newly = session == self.holder and not self.left
        self.lease.leave(session)
        self._out_of_the_queue(session)
        self.left = self.left or newly
        assert self.lease.counters.left_holding == before + newly

    @rule(session=SESSIONS)
    def gone(self, session: str) -> None:
        self.lease.gone(session)
        self._out_of_the_queue(session)
        if session == self.holder:
            self.holder, self.left = None, False

    @invariant()
    def says_what_the_model_says(self) -> None:
        assert self.lease.holder == self.holder
        assert self.lease.leaving == self.left
        assert self.lease.waiting == tuple(self.queue)
        for session in "abcde":
            if session == self.holder:
                assert self.lease.position(session) == 0
            elif session in self.queue:
                assert self.lease.position(session) == self.queue.index(session) + 1
            else:
                assert self.lease.position(session) is None

    def _granted(self, session: str) -> None:
        self.queue.remove(session)
        self.holder = session

    def _out_of_the_queue(self, session: str) -> None:
        if session in self.queue:
            self.queue.remove(session)


class FairnessMachine(RuleBasedStateMachine):
    """Everybody can always be granted; some saturate, others come and go."""

    def __init__(self) -> None:
        super().__init__()
        self.lease = ExecutionLease()
        self.saturating = "abc"
        self.served = dict.fromkeys(self.saturating, 0)
        self.passed: dict[str, int] = {}
        for session in self.saturating:
            self.want(session)

    @rule(session=st.sampled_from("de"))
    def want(self, session: str) -> None:
        if session not in self.lease.waiting and session != self.lease.holder:
            self.lease.want(session)
            self.passed[session] = 0

    @rule(session=st.sampled_from("de"))
    def give_up(self, session: str) -> None:
        self.lease.unwant(session)
        self.passed.pop(session, None)

    @rule()
    def one_chunk(self) -> None:
        session = self.lease.grant(lambda _session: True)
        assert session is not None
        del self.passed[session]
        for waiting in self.passed:
            self.passed[waiting] += 1
        self.lease.release(session)
        if session in self.served:
            self.served[session] += 1
            self.want(session)

    @invariant()
    def saturating_sessions_are_served_alike(self) -> None:
        counts = self.served.values()
        assert max(counts) - min(counts) <= 1

    @invariant()
    def nobody_waits_for_more_chunks_than_there_are_others(self) -> None:
        assert all(passed <= 4 for passed in self.passed.values())


BRIEF = settings(max_examples=80, stateful_step_count=40, deadline=None)
TestLease = LeaseMachine.TestCase
TestLease.settings = BRIEF
TestFairness = FairnessMachine.TestCase
TestFairness.settings = BRIEF
