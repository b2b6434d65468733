"""What the front door knows of LiveKit. Workers do the rest: rooms, tokens, media."""

from __future__ import annotations


def livekit_sources(url: str | None) -> tuple[str, ...]:
    """What the page's policy has to allow so that a browser reaches LiveKit at `url`.

    >>> livekit_sources("wss://livekit.example.org")
    ('wss://livekit.example.org', 'https://livekit.example.org')
    """
    return () if url is None else (url, url.replace("ws", "http", 1))
