"""What transports have in common that lead from this process straight to one page."""

from __future__ import annotations

from server.transports.base import ConnectAnswer, Identity, NoSpectators


class NoAudience:
    """Nobody watches: each connection has an encoder of its own here, and LiveKit copies one."""

    async def invite(self) -> ConnectAnswer:
        """Raises `NoSpectators`."""
        raise NoSpectators

    def hand_over(self, by: Identity, to: Identity) -> bool:
        """There is nobody to hand over to."""
        return False

    def doubt(self) -> None:
        """Connections end in this process: who is here is known."""
