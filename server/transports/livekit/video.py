"""The track of a session: published once per room, with its first picture in it already.

Each picture carries its receipt and its id as frame metadata, so that whoever displays it knows
what it shows; its capture time tells those who cannot read them (capture.py).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from typing import Final

from livekit import rtc

from server.transports.base import I420Frame
from server.transports.livekit.capture import CaptureTimes

TRACK: Final = "world"
MAX_FPS: Final = 60.0
AGAIN_SECONDS: Final = 1.0  # after a publication that failed

log = logging.getLogger(__name__)


def publish_options(bitrate: int) -> rtc.TrackPublishOptions:
    """One VP8 layer at full size, whatever the network: a game wants no blur and no choice."""
    return rtc.TrackPublishOptions(
        source=rtc.TrackSource.SOURCE_CAMERA,
        video_codec=rtc.VideoCodec.VP8,
        simulcast=False,
        video_encoding=rtc.VideoEncoding(max_bitrate=bitrate, max_framerate=MAX_FPS),
        degradation_preference=rtc.DegradationPreference.MAINTAIN_RESOLUTION.value,
        frame_metadata_features=[
            rtc.FrameMetadataFeature.FMF_USER_TIMESTAMP,
            rtc.FrameMetadataFeature.FMF_FRAME_ID,
        ],
    )


class VideoOut:
    """Pictures into one room. Lives as long as the room's connection."""

    def __init__(self, participant: rtc.LocalParticipant, bitrate: int) -> None:
        self.counters: Counter[str] = Counter()
        self._participant = participant
        self._bitrate = bitrate
        self._source: rtc.VideoSource | None = None
        self._size = (0, 0)
        self._latest: I420Frame | None = None
        self._publication: rtc.LocalTrackPublication | None = None
        self._publishing: asyncio.Task[None] | None = None
        self._times = CaptureTimes()

    def offer(self, frame: I420Frame) -> int | None:
        """Show this picture now; its RTP time without an offset, or None where it is not shown.

        The first one is in the track before anybody can subscribe.
        """
        size = (frame.width, frame.height)
        if self._source is None:
            self._source, self._size = rtc.VideoSource(*size), size
            self._publishing = asyncio.create_task(self._publish(self._source))
        elif size != self._size:
            self.counters["frame_of_another_size"] += 1
            return None
        self._latest = frame
        return self._capture(self._source, frame)

    async def aclose(self) -> None:
        """Publish no more."""
        if self._publishing is not None:
            self._publishing.cancel()
            await asyncio.wait([self._publishing])
        if self._source is not None:
            await self._source.aclose()
        self._latest = None

    async def _publish(self, source: rtc.VideoSource) -> None:
        track = rtc.LocalVideoTrack.create_video_track(TRACK, source)
        while self._publication is None:
            try:
                self._publication = await self._participant.publish_track(
                    track, publish_options(self._bitrate)
                )
            except Exception as error:  # of the SDK: the room is reconnecting, or gone
                self.counters["publish_failed"] += 1
                log.warning("the picture could not be published: %s", error)
                await asyncio.sleep(AGAIN_SECONDS)
        if self._latest is not None:
            self._capture(source, self._latest)  # what came meanwhile had no encoder yet

    def _capture(self, source: rtc.VideoSource, frame: I420Frame) -> int:
        picture = rtc.VideoFrame(
            frame.width, frame.height, rtc.VideoBufferType.I420, frame.data.tobytes()
        )
        captured = self._times.next(time.monotonic())
        source.capture_frame(
            picture,
            timestamp_us=captured.timestamp_us,
            metadata=rtc.FrameMetadata(user_timestamp=frame.receipt, frame_id=frame.frame_id),
        )
        return captured.pts
