"""Where LiveKit is, and what rooms are made like."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class LiveKitAddress:
    """One LiveKit server or cloud project, as a worker uses it.

    Attributes:
        url: where this machine reaches it (ws:// or wss://).
        public_url: where browsers reach it.
        api_key: names the secret.
        api_secret: signs tokens; never logged.
        room_prefix: begins the names of this service's rooms.
        empty_seconds: a room that nobody has come to is closed after this long.
        departure_seconds: a room whose last player has left is closed after this long.
    """

    url: str
    public_url: str
    api_key: str
    api_secret: str = field(repr=False)
    room_prefix: str = "veldt"
    empty_seconds: int = 80
    departure_seconds: int = 60

    @property
    def http_url(self) -> str:
        """Where its API answers."""
        return self.url.replace("ws", "http", 1) if self.url.startswith("ws") else self.url
