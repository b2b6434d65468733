"""LiveKit: each session has a room; its worker publishes into it, players and spectators join it.

Read transport.py (the `MediaTransport`), room.py (the worker's place in the room), video.py (its
track), outbox.py (its messages), service.py (rooms from outside), tokens.py (who may do what).
"""
