"""When each picture of a session is published (DESIGN §9.3).

Decode hands over a chunk's pictures in bursts; a player wants them evenly. Pure: pictures and `now`
(monotonic seconds) in, publish times out. The shell sleeps until `next_due`, then calls `pop_due`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Generic, TypeVar

Media = TypeVar("Media")

IDLE_FPS: Final = 5.0
ON_TIME_SECONDS: Final = 1e-6  # two sums of the same intervals differ by less


@dataclass(frozen=True)
class PacedFrame(Generic[Media]):
    """One picture to publish now."""

    media: Media
    frame_id: int  # grows by one per new picture of the session, across epochs; from 1
    epoch: int
    chunk: int
    receipt: int
    due: float  # on the publish clock; the shell may be a little later
    repeated: bool = False  # the same picture, under the same id, as the one before


@dataclass(frozen=True)
class _Waiting(Generic[Media]):
    media: Media
    epoch: int
    chunk: int
    receipt: int


class Pacer(Generic[Media]):
    """The publish clock of one session.

    The interval is `1 / fps`, or longer where chunks cannot come that fast: then `period_seconds`,
    the predicted time between two chunks, is spread evenly over the pictures of one. A picture
    that comes too late is published at once and the clock goes on from there; nothing is ever
    made up for by playing faster.

    `restarts`, `repeats`, `dropped_stale` and `dropped_overflow` count what was not plain play.
    """

    def __init__(
        self,
        fps: float,
        frames_per_chunk: int,
        *,
        epoch: int = 0,
        reserve_frames: int | None = None,
        idle_fps: float = IDLE_FPS,
    ) -> None:
        """Nothing is shown before the first picture.

        Args:
            fps: Of the world, while it keeps up.
            frames_per_chunk: Of a full chunk.
            epoch: Of the session; pictures of an older one are dropped.
            reserve_frames: How many pictures may wait beside one whole chunk; one more chunk if
                None. Beyond it the oldest ones are skipped.
            idle_fps: How often the last picture is repeated while there is no new one.
        """
        if not fps > 0 or frames_per_chunk < 1 or not idle_fps > 0:
            raise ValueError("fps, frames_per_chunk and idle_fps are positive")
        self.restarts = 0  # an interval was longer than it should be: the world was late, or idle
        self.repeats = 0
        self.dropped_stale = 0  # of an older epoch
        self.dropped_overflow = 0
        self._nominal = 1.0 / fps
        self._interval = self._nominal
        self._frames_per_chunk = frames_per_chunk
        reserve = frames_per_chunk if reserve_frames is None else reserve_frames
        self._room = frames_per_chunk + reserve
        self._idle_interval = 1.0 / idle_fps
        self._epoch = epoch
        self._waiting: deque[_Waiting[Media]] = deque()
        self._expected: dict[int, int] = {}  # chunk -> pictures still to come
        self._shown_slot: float | None = None  # when the last new picture was due
        self._not_before = 0.0  # the next one came that late
        self._last: PacedFrame[Media] | None = None
        self._last_at = 0.0
        self._frame_id = 0

    @property
    def interval(self) -> float:
        """Seconds between two new pictures."""
        return self._interval

    @property
    def epoch(self) -> int:
        """Whose pictures are published."""
        return self._epoch

    @property
    def buffered(self) -> int:
        """Pictures that have come and are not published yet."""
        return len(self._waiting)

    def set_period(self, period_seconds: float | None) -> None:
        """The predicted time between two chunks, without any that was waited by choice.

        It counts at once: from the picture that is shown to the next one.
        """
        spread = (period_seconds or 0.0) / self._frames_per_chunk
        self._interval = max(self._nominal, spread)

    def expect(self, chunk: int, frames: int) -> None:
        """Chunk `chunk` of this epoch was granted; its pictures count in `playout_end` already."""
        self._expected[chunk] = frames

    def push(
        self,
        frames: Sequence[Media],
        *,
        epoch: int,
        chunk: int,
        receipt: int,
        now: float,
        last: bool = True,
    ) -> None:
        """Take pictures as decode emits them; `last` closes the chunk.

        A newer epoch drops what waits of the older one.
        """
        if epoch < self._epoch:
            self.dropped_stale += len(frames)
            return
        if epoch > self._epoch:
            self.reset(epoch)
        left = self._expected.pop(chunk, 0) - len(frames)
        if left > 0 and not last:
            self._expected[chunk] = left
        if frames and not self._waiting:
            self._arrive(now)
        self._waiting.extend(_Waiting(media, epoch, chunk, receipt) for media in frames)
        overflow = max(0, len(self._waiting) - self._room)
        for _ in range(overflow):
            self._waiting.popleft()
        self.dropped_overflow += overflow

    def reset(self, epoch: int) -> None:
        """The session begins again: waiting pictures are dropped, the last one stands."""
        self._epoch = epoch
        self.dropped_stale += len(self._waiting)
        self._waiting.clear()
        self._expected.clear()

    def forget_expected(self) -> None:
        """Granted chunks failed or were aborted: none of their pictures will come any more."""
        self._expected.clear()

    def playout_end(self, now: float) -> float:
        """When all that was pushed or is expected will have been shown; not before `now`.

        The next chunk's first picture is due then. Each picture counts with its whole interval.
        """
        due = self._slot(now)
        if not self._waiting or now - due > self._interval:  # the clock will restart at `now`
            due = max(now, due)
        ahead = len(self._waiting) + sum(self._expected.values())
        return due + ahead * self._interval

    def next_due(self, now: float) -> float | None:
        """When `pop_due` will have a picture, if nothing is pushed before; None for never."""
        if self._waiting:
            slot = self._slot(now)
            return slot if self._last is None else min(slot, self._repeat_at(slot))
        return None if self._last is None else self._last_at + self._idle_interval

    def pop_due(self, now: float) -> PacedFrame[Media] | None:
        """The picture to publish now, if one is due: a new one, or the last one again."""
        due = self.next_due(now)
        if due is None or due > now + ON_TIME_SECONDS:
            return None
        slot = self._slot(now)
        if self._waiting and slot <= now + ON_TIME_SECONDS:
            return self._publish_new(slot, now)
        assert self._last is not None
        self.repeats += 1
        self._last_at = now
        return replace(self._last, due=due, repeated=True)

    def _publish_new(self, slot: float, now: float) -> PacedFrame[Media]:
        head = self._waiting.popleft()
        self._frame_id += 1
        if now - slot > self._interval:  # the shell slept too long: no burst to make up for it
            self.restarts += 1
            slot = now
        frame = PacedFrame(head.media, self._frame_id, head.epoch, head.chunk, head.receipt, slot)
        self._shown_slot = slot
        self._last, self._last_at = frame, now
        return frame

    def _slot(self, now: float) -> float:
        """When the next new picture is due: one interval after the last one, or when it came."""
        if self._shown_slot is None:
            return self._not_before if self._waiting else now
        return max(self._shown_slot + self._interval, self._not_before)

    def _arrive(self, now: float) -> None:
        """Pictures come and none waits: if they are late, the clock restarts here."""
        if self._shown_slot is not None and now > self._slot(now) + ON_TIME_SECONDS:
            self.restarts += 1
        self._not_before = now

    def _repeat_at(self, slot: float) -> float:
        """When to repeat the last picture so that the new one in `slot` is not crowded."""
        at = self._last_at + self._idle_interval
        return at if slot - at >= self._idle_interval - ON_TIME_SECONDS else slot
