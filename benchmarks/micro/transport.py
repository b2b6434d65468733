"""What direct WebRTC costs: encoding, the event loop while connecting and playing, and delivery.

Both ends run in this process and on this loop, so the lag while playing contains the receiving
end's decoding of RTP too; a server alone has less. The floor of the lag is the timer itself.

    python -m benchmarks.micro.transport
"""

from __future__ import annotations

import asyncio
import json
import time

import numpy as np

from server.media.receipts import CLOCK_RATE
from server.transports.base import ConnectOffer, I420Frame, Identity, LeaveReason, Topic
from server.transports.settings import TransportSettings
from server.transports.vp8 import Vp8Encoder
from server.transports.webrtc import WebRtcTransport
from tests.fakes.rtc_client import RtcPlayer

FPS = 32
SECONDS = 6


class Silent:
    """A sink for nothing."""

    def joined(self, who: Identity) -> None:
        """Nothing to do."""

    def received(self, who: Identity, topic: Topic, payload: bytes) -> None:
        """Nothing to do."""

    def left(self, who: Identity, reason: LeaveReason) -> None:
        """Nothing to do."""


def picture(number: int, width: int, height: int) -> I420Frame:
    """A textured picture that pans by two pixels a frame."""
    texture = np.random.default_rng(0).integers(16, 235, (height // 8 + 1, width // 4)).astype("u1")
    wide = texture.repeat(8, 0)[:height].repeat(8, 1)
    data = np.full((height * 3 // 2, width), 128, np.uint8)
    shift = 2 * number % width
    data[:height] = wide[:, shift : shift + width]
    return I420Frame(data, width, height, number, number)


def encode_ms(width: int, height: int, fps: float) -> list[float]:
    """Milliseconds per picture, key frame first."""
    encoder, taken = Vp8Encoder(TransportSettings().bitrate), []
    for number in range(96):
        frame = picture(number, width, height)
        start = time.perf_counter()
        encoder.encode(frame, int(number * CLOCK_RATE / fps), keyframe=False)
        taken.append((time.perf_counter() - start) * 1e3)
    return taken


async def probe(lags: list[float]) -> None:
    """How much later than asked a 2 ms timer fires, in ms."""
    while True:
        start = time.perf_counter()
        await asyncio.sleep(0.002)
        lags.append((time.perf_counter() - start - 0.002) * 1e3)


async def playing() -> dict[str, float]:
    """Lag of the loop idle, connecting ten players in turn, and playing with one."""
    lags: dict[str, list[float]] = {"idle": [], "connecting": [], "playing": []}
    transport = WebRtcTransport("bench", Silent(), TransportSettings())

    async def answer(sdp: str) -> str:
        return str((await transport.connect(ConnectOffer(sdp, True))).details["sdp"])

    async def during(name: str) -> asyncio.Task[None]:
        task = asyncio.create_task(probe(lags[name]))
        await asyncio.sleep(0)
        return task

    probing = await during("idle")
    await asyncio.sleep(1)
    probing.cancel()
    probing = await during("connecting")
    up_ms = []
    for _ in range(10):
        player = RtcPlayer(decode=False)
        start = time.perf_counter()
        await player.connect(answer)
        up_ms.append((time.perf_counter() - start) * 1e3)
        await player.aclose()
    probing.cancel()
    player = RtcPlayer(decode=False)
    await player.connect(answer)
    frames = [picture(number, 256, 160) for number in range(FPS * SECONDS)]
    probing = await during("playing")
    due = time.perf_counter()
    for frame in frames:
        transport.send_frame(frame)
        due += 1 / FPS
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
    probing.cancel()
    arrived = [shown.at for shown in player.frames]
    intervals = np.diff(arrived) * 1e3
    await player.aclose()
    await transport.aclose()
    figures = {
        f"loop_lag_p99_ms_{name}": float(np.percentile(lag, 99)) for name, lag in lags.items()
    }
    figures |= {f"loop_lag_max_ms_{name}": max(lag) for name, lag in lags.items()}
    figures["connect_p50_ms"] = float(np.median(up_ms))
    figures["delivered_share"] = len(arrived) / len(frames)
    figures["interval_p99_minus_p50_ms"] = float(
        np.percentile(intervals, 99) - np.median(intervals)
    )
    return figures


def main() -> None:
    """Print a table for people, then one JSON line for scripts."""
    figures: dict[str, float] = {}
    for width, height, fps in ((256, 160, 32), (832, 464, 16)):
        taken = encode_ms(width, height, fps)
        name = f"{width}x{height}"
        figures[f"encode_p50_ms_{name}"] = float(np.median(taken))
        figures[f"encode_p95_ms_{name}"] = float(np.percentile(taken, 95))
        figures[f"encode_core_share_{name}_{fps}fps"] = float(np.mean(taken)) * fps / 1e3
    figures |= asyncio.run(playing())
    for figure, value in figures.items():
        print(f"{figure:40} {value:8.2f}")
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
