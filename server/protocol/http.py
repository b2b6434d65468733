"""Bodies of the HTTP API (`/v1`) and of the event stream."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from admission.session import EndReason, State
from server.protocol.base import Count, WireModel

Name = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[a-z0-9][a-z0-9._-]*$")]


class CreateSession(WireModel):
    """Body of `POST /v1/sessions`."""

    world: Name | None = None
    start_point: Name | None = None
    image_id: Name | None = None
    prompt: str | None = Field(default=None, max_length=4000)


class Created(WireModel):
    """Answer of `POST /v1/sessions`."""

    session_id: str
    session_token: str
    status: State
    transport: str
    world: str
    claim_seconds: float | None = None
    queue_position: Count | None = None
    eta_seconds: float | None = None


class SessionView(WireModel):
    """Answer of `GET /v1/sessions/{id}`."""

    session_id: str
    world: str
    start_point: str | None
    status: State
    reason: EndReason | None = None
    stage: str | None = None
    queue_position: Count | None = None
    eta_seconds: float | None = None
    claim_seconds: float | None = None
    played_seconds: float = 0.0


class Sessions(WireModel):
    """Answer of `GET /v1/sessions` (operators)."""

    sessions: tuple[SessionView, ...]


class WorkerDraining(WireModel):
    """Answer of `POST /v1/workers/{id}/drain` (operators)."""

    worker_id: str
    draining: Literal[True] = True


class Connect(WireModel):
    """Body of `POST /v1/sessions/{id}/connect`."""

    sdp: str | None = Field(default=None, max_length=65_536)
    take_over: bool = False
    # Whether this browser can read the metadata of frames; else `frames` messages tell of them.
    frame_metadata: bool = True


class SpectatorLink(WireModel):
    """Answer of `POST /v1/sessions/{id}/tokens`: what a spectator's page needs besides the id."""

    session_id: str
    watch_token: str


class IceServer(WireModel):
    """One entry of `RTCConfiguration.iceServers`."""

    urls: tuple[str, ...]
    username: str | None = None
    credential: str | None = None


class Connection(WireModel):
    """Answer of `connect`: what the page needs to join."""

    transport: Literal["webrtc", "livekit", "memory"]
    sdp: str | None = None
    url: str | None = None
    token: str | None = None
    ice_servers: tuple[IceServer, ...] = ()
    connect_seconds: float


class StartPointView(WireModel):
    """A place to begin; its picture is a PNG behind `picture`."""

    name: str
    title: str
    picture: str


class ControlView(WireModel):
    """One key of the world's legend."""

    code: str
    label: str
    aliases: tuple[str, ...] = ()


class WorldView(WireModel):
    """One world of `GET /v1/worlds`."""

    name: str
    title: str
    about: str
    width: Count
    height: Count
    fps: float
    frames_per_chunk: Count
    start_points: tuple[StartPointView, ...]
    controls: tuple[ControlView, ...]
    axes: tuple[str, ...]
    prompt: bool
    image: bool


class Worlds(WireModel):
    """Answer of `GET /v1/worlds`, and where browsers go for media if not to this service."""

    worlds: tuple[WorldView, ...]
    media_server: str | None = None


class Problem(WireModel):
    """RFC 9457 `application/problem+json`."""

    type: str = "about:blank"
    title: str
    status: int
    code: str
    detail: str
    field: str | None = None
    session_id: str | None = None


class Health(WireModel):
    """Answer of `/healthz`."""

    status: Literal["ok"] = "ok"


class Readiness(WireModel):
    """Answer of `/readyz`: 200 when ready, else 503 with the cold-start stage."""

    ready: bool
    stage: str
    progress: float | None = None


class QueuedEvent(WireModel):
    """Waiting; sent whenever one of the numbers changes."""

    event: Literal["queued"] = "queued"
    queue_position: Count
    eta_seconds: float | None = None


class AdmittedEvent(WireModel):
    """A seat is ready, for this long."""

    event: Literal["admitted"] = "admitted"
    claim_seconds: float


class StateEvent(WireModel):
    """The session moved."""

    event: Literal["state"] = "state"
    state: State
    stage: str | None = None


class EndedEvent(WireModel):
    """The last event of a session."""

    event: Literal["ended"] = "ended"
    reason: EndReason
    played_seconds: float = 0.0


SessionEvent = Annotated[
    QueuedEvent | AdmittedEvent | StateEvent | EndedEvent, Field(discriminator="event")
]
SESSION_EVENT: TypeAdapter[SessionEvent] = TypeAdapter(SessionEvent)
