"""What the front door hears of one session, each fact when it becomes true."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from admission.session import EndReason
from server.protocol.worker import SessionFact

Fact = Literal["connected", "starting", "running", "lost", "paused", "resumed", "active", "ended"]
ACTIVE_EVERY_SECONDS = 1.0


class Facts:
    """Reports of one session; silent after its end."""

    def __init__(
        self, session: str, emit: Callable[[SessionFact], None], clock: Callable[[], float]
    ) -> None:
        self._session = session
        self._emit = emit
        self._clock = clock
        self._active_at: float | None = None
        self._silent = False

    def tell(
        self,
        fact: Fact,
        *,
        stage: str | None = None,
        reason: EndReason | None = None,
        detail: str | None = None,
    ) -> None:
        """Report a fact."""
        if self._silent:
            return
        self._silent = fact == "ended"
        self._emit(
            SessionFact(session=self._session, fact=fact, stage=stage, reason=reason, detail=detail)
        )

    def active(self) -> None:
        """The player gave input; reported at most once a second."""
        now = self._clock()
        if self._active_at is None or now - self._active_at >= ACTIVE_EVERY_SECONDS:
            self._active_at = now
            self.tell("active")

    def silence(self) -> None:
        """The front door has ended the session: there is nothing to report any more."""
        self._silent = True
