"""What a world is, the engine that runs it, and the worlds that come with veldt.

Read service.py (what the author of a world writes), registry.py (worlds by name), streaming/ (the
engine), tiny/ (the embedded world), testworlds/ (worlds without a model, for tests).
Knows nothing of sessions' admission, HTTP, transports or pacing.

>>> from pipeline.registry import load_world
>>> load_world("marker", {"fps": 16}).info.frames_per_chunk
4
"""
