"""A scripted player: aiortc at the far end, speaking the protocol of the page.

It needs only a callable that takes an offer and returns the answer, so it serves tests of the
transport alone and tests over HTTP alike. aiortc shows a picture only when the next one begins to
arrive, so this player is one frame behind a browser.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import re
import time
import uuid
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from aiortc import RTCConfiguration, RTCDataChannel, RTCPeerConnection, RTCSessionDescription
from aiortc.mediastreams import MediaStreamError, MediaStreamTrack
from numpy.typing import NDArray

from server.protocol.keys import Keys
from server.protocol.status import STATUS, Ack, Error, Frames, StatusMessage
from server.transports.addresses import media_addresses
from server.transports.base import Topic

KEPT = 2048
REPEATS_SECONDS = (0.02, 0.02, 0.04)  # at 20, 40 and 80 ms after a change
HELD_EVERY_SECONDS, IDLE_EVERY_SECONDS = 0.1, 0.5

Candidates = Literal["own", "mdns", "dead", "none"]


@dataclass
class ShownFrame:
    """One decoded picture; receipt and frame id are filled in once the offset is known."""

    rgb: NDArray[np.uint8]  # [height, width, 3]
    rtp_timestamp: int
    at: float  # monotonic seconds
    receipt: int | None = None
    frame_id: int | None = None


class ReceiptClock:
    """Solves `rtp timestamp - pts`, constant modulo 2**32, from at least three agreeing frames."""

    def __init__(self) -> None:
        self.offset: int | None = None
        self._votes: Counter[int] = Counter()
        self._by_pts: dict[int, tuple[int, int]] = {}
        self._stamps: deque[int] = deque(maxlen=64)

    @property
    def told_frames(self) -> list[int]:
        """Ids of the frames that receipts came for, oldest first."""
        return [frame_id for _, frame_id in self._by_pts.values()]

    def told(self, pts: int, receipt: int, frame_id: int) -> None:
        self._by_pts[pts] = (receipt, frame_id)
        if len(self._by_pts) > KEPT:
            del self._by_pts[next(iter(self._by_pts))]
        if self.offset is None:
            self._vote((stamp - pts) % 2**32 for stamp in self._stamps)

    def shown(self, stamp: int) -> None:
        self._stamps.append(stamp)
        if self.offset is None:
            self._vote((stamp - pts) % 2**32 for pts in list(self._by_pts)[-64:])

    def lookup(self, stamp: int) -> tuple[int, int] | None:
        """(receipt, frame id) of a picture, or None where it is not known."""
        return None if self.offset is None else self._by_pts.get((stamp - self.offset) % 2**32)

    def _vote(self, offsets: Any) -> None:
        self._votes.update(offsets)
        best = self._votes.most_common(2)
        if best and best[0][1] >= 3 and (len(best) == 1 or best[0][1] > best[1][1]):
            self.offset = best[0][0]


@dataclass
class RtcPlayer:
    """One connection of a player. `candidates` says what its offer tells of its addresses."""

    nonce: int = field(default_factory=lambda: random.randrange(1, 2**32))
    candidates: Candidates = "own"
    end_of_candidates: bool = True
    addresses: tuple[str, ...] = ("127.0.0.1",)
    decode: bool = True

    def __post_init__(self) -> None:
        self.pc = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        self.pc.addTransceiver("video", direction="recvonly")
        self.pc.on("track", self._got_track)
        self.pc.on("connectionstatechange", self._tell)
        self.channels: dict[Topic, RTCDataChannel] = {
            Topic.KEYS: self.pc.createDataChannel(Topic.KEYS, ordered=False, maxRetransmits=0),
            Topic.COMMAND: self.pc.createDataChannel(Topic.COMMAND),
            Topic.STATUS: self.pc.createDataChannel(Topic.STATUS),
        }
        for channel in self.channels.values():
            channel.on("open", self._tell)
            channel.on("close", self._tell)
        self.channels[Topic.STATUS].on("message", self._got_status)
        self.frames: deque[ShownFrame] = deque(maxlen=KEPT)
        self.statuses: deque[StatusMessage] = deque(maxlen=KEPT)
        self.status_at: deque[float] = deque(maxlen=KEPT)
        self.clock = ReceiptClock()
        self.epoch = 0
        self.seq = 0
        self.held: tuple[str, ...] = ()
        self.presses: dict[str, int] = {}
        self.axes: dict[str, float] = {}
        self.frozen = False
        self._answers: dict[str, asyncio.Future[Ack | Error]] = {}
        self._ids = itertools.count(1)
        self._news = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._repeater: asyncio.Task[None] | None = None

    # ------------------------------------------------------------------ connecting
    async def offer(self) -> str:
        """The SDP offer, gathered and rewritten as `candidates` says."""
        with media_addresses(self.addresses):
            await self.pc.setLocalDescription(await self.pc.createOffer())
        return rewrite(self.pc.localDescription.sdp, self.candidates, self.end_of_candidates)

    async def connect(self, connect: Callable[[str], Awaitable[str]]) -> None:
        """Offer, be answered, and wait until media and channels are up."""
        await self.apply(await connect(await self.offer()))
        await self.until(lambda: self.up)

    async def apply(self, answer: str) -> None:
        """Take the answer; without this the player stays silent."""
        await self.pc.setRemoteDescription(RTCSessionDescription(answer, "answer"))

    @property
    def up(self) -> bool:
        open_ = all(channel.readyState == "open" for channel in self.channels.values())
        return self.pc.connectionState == "connected" and open_

    @property
    def closed(self) -> bool:
        """The other side has ended it."""
        channel = self.channels[Topic.STATUS]
        return channel.readyState == "closed" or self.pc.connectionState in ("closed", "failed")

    async def until(self, seen: Callable[[], bool], seconds: float = 15.0) -> None:
        """Wait for something that this player can see."""
        try:
            async with asyncio.timeout(seconds):
                while not seen():
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise TimeoutError(
                f"{self.pc.connectionState}, {len(self.frames)} frames,"
                f" last statuses {list(self.statuses)[-8:]}"
            ) from None

    # ------------------------------------------------------------------ speaking
    async def hello(self, seconds: float = 15.0) -> Ack:
        """Introduce this connection, every 250 ms until it is acknowledged."""
        answer = await self.ask("hello", again=0.25, seconds=seconds, nonce=self.nonce, version=1)
        assert isinstance(answer, Ack), answer
        return answer

    async def ask(
        self, kind: str, *, again: float | None = None, seconds: float = 15.0, **fields: object
    ) -> Ack | Error:
        """Send a command and wait for its `ack` or `error`."""
        name = f"{self.nonce}-{next(self._ids)}"
        body = {"type": kind, "id": name, **fields}
        answer = self._answers[name] = asyncio.get_running_loop().create_future()
        async with asyncio.timeout(seconds):
            while not answer.done():
                self.command(body)
                await asyncio.wait([answer], timeout=again)
        result: Ack | Error = answer.result()
        return result

    def command(self, body: dict[str, object]) -> None:
        """Send a command, right or wrong, and wait for nothing."""
        self.send(Topic.COMMAND, json.dumps(body))

    def send(self, topic: Topic, payload: str | bytes) -> None:
        """Send raw bytes or text."""
        channel = self.channels[topic]
        if channel.readyState == "open":
            channel.send(payload)

    def keys(self, *held: str, axes: dict[str, float] | None = None) -> int:
        """Change what is held; what is new counts as pressed. Repeats itself; returns the seq."""
        for code in held:
            if code not in self.held:
                self.presses[code] = self.presses.get(code, 0) + 1
        self.held, self.axes = held, axes or {}
        return self._changed()

    def tap(self, code: str) -> int:
        """Press and release within one state: only the counter tells."""
        self.presses[code] = self.presses.get(code, 0) + 1
        return self._changed()

    def receipt(self, seq: int | None = None) -> int:
        """The receipt that a frame showing `seq` (default: the newest) carries."""
        return self.nonce << 32 | (self.seq if seq is None else seq)

    def _changed(self) -> int:
        self.seq += 1
        if self._repeater is not None:
            self._repeater.cancel()
        self._repeater = self._start(self._repeat())
        return self.seq

    async def _repeat(self) -> None:
        self.send_keys()
        for pause in REPEATS_SECONDS:
            await asyncio.sleep(pause)
            self.send_keys()
        while True:
            active = bool(self.held or self.axes)
            await asyncio.sleep(HELD_EVERY_SECONDS if active else IDLE_EVERY_SECONDS)
            self.send_keys()

    def send_keys(self) -> None:
        """Send the present state once."""
        state = {"epoch": self.epoch, "nonce": self.nonce, "seq": self.seq, "held": self.held}
        message = Keys.model_validate({**state, "presses": self.presses, "axes": self.axes})
        self.send(Topic.KEYS, message.model_dump_json())

    # ------------------------------------------------------------------ hearing
    def of(self, kind: str) -> list[StatusMessage]:
        """The statuses of one type, oldest first."""
        return [message for message in self.statuses if message.type == kind]

    async def frame(
        self, wanted: Callable[[ShownFrame], bool], seconds: float = 15.0
    ) -> ShownFrame:
        """The first frame, of those kept, that is as wanted."""
        await self.until(lambda: any(wanted(frame) for frame in self.frames), seconds)
        return next(frame for frame in self.frames if wanted(frame))

    def _got_status(self, payload: str | bytes) -> None:
        message = STATUS.validate_json(payload)
        if isinstance(message, Frames):
            for told in message.frames:
                self.clock.told(told.pts, told.receipt, told.frame_id)
            self._fill_in()
        else:
            self.statuses.append(message)
            self.status_at.append(time.monotonic())
        if isinstance(message, Ack):
            self.epoch = message.epoch
        if isinstance(message, Ack | Error):
            answer = self._answers.get(message.id or "")
            if answer is not None and not answer.done():
                answer.set_result(message)
        self._tell()

    def _got_track(self, track: MediaStreamTrack) -> None:
        self._start(self._watch(track))

    async def _watch(self, track: MediaStreamTrack) -> None:
        empty = np.zeros((0, 0, 3), np.uint8)
        while True:
            try:
                picture = await track.recv()
            except MediaStreamError:
                return
            stamp = int(picture.pts or 0) % 2**32
            rgb = picture.to_ndarray(format="rgb24") if self.decode else empty  # type: ignore[union-attr]
            self.frames.append(ShownFrame(rgb, stamp, time.monotonic()))
            self.clock.shown(stamp)
            self._fill_in()
            self._tell()

    def _fill_in(self) -> None:
        for frame in reversed(self.frames):
            if frame.receipt is not None:
                break
            if known := self.clock.lookup(frame.rtp_timestamp):
                frame.receipt, frame.frame_id = known

    def _tell(self) -> None:
        self._news.set()

    def _start(self, work: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # ------------------------------------------------------------------ leaving
    def freeze(self) -> None:
        """Like SIGSTOP: nothing is read from the sockets any more and nothing is sent."""
        self.frozen = True
        loop: Any = asyncio.get_running_loop()
        for connection in self._ice():
            for protocol in connection._protocols:
                loop._remove_reader(protocol.transport._sock_fd)
                protocol.transport.sendto = lambda *_: None

    def mute(self) -> None:
        """Nothing is sent any more but the checks of ICE."""

        async def unsent(data: bytes, component: int) -> None:
            return None

        for connection in self._ice():
            connection.sendto = unsent

    def lose(self, everything: bool) -> None:
        """All datagrams that arrive are lost, or no longer; ICE goes on."""
        for connection in self._ice():
            if everything:
                connection.data_received = lambda *_: None
            else:
                del connection.data_received

    def thaw(self) -> None:
        """Like SIGCONT."""
        self.frozen = False
        loop: Any = asyncio.get_running_loop()
        for connection in self._ice():
            for protocol in connection._protocols:
                transport = protocol.transport
                loop._add_reader(transport._sock_fd, transport._read_ready)
                del transport.sendto

    async def vanish(self) -> None:
        """Like kill -9: the sockets close without a word."""
        self.freeze()
        await self.aclose()

    async def aclose(self) -> None:
        """Say goodbye and free everything; may be called twice."""
        for task in list(self._tasks):
            task.cancel()
        await self.pc.close()
        if self._tasks:
            await asyncio.wait(list(self._tasks))

    def _ice(self) -> list[Any]:
        found = [t.receiver.transport.transport._connection for t in self.pc.getTransceivers()]
        return list(dict.fromkeys(found))


def rewrite(sdp: str, candidates: Candidates, end_of_candidates: bool) -> str:
    """An offer as another client would have written it."""
    lines = []
    for line in sdp.splitlines():
        if line == "a=end-of-candidates" and not end_of_candidates:
            continue
        if line.startswith("a=candidate:"):
            fields = line.split(" ")
            if candidates == "none":
                continue
            if candidates == "mdns":
                fields[4] = f"{uuid.uuid4()}.local"
            if candidates == "dead":
                fields[4:6] = ["127.0.0.1", "9"]
            line = " ".join(fields)
        if candidates in ("mdns", "none", "dead"):
            line = re.sub(r"^c=IN IP4 .*", "c=IN IP4 0.0.0.0", line)
        lines.append(line)
    return "\r\n".join(lines) + "\r\n"
