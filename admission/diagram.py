"""The state diagram of a session, drawn from the table that moves it.

`python -m admission.diagram > docs/guide/session-states.md`; a test says when the page is stale.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from admission.session import END_STATE, TERMINAL, TRANSITIONS, Cause, EndReason, Rule, State

_INTRODUCTION: Final = """\
# States of a session

Drawn from the table in `admission/session.py` by `python -m admission.diagram`; a test fails when
this page is not what the table says. A cause that the table does not have for a state is refused
with `IllegalTransition`; causes that leave the state as it is are not drawn.
"""

_RULES: Final = """\
- **running or suspended**: a pause by the player and an empty room are independent. A session is
  suspended while either holds, and runs again only when both are over.
- **draining**: the worker releases the model state; `released` is its acknowledgement. A worker
  that has died holds nothing: then the session fails at once. The first reason stands, except that
  a worker's death while draining fails the session.
"""


def edges() -> Iterator[tuple[State, State, str]]:
    """Every (source, target, cause) that changes the state, with the targets of rules spelt out."""
    for (source, cause), target in TRANSITIONS.items():
        for end, label in _targets(source, cause, target):
            if source is not end:
                yield source, end, label


def mermaid() -> str:
    """The diagram as Mermaid source."""
    labels: dict[tuple[State, State], list[str]] = {}
    for source, target, label in edges():
        labels.setdefault((source, target), []).append(label)
    lines = ["stateDiagram-v2", "    [*] --> queued", "    [*] --> admitted"]
    lines += [f"    {a} --> {b}: {', '.join(names)}" for (a, b), names in labels.items()]
    lines += [f"    {state} --> [*]" for state in State if state in TERMINAL]
    return "\n".join(lines)


def page() -> str:
    """The whole page."""
    rows = "\n".join(f"| `{reason}` | {state} |" for reason, state in END_STATE.items())
    return (
        f"{_INTRODUCTION}\n```mermaid\n{mermaid()}\n```\n\n{_RULES}\n"
        f"## How it ends\n\n| reason | state |\n|---|---|\n{rows}\n"
    )


def _targets(source: State, cause: Cause, target: State | Rule) -> Iterator[tuple[State, str]]:
    if isinstance(target, State):
        yield target, cause.value
    elif target is Rule.PLAY:
        yield State.RUNNING, cause.value
        yield State.SUSPENDED, f"{cause.value} while paused or lost"
    elif target is Rule.DRAIN:
        yield State.DRAINING, cause.value
        yield END_STATE[EndReason.WORKER_DIED], EndReason.WORKER_DIED.value
    else:
        for end in dict.fromkeys(END_STATE.values()):
            yield end, cause.value


if __name__ == "__main__":
    print(page(), end="")
