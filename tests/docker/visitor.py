"""A player on another machine: plays a moment and prints as JSON what it saw.

`python -m tests.docker.visitor URL`
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import httpx
from livekit import rtc

from tests.fakes.livekit_player import LiveKitPlayer

FRAMES = 12


async def visit(url: str) -> dict[str, Any]:
    """Open a session, hold W until the picture shows it, leave."""
    async with httpx.AsyncClient(base_url=url, timeout=30) as http:
        page = await http.get("/")
        created = (await http.post("/v1/sessions", json={})).raise_for_status().json()
        session = f"/v1/sessions/{created['session_id']}"
        secret = {"Authorization": f"Bearer {created['session_token']}"}
        player = LiveKitPlayer()
        try:
            answer = await http.post(f"{session}/connect", json={}, headers=secret)
            await player.join(answer.raise_for_status().json())
            await player.hello()
            receipt = await player.keys("KeyW")
            await player.until(lambda: shown(player, receipt) >= FRAMES, 60)
            through = await route(player.room)
        finally:
            await player.aclose()
            await http.delete(session, headers=secret)
    return {"page": page.status_code, "frames": shown(player, receipt), "route": through}


def shown(player: LiveKitPlayer, receipt: int) -> int:
    """Frames that show the key, or a later state of it."""
    return sum(frame.receipt >= receipt for frame in player.frames)


async def route(room: rtc.Room) -> str:
    """Where media come from at last: `udp 7882`, `tcp 7881`."""
    said = await room.get_rtc_stats()
    stats = [*said.publisher_stats, *said.subscriber_stats]
    pairs = [one.candidate_pair.candidate_pair for one in stats if one.HasField("candidate_pair")]
    used = {pair.remote_candidate_id for pair in pairs if pair.nominated}
    ends = [one.remote_candidate for one in stats if one.remote_candidate.rtc.id in used]
    return ", ".join(sorted({f"{end.candidate.protocol} {end.candidate.port}" for end in ends}))


if __name__ == "__main__":
    print(json.dumps(asyncio.run(visit(sys.argv[1]))))
