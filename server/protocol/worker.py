"""Messages between the front door and a worker: plain data, whatever carries them.

The front door owns a session's life (`admission/session.py`); a worker does what it is told and
reports facts. Every request is answered by exactly one reply with its `id`; events have none.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Literal, Protocol

from pydantic import Base64Bytes, Field, JsonValue, TypeAdapter

from admission.session import EndReason
from server.protocol.base import WireModel
from server.protocol.http import Connect, Connection, ControlView, IceServer


# ------------------------------------------------------------------ configuration
class ImpairmentConfig(WireModel):
    """A bad network for `keys` messages, in tests: chances of each fate, drawn from `seed`."""

    seed: int = 0
    loss: float = Field(default=0.0, ge=0, le=1)
    duplicate: float = Field(default=0.0, ge=0, le=1)
    delay: float = Field(default=0.0, ge=0, le=1)


class LiveKitConfig(WireModel):
    """What `server.transports.livekit.LiveKitAddress` is made of; one field each, same names."""

    url: str
    public_url: str
    api_key: str
    api_secret: str = Field(repr=False)
    room_prefix: str
    empty_seconds: int = Field(gt=0)
    departure_seconds: int = Field(gt=0)


class TransportConfig(WireModel):
    """What `server.transports.TransportSettings` is made of; one field each, same names."""

    bind_host: str = "127.0.0.1"
    media_addresses: tuple[str, ...] = ()
    ice_servers: tuple[IceServer, ...] = ()
    connect_seconds: float = Field(default=30.0, gt=0)
    lost_seconds: float = Field(default=8.0, gt=0)
    bitrate: int = Field(default=3_000_000, gt=0)
    livekit: LiveKitConfig | None = None
    impair: ImpairmentConfig | None = None


class WorkerConfig(WireModel):
    """All that a worker needs to know; the first frame that its process reads."""

    worker_id: str = "worker-0"
    world: str = "tiny"
    world_options: dict[str, JsonValue] = Field(default={})
    transport: Literal["webrtc", "livekit", "memory"] = "webrtc"
    transport_settings: TransportConfig = TransportConfig()
    seats: int = Field(default=4, ge=1)
    stage_deadline_seconds: float = Field(default=30.0, gt=0)  # one invocation; then it is hung
    torch_threads: int = Field(default=1, ge=1)  # intra-op, of each actor
    log_level: Literal["debug", "info", "warning", "error"] = "info"


class StartChoice(WireModel):
    """What the session begins from, checked against the world's capabilities by the front door."""

    start_point: str | None = None
    prompt: str | None = None
    image: Base64Bytes | None = None
    seed: int = 0


# ------------------------------------------------------------------ front door → worker
class ConnectSession(WireModel):
    """Let a player join. The first one makes the session; later ones are reconnects."""

    type: Literal["connect"] = "connect"
    session: str
    start: StartChoice
    body: Connect
    connect_seconds: float
    watch: bool = False  # as a spectator: that makes no session


class CloseSession(WireModel):
    """End a session: stop, release its model state, tell its players why."""

    type: Literal["close"] = "close"
    session: str
    reason: EndReason


class CheckRoom(WireModel):
    """LiveKit seems to know otherwise who is in a session's room: look, and go on from there."""

    type: Literal["check_room"] = "check_room"
    session: str


class Shutdown(WireModel):
    """Close every session and exit within `seconds`."""

    type: Literal["shutdown"] = "shutdown"
    seconds: float


class Ping(WireModel):
    """Answered by the event loop; a worker that does not answer is hung."""

    type: Literal["ping"] = "ping"


WorkerRequest = Annotated[
    ConnectSession | CloseSession | CheckRoom | Shutdown | Ping, Field(discriminator="type")
]


# ------------------------------------------------------------------ replies
class Connected(WireModel):
    """The player may join with this."""

    type: Literal["connected"] = "connected"
    connection: Connection


class Closed(WireModel):
    """The session holds nothing any more; `clean` is False where releasing it failed."""

    type: Literal["closed"] = "closed"
    session: str
    clean: bool


class Done(WireModel):
    """Nothing more to say."""

    type: Literal["done"] = "done"


class Failure(WireModel):
    """The request was refused or failed; nothing else changed."""

    type: Literal["failure"] = "failure"
    code: str
    message: str
    field: str | None = None


WorkerReply = Annotated[Connected | Closed | Done | Failure, Field(discriminator="type")]


# ------------------------------------------------------------------ worker → front door
class StartPointContent(WireModel):
    """A start point with its PNG."""

    name: str
    title: str
    picture: Base64Bytes = Field(repr=False)


class WorldContent(WireModel):
    """Capabilities of the loaded world (`pipeline.service.WorldInfo`)."""

    name: str
    title: str
    about: str
    width: int
    height: int
    fps: float
    frames_per_chunk: int
    start_points: tuple[StartPointContent, ...]
    controls: tuple[ControlView, ...]
    axes: tuple[str, ...]
    prompt: bool
    image: bool


class Loading(WireModel):
    """Cold start: what is being done, and the share done where it is known."""

    type: Literal["loading"] = "loading"
    stage: str
    progress: float | None = None


class Ready(WireModel):
    """The world is loaded and warm."""

    type: Literal["ready"] = "ready"
    world: WorldContent
    transport: Literal["webrtc", "livekit", "memory"]
    seats: int


class SessionFact(WireModel):
    """Something has happened to a session; the front door decides what follows.

    connected   a player's media and data channels are up
    starting    model state is being built; `stage` says which part
    running     the first frame of a new start is out
    lost        no player is connected any more
    paused / resumed   by the player's command
    active      the player gave input (at most once a second)
    ended       it cannot go on: `reason` is `stopped`, `world_failed` or `connect_failed`
    """

    type: Literal["session"] = "session"
    session: str
    fact: Literal[
        "connected", "starting", "running", "lost", "paused", "resumed", "active", "ended"
    ]
    stage: str | None = None
    reason: EndReason | None = None
    detail: str | None = None


class Sample(WireModel):
    """One number of the worker's metrics."""

    name: str
    labels: dict[str, str] = Field(default={})
    value: float


class Stats(WireModel):
    """The worker's metrics, pushed once a second."""

    type: Literal["stats"] = "stats"
    samples: tuple[Sample, ...]


class Fatal(WireModel):
    """The worker cannot work and exits; one sentence for the operator."""

    type: Literal["fatal"] = "fatal"
    code: str
    message: str


WorkerEvent = Annotated[Loading | Ready | SessionFact | Stats | Fatal, Field(discriminator="type")]


# ------------------------------------------------------------------ envelopes (process boundary)
class RequestEnvelope(WireModel):
    """A request on a byte stream."""

    id: int
    request: WorkerRequest


class ReplyEnvelope(WireModel):
    """Its reply."""

    id: int
    reply: WorkerReply


class EventEnvelope(WireModel):
    """An event on the same stream."""

    event: WorkerEvent


FromWorker: TypeAdapter[ReplyEnvelope | EventEnvelope] = TypeAdapter(ReplyEnvelope | EventEnvelope)


class WorkerPort(Protocol):
    """The only way from the front door to a worker."""

    @property
    def worker_id(self) -> str:
        """Stable for the life of this worker."""
        ...

    async def call(self, request: WorkerRequest) -> WorkerReply:
        """Ask and wait for the reply; raises `WorkerGone` if the worker dies first."""
        ...

    def events(self) -> AsyncIterator[WorkerEvent]:
        """Everything the worker reports, in order; ends when the worker is gone. One reader."""
        ...

    async def aclose(self) -> None:
        """Ask for shutdown, wait a bounded time, then kill. Idempotent."""
        ...


class WorkerGone(Exception):
    """The worker has died or hung; its sessions are lost."""

    code = "worker_gone"
