"""Worlds without a model: pictures drawn in code, for tests, drills and benchmarks.

`marker` writes frame number, applied receipt and keys into the picture; `slow` takes the time it is
told; `failing` fails where it is told; `prompt` shows its prompt and holds still. Read base.py
first: it is a whole three-stage world, and each world adds a painter or what a stage does besides.
"""
