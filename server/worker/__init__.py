"""The session runtime beside the model: one process, one loaded world, its resident sessions.

Read runtime.py (the worker: loads, answers the front door), session.py (one session), then the
nouns that it is made of: reception.py (who plays, and what they send), chunkloop.py (when a chunk
is wanted and what its grant does), modelstate.py (built and given back), publisher.py (frames on
their way out), lease.py (whose chunk runs next). process.py is the child that
`python -m server.worker` starts, inprocess.py the same port without a process. Importing
this page imports nothing else.

Knows nothing of HTTP, of the front door's deadlines, or of how any transport works.
"""
