"""The core against a plain model: dictionaries of places, lists of who waits, sets of states."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pipeline.streaming import ReleaseOn, SequenceDuplicated, SequenceSkipped
from pipeline.streaming.core import Core
from pipeline.streaming.messages import (
    Abort,
    ActorStarted,
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
    Work,
)
from pipeline.streaming.plan import plan_of
from tests.fakes.stages import PIECES, world_spec

SESSIONS = "abc"
STAGES = ("encode", "denoise", "decode")
INPUTS = {
    "encode": ("condition_request",),
    "denoise": ("condition", "control"),
    "decode": ("latent",),
}
OUTPUT = {"encode": "condition", "denoise": "latent", "decode": "frames"}
ENTRIES = ("condition_request", "control")
LANES = (*ENTRIES, "condition", "latent", "frames")
SELDOM = st.sampled_from([False] * 5 + [True])  # or no session would get anywhere
TURN = st.tuples(st.integers(0, 5), st.integers(0, 2), st.booleans())
RESERVED, OCCUPIED, HELD = "reserved", "occupied", "held"


@dataclass
class Model:
    """One session, as a person would keep its books."""

    epoch: int = 0
    flowing: bool = False
    failed: bool = False
    closing: bool = False
    draining: bool = False
    places: dict[str, dict[int, str]] = field(default_factory=lambda: {lane: {} for lane in LANES})
    accepted: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ENTRIES, 0))
    next_run: dict[str, int] = field(default_factory=lambda: dict.fromkeys(STAGES, 0))
    outbox: list[tuple[int, int, object, bool]] = field(default_factory=list)
    states: set[str] = field(default_factory=set)  # stages where state is open
    to_open: list[str] = field(default_factory=list)  # stages still to be opened for this epoch
    lost: bool = False  # an actor died with its state
    releasing: bool = False  # a reset first gives back what the last epoch had

    def fence(self) -> None:
        self.epoch += 1
        self.flowing = False
        for places in self.places.values():
            for sequence in [s for s, state in places.items() if state != HELD]:
                del places[sequence]
        self.outbox.clear()

    def fail(self) -> None:
        """It cannot go on; if it was about to come or to go, it goes."""
        if self.failed or self.closing:
            return
        self.failed = True
        self.closing = self.draining or (self.epoch == 0 and bool(self.to_open))
        self.to_open.clear()
        self.fence()

    def next_to_open(self) -> str | None:
        return None if self.releasing or not self.to_open else self.to_open[0]

    def restart(self) -> None:
        self.accepted = dict.fromkeys(ENTRIES, 0)
        self.next_run = dict.fromkeys(STAGES, 0)


class CoreMachine(RuleBasedStateMachine):
    @initialize(
        capacity=st.integers(1, 3), group=st.booleans(), admit=st.booleans(), mortal=st.booleans()
    )
    def build(self, capacity: int, group: bool, admit: bool, mortal: bool) -> None:
        self.capacity = capacity
        self.grouped = group
        self.admit = admit
        self.mortal = mortal
        release = ReleaseOn.ADMIT if admit else ReleaseOn.COMPLETE
        spec = world_spec(
            capacity=capacity, request_capacity=capacity, release_on=release, group=group
        )
        self.core = Core(plan_of(spec))
        for stage in STAGES:
            self.core.handle(ActorStarted(stage), 0.0)
        self.busy: dict[str, Work | None] = dict.fromkeys(STAGES)
        self.kept_for: str | None = None  # who has claimed denoise
        self.dead: set[str] = set()
        self.models: dict[str, Model] = {}
        self.quarantined: dict[str, Model] = {}
        self.waiting: dict[str, list[str]] = {stage: [] for stage in STAGES}
        self.opens = self.releases = self.lost = 0
        self.unreleasable: set[tuple[str, str]] = set()  # their last release raised
        self.now = 0.0
        self.settle()

    # -------------------------------------------------------------- the model
    def fits(self, model: Model, lane: str, sequence: int) -> bool:
        places = model.places[lane]
        if sequence in places:
            return True
        start = max(places, default=self.lane_start(model, lane) - 1) + 1
        return len(places) + sequence + 1 - start <= self.capacity

    def lane_start(self, model: Model, lane: str) -> int:
        """The next sequence of a lane in which nothing is."""
        if lane in ENTRIES:
            return model.accepted[lane]
        (producer,) = [stage for stage in STAGES if OUTPUT[stage] == lane]
        return model.next_run[producer]

    def put(self, model: Model, lane: str, sequence: int, state: str) -> None:
        places = model.places[lane]
        for earlier in range(max(places, default=self.lane_start(model, lane) - 1) + 1, sequence):
            places[earlier] = RESERVED
        places[sequence] = state

    def is_ready(self, session: str, stage: str) -> bool:
        model = self.models[session]
        work = self.busy[stage]
        if not model.flowing or (isinstance(work, Run) and work.session == session):
            return False
        sequence = model.next_run[stage]
        return all(
            model.places[lane].get(sequence) == OCCUPIED for lane in INPUTS[stage]
        ) and self.fits(model, OUTPUT[stage], sequence)

    def note_ready(self) -> None:
        for stage in STAGES:
            row = self.waiting[stage]
            row[:] = [s for s in row if s in self.models and self.is_ready(s, stage)]
            row += [s for s in self.models if s not in row and self.is_ready(s, stage)]

    def right_is_free(self, stage: str) -> bool:
        if not self.grouped or stage == "encode":
            return True
        return not (self.busy["denoise"] or self.busy["decode"] or self.kept_for)

    def is_free(self, stage: str) -> bool:
        return (
            self.busy[stage] is None
            and stage not in self.dead
            and self.right_is_free(stage)
            and not (stage == "denoise" and self.kept_for)
        )

    def void_claim(self) -> None:
        """A claim lasts as long as its session's epoch, and its actor."""
        model = self.models.get(self.kept_for or "")
        if model is None or not model.flowing or "denoise" in self.dead:
            self.kept_for = None

    def settle(self) -> None:
        """Carry out what the core commands, and check every single command against the model."""
        self.void_claim()
        self.note_ready()
        for command in self.core.settle():
            if isinstance(command, Abort) or not isinstance(command, Work):
                continue
            stage, session = command.stage, command.session
            if stage == "denoise" and self.kept_for is not None:
                assert isinstance(command, Run)
                assert command.session == self.kept_for, "kept for another"
                self.waiting[stage].remove(self.kept_for)
                self.waiting[stage].insert(0, self.kept_for)  # it need not wait its turn
                self.kept_for = None
            assert self.is_free(stage), "one work at a time, and as many as the group admits"
            model = self.models[session]
            assert command.epoch == model.epoch
            if isinstance(command, Run):
                self.started(model, stage, command)
            elif isinstance(command, Open):
                assert model.to_open[0] == stage, "in the order asked for"
                assert stage not in model.states
                if stage == STAGES[0]:
                    assert not model.states, "an epoch is built from nothing"
                    model.restart()
            else:
                assert isinstance(command, Release)
                later = STAGES[STAGES.index(stage) + 1 :]
                assert stage in model.states
                kept = model.states.intersection(later)
                assert all((session, other) in self.unreleasable for other in kept)
            self.busy[stage] = command
            self.note_ready()
        self.forget_the_gone()

    def started(self, model: Model, stage: str, work: Run) -> None:
        assert self.waiting[stage][0] == work.session, "round robin"
        if self.grouped and stage == "denoise":
            assert not self.waiting["decode"], "downstream first"
        assert model.states == set(STAGES)
        assert work.sequence == model.next_run[stage], "strict order"
        sequence = work.sequence
        for lane in INPUTS[stage]:
            assert work.inputs[lane] == (lane, work.session, model.epoch, sequence)
            if lane == "condition_request" and self.admit:
                del model.places[lane][sequence]
            else:
                model.places[lane][sequence] = HELD
        if sequence not in model.places[OUTPUT[stage]]:
            self.put(model, OUTPUT[stage], sequence, RESERVED)
        model.next_run[stage] = sequence + 1

    def forget_the_gone(self) -> None:
        for session, model in list(self.models.items()):
            if session in self.core.sessions:
                continue
            assert model.closing
            del self.models[session]
            for lane in LANES:
                assert not model.places[lane], "quiescence"
            if session in self.core.diagnostics(self.now).quarantined:
                assert model.states or model.lost, "something was not given back"
                self.quarantined[session] = model
            else:
                assert not model.states, "every state was released"
                assert not model.lost

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

    def check_steps(self) -> None:
        """Nobody gets past an actor that is dead."""
        for model in self.models.values():
            if model.next_to_open() in self.dead:
                model.fail()

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

    def note_drained(self, session: str) -> None:
        model = self.models[session]
        submitted = min(model.accepted.values())
        completed = [s for s, state in model.places["frames"].items() if state == OCCUPIED]
        if (
            model.draining
            and not model.closing
            and not model.outbox
            and not completed
            and self.core.session(session).completed >= submitted
        ):
            model.closing = True
            model.fence()

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
