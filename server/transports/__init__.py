"""The ways from a session's runtime to its players.

Read base.py (the contract), succession.py (which connection is live), memory.py (the contract
without a network), then webrtc.py. Knows nothing of worlds, leases or HTTP.
"""
