"""The page's table of a session's life is what the session really does: walked, not read."""

from __future__ import annotations

import json

from admission.session import (
    END_STATE,
    TERMINAL,
    Cause,
    EndReason,
    IllegalTransition,
    Limits,
    SessionLife,
    State,
)
from server.protocol.schema import SCHEMA_FILE

Step = tuple[Cause, EndReason | None]
STEPS: tuple[Step, ...] = tuple(
    (cause, reason)
    for cause in Cause
    for reason in (EndReason if cause is Cause.ENDING else (None,))
)


def walked() -> set[tuple[State, State]]:
    """Every change of state that a session makes, whatever happens to it in whatever order."""
    changes = set()
    seen = set()
    open_paths: list[tuple[State, tuple[Step, ...]]] = [(State.QUEUED, ()), (State.ADMITTED, ())]
    while open_paths:
        begins, path = open_paths.pop()
        for cause, reason in STEPS:
            life = SessionLife(Limits(claims=2), 0.0, begins)
            for taken, why in path:
                life.take(taken, 0.0, why)
            try:
                step = life.take(cause, 0.0, reason)
            except IllegalTransition:
                continue
            if step.changed:
                changes.add((step.source, step.target))
            facts = (life.state, life.paused, life.lost, life.reason)
            if facts not in seen:
                seen.add(facts)
                open_paths.append((begins, (*path, (cause, reason))))
    return changes


def test_the_page_knows_every_move_of_a_session_and_no_other() -> None:
    moves = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))["x-moves"]
    told = {(State(source), State(to)) for source, targets in moves.items() for to in targets}
    assert set(moves) == {state.value for state in State}
    assert told == walked()


def test_the_page_knows_where_every_reason_ends() -> None:
    document = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    assert document["x-end-states"] == {reason: END_STATE[reason] for reason in EndReason}
    assert {state for state, to in document["x-moves"].items() if not to} == TERMINAL
