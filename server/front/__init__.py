"""The front door: HTTP, the lives of sessions and seats, and the workers' processes.

Read service.py first (what can be done with a session, and all that happens to one), then
record.py (one session and who watches it), pool.py (workers that are kept alive), workers.py (one
worker process), app.py (how it is put together); routes are in sessions.py, worlds.py, health.py.
guard.py stands before all of them, problems.py turns every exception into an answer.

It reaches a model only through `WorkerPort`: plain data. It knows nothing of pipelines, torch,
aiortc or codecs, and nothing here blocks the event loop.

>>> from server.front.hosts import HostRule
>>> rule = HostRule(loopback=True, names=())
>>> rule.allows(b"LOCALHOST:8000"), rule.allows(b"127.0.0.1.nip.io")
(True, False)
"""

from server.front.app import create_app
from server.front.pool import already_running
from server.front.workers import WorkerProcess

__all__ = ["WorkerProcess", "already_running", "create_app"]
