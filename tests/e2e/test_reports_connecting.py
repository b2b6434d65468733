"""Reported troubles of coming, and of going without a word. Scripted players, one server."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable

import numpy as np
import pytest

from pipeline.testworlds.marker import read_marker
from tests.e2e.scripted import Players, Session, becomes, players
from tests.e2e.server import ServerProcess
from tests.e2e.test_leaks import Held, settled
from tests.fakes.rtc_client import Candidates, RtcPlayer, ShownFrame

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]


async def seats_come_back(server: ServerProcess) -> None:
    """Wait until nobody is resident, and nothing of anybody is left."""

    async def free() -> bool:
        return server.metric("veldt_seats", state="free") == server.metric("veldt_seats_capacity")

    await becomes(free, 20)
    assert server.metric("veldt_seats", state="quarantined") == 0


@pytest.mark.parametrize(
    ("candidates", "end_of_candidates"),
    list(itertools.product(("mdns", "none", "dead"), (True, False))),
)
async def test_candidates_that_lead_nowhere_play_all_the_same(
    marker_server: ServerProcess, candidates: Candidates, end_of_candidates: bool
) -> None:
    """Row A1: names that nobody answers, or none at all; Firefox says where they end."""
    async with players(marker_server) as group:
        session = await group.open()
        player = RtcPlayer(candidates=candidates, end_of_candidates=end_of_candidates)
        async with asyncio.timeout(15):
            await session.play(player)
            await player.until(lambda: bool(player.frames))
    await seats_come_back(marker_server)


async def test_a_player_whose_checks_never_come_ends_in_words(marker_server: ServerProcess) -> None:
    """Row A1, where no way leads to the player: a reason within the limit, and the seat again."""
    async with players(marker_server) as group:
        session = await group.open()
        player = RtcPlayer(candidates="mdns")
        await session.answer(await player.offer())  # and the answer is never taken

        async def failed() -> bool:
            return (await session.view())["status"] == "failed"

        await becomes(failed, 20)
        assert (await session.view())["reason"] in ("connect_failed", "connect_timeout")
        await player.aclose()
        await seats_come_back(marker_server)


def audio_only(good: str) -> str:
    video = good.index("m=video")
    return good[:video] + good[video : good.index("m=application")].replace(
        "m=video", "m=audio"
    ).replace("VP8/90000", "opus/48000/2")


BAD_OFFERS: dict[str, tuple[Callable[[str], str], str]] = {
    "audio only": (audio_only, "one video line is expected, 0 found"),
    "two video lines": (
        lambda good: good + good[good.index("m=video") : good.index("m=application")],
        "one video line is expected, 2 found",
    ),
    "sendonly": (lambda good: good.replace("a=recvonly", "a=sendonly"), "it must receive"),
    "no data channel": (
        lambda good: good[: good.index("m=application")],
        "one data channel line is expected, 0 found",
    ),
    "sendonly for the session": (
        lambda good: good.replace("a=recvonly\r\n", "").replace(
            "m=video", "a=sendonly\r\nm=video", 1
        ),
        "it must receive",
    ),
    "empty": (lambda good: "", "the offer is empty"),
    "large": (lambda good: good + "a=x:" + "y" * 900_000 + "\r\n", "at most 65536 characters"),
    "too large": (lambda good: good + "a=x:" + "y" * 1_048_576 + "\r\n", "bytes"),
    "an answer": (
        lambda good: good.replace("a=setup:actpass", "a=setup:active"),
        "looks like an answer",
    ),
}


async def test_offers_of_other_clients_are_refused_by_name_and_a_good_one_plays(
    marker_server: ServerProcess,
) -> None:
    """Row A2: each says what is missing; the same session plays afterwards, nothing is left."""
    async with players(marker_server) as group:
        await (await group.playing()).leave()  # what is opened once and kept
        before = Held.by(marker_server)
        session = await group.open()
        player = RtcPlayer()
        good = await player.offer()
        for name, (spoil, words) in BAD_OFFERS.items():
            answer = await connect(group, session, {"sdp": spoil(good)})
            assert 400 <= answer[0] < 500, (name, answer)
            assert words in answer[1]["detail"], (name, answer)
        status, problem = await connect(group, session, {"sdp": good, "type": "answer"})
        assert (status, problem["code"]) == (422, "invalid_request")
        await player.apply(await session.answer(at_session_level(good)))
        await player.until(lambda: player.up)
        await player.hello()
        await player.until(lambda: bool(player.frames))
        await player.aclose()
        await session.leave_for_good()
    await settled(marker_server, before)


def at_session_level(good: str) -> str:
    """The direction said once for all lines: that one is served."""
    return good.replace("a=recvonly\r\n", "").replace("m=video", "a=recvonly\r\nm=video", 1)


async def connect(
    group: Players, session: Session, body: dict[str, str]
) -> tuple[int, dict[str, str]]:
    """Status and body of one `connect`."""
    answer = await group.http.post(f"{session.path}/connect", json=body, headers=session.headers)
    return answer.status_code, dict(answer.json())


def dot(frame: ShownFrame) -> tuple[int, int]:
    """Where the marker world's player stands, to the pixel or two that video leaves of it."""
    white = (frame.rgb[96:] > 200).all(axis=2)
    rows, columns = np.nonzero(white)
    return int(np.median(rows)), int(np.median(columns))


def number(frame: ShownFrame) -> int:
    """Which picture it is, counted from the start; 0 where that cannot be read."""
    marker = read_marker(frame.rgb)
    return marker.frame if marker else 0


def stands(frames: list[ShownFrame]) -> bool:
    """Whether the dot is in one place in all of them."""
    places = np.array([dot(frame) for frame in frames])
    return bool((np.ptp(places, axis=0) <= 2).all())


@pytest.mark.parametrize("how", ["silent", "killed"])
async def test_a_stick_that_was_held_when_its_player_went_moves_nothing(
    marker_server: ServerProcess, how: str
) -> None:
    """Row B3: the network is lost, or the player; nothing moves before there is new input."""
    expired = "silence let go of what was held"
    async with players(marker_server) as group:
        session = await group.open()
        player = await session.play(RtcPlayer())
        player.keys(axes={"forward": 1.0})
        seq = player.receipt()
        await player.until(lambda: bool(player.frames) and player.frames[-1].receipt == seq)
        await player.until(lambda: not stands(list(player.frames)[-8:]))
        before = marker_server.output().count(expired)
        if how == "silent":
            player.mute()
            begin = max(number(player.frames[-1]), 4 * (session.chunks[-1][1].index + 1))
            await player.until(
                lambda: number(player.frames[-1]) > begin + 24 and stands(list(player.frames)[-16:])
            )
            moving = [
                number(two)
                for one, two in itertools.pairwise(player.frames)
                if not stands([one, two])
            ]
            # After what was made: 500 ms, of 16 pictures a second, and a chunk on either side
            assert moving[-1] - begin <= 8 + 2 * 4
        else:
            await player.vanish()

            async def let_go() -> bool:
                return marker_server.output().count(expired) > before

            await becomes(let_go, 20)
        again = await session.play(RtcPlayer(), take_over=True)
        await again.until(lambda: len(again.frames) > 24)
        assert stands(list(again.frames)[8:])
        assert marker_server.output().count(expired) == before + 1
        again.keys("KeyW")
        await again.until(lambda: not stands(list(again.frames)[-8:]))
        await player.aclose()
