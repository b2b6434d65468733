"""Who may be resident, and whose chunk runs next.

Read session.py (a session's states and deadlines), residency.py (boundary 1: seats), lease.py
(boundary 2: one chunk at a time, just in time), then load.py and window.py (what is measured for
it); diagram.py draws the states.
Knows nothing of HTTP, transports, torch, asyncio or wall clocks: time comes in as a number.

Two players want a chunk; the second one is granted its own when the first one's is over:

>>> lease = ExecutionLease()
>>> lease.want("a"); lease.want("b")
>>> lease.grant(lambda session: True), lease.position("b")
('a', 1)
>>> lease.release("a"); lease.want("a")
>>> lease.grant(lambda session: True), lease.waiting
('b', ('a',))

A session whose player stays away for longer than the grace is over:

>>> life = SessionLife(Limits(disconnect_grace=30), now=0)
>>> for cause in (Cause.CLAIMED, Cause.CONNECTED, Cause.STARTED, Cause.LOST):
...     _ = life.take(cause, now=10)
>>> life.state.value, life.next_deadline()
('suspended', 40)
>>> life.due(now=40)
Overdue(cause=<Cause.ENDING: 'ending'>, reason=<EndReason.DISCONNECTED: 'disconnected'>)
"""

from admission.lease import ExecutionLease, JustInTime
from admission.load import WorkerLoad
from admission.residency import Admitted, Queued, Refused, ResidentAdmission
from admission.session import (
    Cause,
    EndReason,
    IllegalTransition,
    Limits,
    SessionLife,
    State,
    Transition,
)

__all__ = [
    "Admitted",
    "Cause",
    "EndReason",
    "ExecutionLease",
    "IllegalTransition",
    "JustInTime",
    "Limits",
    "Queued",
    "Refused",
    "ResidentAdmission",
    "SessionLife",
    "State",
    "Transition",
    "WorkerLoad",
]
