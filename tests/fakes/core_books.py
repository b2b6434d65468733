"""The core's books, kept a second time and in a plain way: places, who waits, what is open where.

`test_core_machine.py` does things to the core and to these books, and they have to agree.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pipeline.streaming import ReleaseOn
from pipeline.streaming.core import Core
from pipeline.streaming.messages import Abort, ActorStarted, Open, Release, Run, Work
from pipeline.streaming.plan import plan_of
from tests.fakes.stages import world_spec

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


class CoreBooks:
    """A core, and beside it what it should know: dictionaries, lists and sets."""

    def begin(self, capacity: int, group: bool, admit: bool) -> None:
        self.capacity = capacity
        self.grouped = group
        self.admit = admit
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

    def check_steps(self) -> None:
        """Nobody gets past an actor that is dead."""
        for model in self.models.values():
            if model.next_to_open() in self.dead:
                model.fail()

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
