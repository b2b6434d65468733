"""Measurements: micro/ (parts of the service, in this process), aiperf/ (a live service).

Each module has `figures()`, which measures and returns the figures of DESIGN §10 by id, and a
`main()` that prints a table for people and then one JSON line for scripts.
"""
