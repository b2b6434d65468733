"""The service around a world: the front door, the worker beside the model, and what they say.

Read settings.py (what an operator may set), front/ (HTTP, sessions, the life of workers), worker/
(the runtime beside a loaded model), transports/ and media/ (the way to the players), protocol/
(everything that crosses a wire), cli.py (the `veldt` command).
"""
