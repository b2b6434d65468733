"""What can be wrong with a request, as facts with a stable code. HTTP is in problems.py.

FrontError
├── UnknownSession, UnknownPicture, UnknownWorkerId
├── SecretRequired, ApiKeyRequired, AdminKeyRequired, BadSignature
├── HouseFull, NoWorker, ShuttingDown, QuotaExceeded, TooManyRequests
├── BadStart
│   └── UnknownWorld, UnknownStartPoint, UnsupportedByWorld, UnknownImage
├── SessionEnded, NoSpectators, WorkerRefused, WorkerSlow
└── RequestRejected
"""

from __future__ import annotations

from collections.abc import Iterable

from admission.session import EndReason


class FrontError(Exception):
    """A request that is not served, and why. `detail` is for a person, `code` for a program."""

    code = "front_error"
    title = "The request was not served"

    def __init__(
        self,
        detail: str,
        *,
        field: str | None = None,
        session: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        """Say it in one sentence; name the field, the session, and when to ask again."""
        super().__init__(detail)
        self.detail, self.field = detail, field
        self.session, self.retry_after = session, retry_after


class UnknownSession(FrontError):
    """No session has this id and this secret: which of the two is wrong is not told."""

    code = "unknown_session"
    title = "No such session"

    def __init__(self) -> None:
        """Say nothing of the id."""
        super().__init__("there is no session with this id and this secret")


class BadSignature(FrontError):
    """A webhook that LiveKit has not signed."""

    code = "bad_signature"
    title = "The signature is missing or wrong"


class NoSpectators(FrontError):
    """Nobody can watch here: direct WebRTC leads to one page only."""

    code = "no_spectators"
    title = "Nobody can watch"


class UnknownPicture(FrontError):
    """There is no such start point to show."""

    code = "not_found"
    title = "No such picture"


class UnknownWorkerId(FrontError):
    """There is no such worker."""

    code = "unknown_worker"
    title = "No such worker"


class SecretRequired(FrontError):
    """The session's secret is missing."""

    code = "secret_required"
    title = "The session's secret is missing"

    def __init__(self) -> None:
        """Say where it belongs."""
        super().__init__("send the session_token as 'Authorization: Bearer …'")


class ApiKeyRequired(FrontError):
    """Sessions are created with an API key here."""

    code = "key_required"
    title = "An API key is needed"

    def __init__(self) -> None:
        """Say where it belongs."""
        super().__init__("send an API key as 'Authorization: Bearer …' or 'X-API-Key: …'")


class AdminKeyRequired(FrontError):
    """Only an operator may do this."""

    code = "admin_required"
    title = "The admin key is needed"

    def __init__(self, configured: bool) -> None:
        """Say where it belongs, or that there is none."""
        super().__init__(
            "send the admin key as 'Authorization: Bearer …'"
            if configured
            else "this service has no admin key; VELDT_ADMIN_KEY sets one"
        )


class HouseFull(FrontError):
    """Every seat is taken."""

    code = "queue_full"
    title = "Every seat is taken"


class NoWorker(FrontError):
    """No worker is ready to take a session."""

    code = "no_worker"
    title = "No worker is ready"


class ShuttingDown(FrontError):
    """The service is about to stop."""

    code = "shutting_down"
    title = "The service is stopping"


class QuotaExceeded(FrontError):
    """One address asked for too much."""

    code = "quota_exceeded"
    title = "Too many sessions from one address"


class TooManyRequests(FrontError):
    """More of the same at once than a session needs."""

    code = "too_many_requests"
    title = "Too many requests at once"


class BadStart(FrontError):
    """The session cannot begin like this; `field` says what is wrong."""

    code = "bad_start"
    title = "The session cannot begin like this"


class UnknownWorld(BadStart):
    """That world is not played here."""

    code = "unknown_world"

    def __init__(self, choices: Iterable[str]) -> None:
        """Name the worlds that are."""
        super().__init__(f"the worlds here are: {', '.join(choices)}", field="world")


class UnknownStartPoint(BadStart):
    """The world has no such place to begin."""

    code = "unknown_start_point"

    def __init__(self, world: str, choices: Iterable[str]) -> None:
        """Name the places it has."""
        listed = ", ".join(choices)
        super().__init__(
            f"the start points of {world} are: {listed}" if listed else f"{world} has none",
            field="start_point",
        )


class UnsupportedByWorld(BadStart):
    """The world does not take this at all."""

    code = "unsupported_by_world"

    def __init__(self, world: str, field: str) -> None:
        """Name the field it does not take."""
        super().__init__(f"{world} takes no {field.removesuffix('_id')}", field=field)


class UnknownImage(BadStart):
    """No image has this id."""

    code = "unknown_image"


class SessionEnded(FrontError):
    """The session is over; the reason is one of the closed list."""

    code = "session_ended"
    title = "The session is over"

    def __init__(self, session: str, reason: EndReason | None) -> None:
        """Tell the reason."""
        super().__init__(f"the session is over: {reason or 'closing'}", session=session)
        self.reason = reason


class WorkerRefused(FrontError):
    """The worker said no; its own code and words are passed on."""

    title = "The worker refused"

    def __init__(self, code: str, message: str, field: str | None, session: str) -> None:
        """Keep the worker's code."""
        super().__init__(message, field=field, session=session)
        self.code = code


class WorkerSlow(FrontError):
    """The worker did not answer in time."""

    code = "worker_slow"
    title = "The worker did not answer in time"


class RequestRejected(FrontError):
    """What the guard does not let in. `status` is in problems.py, by code."""

    def __init__(self, code: str, detail: str) -> None:
        """Keep the code of the rule."""
        super().__init__(detail)
        self.code = code
        self.title = "The request was not let in"
