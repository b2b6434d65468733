"""The core against `CoreBooks`: whatever is done to both, they agree."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pipeline.streaming import SequenceDuplicated, SequenceSkipped
from pipeline.streaming.messages import (
    ActorStopped,
    Completed,
    Dropped,
    Emitted,
    Failed,
    Open,
    Opened,
    Release,
    Released,
    Run,
)
from tests.fakes.core_books import (
    ENTRIES,
    INPUTS,
    LANES,
    OCCUPIED,
    OUTPUT,
    RESERVED,
    SESSIONS,
    STAGES,
    CoreBooks,
    Model,
)
from tests.fakes.stages import PIECES

SELDOM = st.sampled_from([False] * 5 + [True])  # or no session would get anywhere
TURN = st.tuples(st.integers(0, 5), st.integers(0, 2), st.booleans())


class CoreMachine(CoreBooks, RuleBasedStateMachine):
    @initialize(
        capacity=st.integers(1, 3), group=st.booleans(), admit=st.booleans(), mortal=st.booleans()
    )
    def build(self, capacity: int, group: bool, admit: bool, mortal: bool) -> None:
        self.mortal = mortal
        self.begin(capacity, group, admit)

    # -------------------------------------------------------------- rules
    @rule(session=st.sampled_from(SESSIONS), at_once=st.sampled_from([True, True, False]))
    def open(self, session: str, at_once: bool) -> None:
        if session in self.models or session in self.quarantined:
            return
        self.models[session] = Model(to_open=list(STAGES))
        self.core.open(session, {}, STAGES, self.now)
        self.check_steps()
        self.settle()
        if at_once:
            self.finish_chores()

    def finish_chores(self) -> None:
        """Answer, and well, every Open and Release that actors have."""
        while chores := [s for s in STAGES if isinstance(self.busy[s], Open | Release)]:
            self.answer_one(chores[0], True, 0)

    @rule(
        session=st.sampled_from(SESSIONS),
        artifacts=st.sampled_from([("condition_request",), ("control",), ENTRIES]),
        off=st.sampled_from([0, 0, 0, 0, -1, 1]),
    )
    def submit(self, session: str, artifacts: tuple[str, ...], off: int) -> None:
        model = self.models.get(session)
        if model is None or model.failed or model.closing or model.draining:
            assert not self.core.can_submit(session, 0, artifacts)
            return
        sequence = model.accepted[artifacts[0]] + off
        values = {name: (name, session, model.epoch, sequence) for name in artifacts}
        predicted = self.core.can_submit(session, sequence, artifacts)
        wrong = [sequence - model.accepted[name] for name in artifacts]
        if model.flowing and any(wrong):
            kind = SequenceDuplicated if next(w for w in wrong if w) < 0 else SequenceSkipped
            try:
                self.core.submit(session, sequence, values, self.now)
            except kind:
                assert not predicted
                self.settle()
                return
            raise AssertionError(f"{wrong} was accepted")
        expected = model.flowing and all(self.fits(model, name, sequence) for name in artifacts)
        assert predicted is expected
        assert self.core.submit(session, sequence, values, self.now) is expected
        if expected:
            for name in artifacts:
                self.put(model, name, sequence, OCCUPIED)
                model.accepted[name] = sequence + 1
        self.settle()

    @precondition(lambda self: any(model.flowing for model in self.models.values()))
    @rule(turns=st.lists(TURN, min_size=1, max_size=8))
    def play(self, turns: list[tuple[int, int, bool]]) -> None:
        """Everyone hands in as much as fits, some run on, some take what is there."""
        for answers, who, claim in turns:
            flowing = [s for s in SESSIONS if s in self.models and self.models[s].flowing]
            for session in flowing:
                self.submit(session, ("condition_request",), 0)
                if claim and session == flowing[who % len(flowing)]:
                    self.reserve(session, 0, True)
                self.submit(session, ("control",), 0)
            for _ in range(answers):
                running = [s for s in STAGES if isinstance(self.busy[s], Run)]
                if running:
                    self.answer_one(running[who % len(running)], True, who)
            for session in flowing[who:]:
                self.take(session, answers)

    @rule(session=st.sampled_from(SESSIONS), ahead=st.integers(0, 1), claim=st.booleans())
    def reserve(self, session: str, ahead: int, claim: bool) -> None:
        model = self.models.get(session)
        if model is None or not model.flowing or model.draining:
            assert not self.core.can_reserve(session, 0)
            return
        sequence = min(model.accepted.values()) + ahead
        if sequence < self.core.session(session).completed:
            return
        expected = all(
            sequence < self.lane_start(model, lane) or self.fits(model, lane, sequence)
            for lane in LANES
        )
        assert self.core.can_reserve(session, sequence) is expected
        claimed = "denoise" if claim else None
        expected = expected and (not claim or self.is_free("denoise"))
        assert self.core.reserve(session, sequence, self.now, claimed) is expected
        if expected:
            self.kept_for = session if claim else self.kept_for
            for lane in LANES:
                if sequence >= self.lane_start(model, lane) and sequence not in model.places[lane]:
                    self.put(model, lane, sequence, RESERVED)
        self.settle()

    @precondition(lambda self: any(self.busy.values()))
    @rule(
        data=st.data(), well=st.sampled_from([True] * 12 + [False]), pieces=st.integers(0, PIECES)
    )
    def answer(self, data: st.DataObject, well: bool, pieces: int) -> None:
        stage = data.draw(st.sampled_from([s for s in STAGES if self.busy[s]]), label="stage")
        self.answer_one(stage, well, pieces)

    def answer_one(self, stage: str, well: bool, pieces: int) -> None:
        work = self.busy[stage]
        assert work is not None
        self.busy[stage] = None
        self.now += 1.0
        model = self.models[work.session]
        fresh = work.epoch == model.epoch
        if isinstance(work, Run):
            self.answer_run(model, work, well, fresh, pieces)
        elif isinstance(work, Open):
            self.answer_open(model, work, well)
        else:
            assert isinstance(work, Release)
            self.answer_release(model, work, well)
        self.settle()

    def answer_run(self, model: Model, work: Run, well: bool, fresh: bool, pieces: int) -> None:
        sequence, output = work.sequence, OUTPUT[work.stage]
        for lane in INPUTS[work.stage]:
            model.places[lane].pop(sequence, None)
        if not well:
            if fresh:
                model.fail()
                self.core.handle(Failed(work, ValueError("fault"), 0.0, self.now), self.now)
            else:
                self.core.handle(Dropped(work), self.now)
            return
        outputs: dict[str, object] = {}
        value = (output, work.session, work.epoch, sequence)
        if work.stage == "decode":
            for piece in range(pieces):
                self.core.handle(Emitted(work, output, (*value, piece)), self.now)
                if fresh:
                    model.outbox.append((model.epoch, sequence, (*value, piece), False))
            if fresh:
                model.outbox.append((model.epoch, sequence, None, True))
        else:
            outputs[output] = value
        if fresh:
            model.places[output][sequence] = OCCUPIED
        self.core.handle(Completed(work, outputs, 0.0, self.now), self.now)
        self.note_drained(work.session)

    def answer_open(self, model: Model, work: Open, well: bool) -> None:
        if not well:
            model.fail()
            self.core.handle(Failed(work, ValueError("fault"), 0.0, self.now), self.now)
            return
        self.opens += 1
        model.states.add(work.stage)
        if not model.closing and not model.failed:
            assert model.to_open.pop(0) == work.stage
            model.flowing = not model.to_open
        self.core.handle(Opened(work, 0.0, self.now), self.now)
        self.check_steps()

    def answer_release(self, model: Model, work: Release, well: bool) -> None:
        if well:
            self.releases += 1
            model.states.remove(work.stage)
            model.releasing = model.releasing and bool(model.states)
            self.unreleasable.discard((work.session, work.stage))
            self.core.handle(Released(work, 0.0, self.now), self.now)
        else:
            self.unreleasable.add((work.session, work.stage))
            model.fail()
            self.core.handle(Failed(work, OSError("fault"), 0.0, self.now), self.now)
        self.check_steps()

    @rule(session=st.sampled_from(SESSIONS), count=st.integers(1, 5))
    def take(self, session: str, count: int) -> None:
        model = self.models.get(session)
        if model is None:
            return
        record = self.core.session(session)
        for _ in range(count):
            if session not in self.models:
                break
            output = self.core.take(record, self.now)
            if not model.outbox:
                assert output is None
                break
            assert output is not None
            expected = model.outbox.pop(0)
            assert (output.epoch, output.sequence, output.value, output.last) == expected
            assert output.session == session
            if output.last:
                del model.places["frames"][output.sequence]
            self.note_drained(session)
            self.settle()

    @rule(session=st.sampled_from(SESSIONS), at_once=st.booleans(), really=SELDOM)
    def reset(self, session: str, at_once: bool, really: bool) -> None:
        model = self.models.get(session) if really else None
        if model is None or model.failed or model.closing or model.draining or model.to_open:
            return
        model.fence()
        model.to_open, model.releasing = list(STAGES), True
        self.core.reset(session, {}, STAGES, self.now)
        self.settle()
        if at_once:
            self.finish_chores()

    @rule(session=st.sampled_from(SESSIONS), drain=st.booleans(), really=SELDOM)
    def close(self, session: str, drain: bool, really: bool) -> None:
        if not really:
            return
        model = self.models.get(session)
        if session in self.quarantined:
            model = self.models[session] = self.quarantined.pop(session)
        elif model is None:
            assert self.core.close(session, self.now, drain=drain) is None
            return
        elif model.closing:
            pass
        elif drain and model.flowing:
            model.draining = True
            self.note_drained(session)
        else:
            model.closing = True
            model.to_open.clear()
            model.fence()
        if session not in self.core.sessions:
            model.fence()
        self.core.close(session, self.now, drain=drain)
        self.settle()

    @precondition(lambda self: self.mortal and not self.dead and len(self.models) > 1)
    @rule(stage=st.sampled_from(STAGES), really=SELDOM)
    def die(self, stage: str, really: bool) -> None:
        if not really:
            return
        work, self.busy[stage] = self.busy[stage], None
        self.dead.add(stage)
        if isinstance(work, Run):
            for lane in INPUTS[stage]:
                self.models[work.session].places[lane].pop(work.sequence, None)
        for session, model in [*self.models.items(), *self.quarantined.items()]:
            self.unreleasable.discard((session, stage))
            used = stage in model.states
            self.lost += used
            model.lost = model.lost or used
            model.states.discard(stage)
            if session in self.models and used:
                model.fail()
        self.check_steps()
        self.core.handle(ActorStopped(stage, MemoryError()), self.now)
        self.settle()

    # -------------------------------------------------------------- what always holds
    @invariant()
    def slots_are_conserved(self) -> None:
        if not hasattr(self, "core"):
            return
        for session, model in self.models.items():
            slots = self.core.session(session).metrics().slots
            assert slots == {lane: len(model.places[lane]) for lane in LANES}
            assert all(len(places) <= self.capacity for places in model.places.values())

    @invariant()
    def nothing_that_could_run_waits(self) -> None:
        if not hasattr(self, "core"):
            return
        for stage in STAGES:
            assert self.core.stage_free(stage) is self.is_free(stage)
            assert not (self.is_free(stage) and self.waiting[stage]), f"{stage} idles"
            if stage == "denoise" and self.kept_for is not None:
                assert self.kept_for not in self.waiting[stage], "claimed, ready and not running"

    def teardown(self) -> None:
        """Whatever happened, everything can be given back."""
        if not hasattr(self, "core"):
            return
        for session in list(self.models):
            self.close(session, drain=False, really=True)
        while busy := [stage for stage in STAGES if self.busy[stage]]:
            self.answer_one(busy[0], True, 0)
        diagnostics = self.core.diagnostics(self.now)
        assert self.core.sessions == ()
        assert diagnostics.slots_used == diagnostics.slot_leaks == 0
        assert diagnostics.orphaned == diagnostics.duplicate == 0
        kept = sum(len(model.states) for model in self.quarantined.values())
        assert self.opens == self.releases + self.lost + kept, "released exactly once"


TestCore = CoreMachine.TestCase
TestCore.settings = settings(max_examples=120, stateful_step_count=60, deadline=None)
