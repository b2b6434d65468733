"""A transport without a network: both ends in one process, for unit tests.

It keeps the rules of a real one (take-over, limits, one live connection), so that what works
against it works against the others. `MemoryPlayer` is the far end.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import deque
from collections.abc import Callable
from weakref import WeakValueDictionary

from server.protocol.command import COMMAND, Command
from server.protocol.keys import Keys
from server.protocol.status import StatusMessage
from server.transports.base import (
    ConnectAnswer,
    ConnectOffer,
    I420Frame,
    Identity,
    LeaveReason,
    Topic,
    TransportClosed,
    TransportSink,
)
from server.transports.direct import NoAudience
from server.transports.gate import Gate
from server.transports.impairment import Impaired, Impairment
from server.transports.settings import TransportSettings
from server.transports.succession import Succession, replaced

KEPT = 4096  # frames and messages that a player remembers

_places = itertools.count(1)
_pending: WeakValueDictionary[str, _Place] = WeakValueDictionary()


class _Place:
    """A connection that a player may come up on, known by its address."""

    def __init__(self, transport: MemoryTransport, who: Identity) -> None:
        self.transport = transport
        self.who = who
        self.player: MemoryPlayer | None = None
        self.gate = Gate(transport.clock())
        self.impaired = Impaired(transport.settings.impair)
        self.limit: asyncio.TimerHandle | None = None


class MemoryTransport(NoAudience):
    """One session's players in this process. `clock` is monotonic seconds."""

    def __init__(
        self,
        session: str,
        sink: TransportSink,
        settings: TransportSettings | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.session = session
        self.settings = settings or TransportSettings()
        self.clock = clock
        self.frames_dropped = 0
        self._sink = sink
        self._succession = Succession()
        self._places: dict[Identity, _Place] = {}
        self._closed = False

    async def connect(self, offer: ConnectOffer) -> ConnectAnswer:
        """Make a place for a player; the answer's `url` is what `MemoryPlayer.join` takes."""
        if self._closed:
            raise TransportClosed("this session is closed")
        who, displaced = self._succession.admit(offer.take_over, self.clock())
        for old in displaced:
            self._end(old, LeaveReason.REPLACED)
        place = self._places[who] = _Place(self, who)
        url = f"memory:{next(_places)}"
        _pending[url] = place
        place.limit = asyncio.get_running_loop().call_later(
            self.settings.connect_seconds, self._gone, who, LeaveReason.FAILED
        )
        return ConnectAnswer("memory", {"url": url})

    def send_frame(self, frame: I420Frame) -> bool:
        """Hand one picture to the live player; False where it does not read."""
        player = self._live_player()
        if player is None or not player._take_frame(frame):
            self.frames_dropped += 1
            return False
        return True

    def send_message(self, message: StatusMessage, to: Identity | None = None) -> bool:
        """Hand a message to the live player, or to nobody where `to` is another one."""
        player = self._live_player()
        if player is None or (to is not None and to != self._succession.live):
            return False
        return player._take_message(message)

    async def aclose(self) -> None:
        """Close every connection; the sink hears nothing more."""
        self._closed = True
        for who in self._succession.known:
            self._succession.gone(who)
            self._detach(who, LeaveReason.CLOSED)

    def _live_player(self) -> MemoryPlayer | None:
        live = self._succession.live
        return self._places[live].player if live is not None else None

    def _came_up(self, place: _Place, player: MemoryPlayer) -> None:
        if self._places.get(place.who) is not place or place.player is not None:
            raise ConnectionError("this connection is gone")
        if place.limit:
            place.limit.cancel()
        place.player = player
        for old in self._succession.came_up(place.who, self.clock()):
            self._end(old, LeaveReason.REPLACED)
        self._sink.joined(place.who)

    def _arrived(self, place: _Place, topic: Topic, payload: bytes) -> None:
        now = self.clock()
        if self._places.get(place.who) is not place:
            raise ConnectionError("this connection is gone")
        self._succession.heard(place.who, now)
        arriving = place.impaired.arriving(payload) if topic is Topic.KEYS else (payload,)
        for bytes_ in arriving:
            if place.gate.admits(topic, len(bytes_), now):
                self._sink.received(place.who, topic, bytes_)
        if place.player is not None:
            for error in place.gate.refusals(now):
                place.player._take_message(error)

    def _gone(self, who: Identity, reason: LeaveReason) -> None:
        if self._succession.gone(who):
            self._end(who, reason)

    def _end(self, who: Identity, reason: LeaveReason) -> None:
        self._detach(who, reason)
        self._sink.left(who, reason)

    def _detach(self, who: Identity, reason: LeaveReason) -> None:
        place = self._places.pop(who)
        if place.limit:
            place.limit.cancel()
        if place.player is not None:
            if reason is LeaveReason.REPLACED:
                place.player._take_message(replaced())
            place.player._closed_with(reason)


class MemoryPlayer:
    """A scripted player on a `MemoryTransport`.

    What it receives stands in `frames` and `messages`, newest last; `next_frame` and
    `next_message` take what has not been taken yet, waiting where they must.
    """

    def __init__(self, *, nonce: int = 1, impair: Impairment | None = None) -> None:
        self.nonce = nonce
        self.epoch = 0
        self.seq = 0
        self.frames: deque[I420Frame] = deque(maxlen=KEPT)
        self.messages: deque[StatusMessage] = deque(maxlen=KEPT)
        self.closed: LeaveReason | None = None
        self.reads = True  # False: like a peer whose socket is not read
        self._impaired = Impaired(impair)
        self._place: _Place | None = None
        self._new_frames: deque[I420Frame] = deque(maxlen=KEPT)
        self._new_messages: deque[StatusMessage] = deque(maxlen=KEPT)
        self._news = asyncio.Event()
        self._commands = itertools.count(1)

    @property
    def who(self) -> Identity:
        """What the transport calls this player."""
        return Identity("") if self._place is None else self._place.who

    def join(self, answer: ConnectAnswer | str) -> None:
        """Come up on the place that `answer` (or its `url`) names; the sink hears `joined`."""
        url = answer if isinstance(answer, str) else answer.details["url"]
        place = _pending.pop(str(url), None)
        if place is None:
            raise ConnectionError("nobody waits there")
        self._place = place
        place.transport._came_up(place, self)

    async def connect(self, transport: MemoryTransport, *, take_over: bool = False) -> None:
        """Ask `transport` for a place and come up on it."""
        self.join(await transport.connect(ConnectOffer(take_over=take_over)))

    def send(self, topic: Topic, payload: bytes) -> None:
        """Send raw bytes."""
        place = self._joined()
        arriving = self._impaired.arriving(payload) if topic is Topic.KEYS else (payload,)
        for bytes_ in arriving:
            place.transport._arrived(place, topic, bytes_)

    def hello(self) -> str:
        """Introduce this connection; returns the command's id."""
        return self.command({"type": "hello", "nonce": self.nonce, "version": 1})

    def command(self, body: dict[str, object]) -> str:
        """Send a command (its `id` is added where missing); returns its id."""
        command: Command = COMMAND.validate_python({"id": f"c{next(self._commands)}", **body})
        self.send(Topic.COMMAND, command.model_dump_json().encode())
        return command.id

    def keys(
        self,
        *held: str,
        presses: dict[str, int] | None = None,
        axes: dict[str, float] | None = None,
        repeat: bool = False,
        copies: int = 1,
    ) -> int:
        """Send the control state, `copies` times; returns its seq, a new one unless `repeat`."""
        if not repeat:
            self.seq += 1
        state = {"epoch": self.epoch, "nonce": self.nonce, "seq": self.seq, "held": held}
        message = Keys.model_validate({**state, "presses": presses or {}, "axes": axes or {}})
        for _ in range(copies):
            self.send(Topic.KEYS, message.model_dump_json().encode())
        return self.seq

    async def next_frame(self) -> I420Frame:
        """The oldest frame not taken yet."""
        while not self._new_frames:
            await self._wait()
        return self._new_frames.popleft()

    async def next_message(self, kind: str | None = None) -> StatusMessage:
        """The oldest message not taken yet, of this `type` where given; skips others."""
        while True:
            while not self._new_messages:
                await self._wait()
            message = self._new_messages.popleft()
            if kind is None or message.type == kind:
                return message

    def leave(self) -> None:
        """Say goodbye."""
        place = self._joined()
        place.transport._gone(place.who, LeaveReason.CLOSED)

    def vanish(self) -> None:
        """Disappear without a word; the transport finds out at once."""
        place = self._joined()
        place.transport._gone(place.who, LeaveReason.LOST)

    def _joined(self) -> _Place:
        if self._place is None:
            raise ConnectionError("this player has not joined")
        return self._place

    async def _wait(self) -> None:
        if self.closed is not None:
            raise ConnectionError(f"the connection is {self.closed}")
        self._news.clear()
        await self._news.wait()

    def _take_frame(self, frame: I420Frame) -> bool:
        if self.reads:
            self.frames.append(frame)
            self._new_frames.append(frame)
            self._news.set()
        return self.reads

    def _take_message(self, message: StatusMessage) -> bool:
        if self.reads:
            self.messages.append(message)
            self._new_messages.append(message)
            self._news.set()
        return self.reads

    def _closed_with(self, reason: LeaveReason) -> None:
        self.closed = reason
        self._news.set()
