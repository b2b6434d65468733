from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import time
from collections.abc import Sequence

import httpx
import jwt
import pytest

from server.front.app import create_app
from server.front.livekit import RoomKeeper, RoomsUnreachable, strays
from server.front.webhook import check_webhook
from server.protocol.rooms import WORKER, room_name
from server.protocol.worker import CheckRoom, ConnectSession
from server.settings import Settings
from tests.fakes.waiting import until

KEY, SECRET = "key", "s" * 40


class FakeRooms:
    """LiveKit's rooms as a list; `down` lets every call fail."""

    def __init__(self, *names: str) -> None:
        self.rooms = list(names)
        self.people: dict[str, set[str]] = {}
        self.down = False
        self.looks = 0
        self.closed = False

    async def names(self) -> Sequence[str]:
        self.looks += 1
        self._check()
        return list(self.rooms)

    async def inside(self, room: str) -> frozenset[str]:
        self._check()
        return frozenset(self.people.get(room, ()))

    async def delete(self, room: str) -> None:
        self._check()
        self.rooms.remove(room)

    async def aclose(self) -> None:
        self.closed = True

    def _check(self) -> None:
        if self.down:
            raise RoomsUnreachable("it is down")


def test_only_rooms_of_this_service_whose_session_is_over_are_strays() -> None:
    mine, live, other = room_name("v", "a"), room_name("v", "b"), room_name("v2", "a")
    assert strays([mine, live, other, "v", "v.", "lobby"], "v", ["b"]) == [mine]


@pytest.mark.anyio
async def test_the_keeper_removes_strays_at_the_start_after_hints_and_at_the_end() -> None:
    rooms, live = FakeRooms("v.old", "v.a"), ["a"]
    keeper = RoomKeeper(rooms, "v", lambda: live, every_seconds=600, settle_seconds=0)
    keeper.begin()
    await until(lambda: rooms.rooms == ["v.a"])
    live.clear()
    keeper.hint()
    await until(lambda: rooms.rooms == [])
    rooms.rooms.append("v.late")
    await keeper.aclose()
    await keeper.aclose()
    assert (rooms.rooms, rooms.closed, keeper.removed) == ([], True, 3)


@pytest.mark.anyio
async def test_the_keeper_looks_again_by_itself_and_survives_a_livekit_that_is_down() -> None:
    rooms = FakeRooms("v.old")
    rooms.down = True
    keeper = RoomKeeper(rooms, "v", list, every_seconds=0.02)
    keeper.begin()
    await until(lambda: rooms.looks > 3)
    assert keeper.reachable is False
    rooms.down = False
    await until(lambda: rooms.rooms == [])
    assert keeper.reachable is True
    await keeper.aclose()


class Believer:
    """Sessions that are played, as far as their workers know; what they are told."""

    def __init__(self, *sessions: str) -> None:
        self.played = list(sessions)
        self.told: list[str] = []

    async def lost(self, session: str) -> None:
        self.told.append(session)

    def keeper(self, rooms: FakeRooms) -> RoomKeeper:
        return RoomKeeper(
            rooms,
            "v",
            lambda: self.played,
            every_seconds=0,
            played=lambda: self.played,
            on_lost=self.lost,
        )


@pytest.mark.anyio
@pytest.mark.parametrize(
    "people",
    [
        pytest.param(None, id="the room is gone"),
        pytest.param({WORKER}, id="nobody but the worker is there"),
        pytest.param({"player-1"}, id="the worker itself is not there"),
    ],
)
async def test_a_session_without_players_is_told_after_two_looks(people) -> None:
    rooms, believer = FakeRooms("v.a", "v.b"), Believer("a", "b")
    rooms.people = {"v.b": {WORKER, "player-1"}} | ({"v.a": people} if people else {})
    keeper = believer.keeper(rooms)
    await keeper.look()
    assert believer.told == []
    await keeper.look()
    assert (believer.told, keeper.lost) == (["a"], 1)
    await keeper.look()
    assert believer.told == ["a"], "it is given time to find out"
    await keeper.look()
    assert believer.told == ["a", "a"]


@pytest.mark.anyio
async def test_somebody_who_is_just_joining_or_leaving_is_no_fault() -> None:
    rooms, believer = FakeRooms("v.a"), Believer("a")
    keeper = believer.keeper(rooms)
    await keeper.look()
    rooms.people = {"v.a": {WORKER, "player-2"}}
    await keeper.look()
    rooms.people = {}
    await keeper.look()
    believer.played.clear()
    await keeper.look()
    believer.played.append("a")
    await keeper.look()
    assert believer.told == []


@pytest.mark.anyio
async def test_hints_do_not_look_for_lost_players() -> None:
    rooms, told = FakeRooms("v.a"), []

    async def lost(session: str) -> None:
        told.append(session)

    keeper = RoomKeeper(
        rooms, "v", lambda: ["a"], every_seconds=600, played=lambda: ["a"], on_lost=lost
    )
    for _ in range(4):
        await keeper.look()
    assert told == []


@pytest.mark.anyio
async def test_no_token_is_made_before_somebody_who_was_admitted_connects(open_door) -> None:
    """Workers mint, at `connect`: neither opening a session nor a wrong secret reaches one."""

    def connects(door) -> int:
        return sum(isinstance(request, ConnectSession) for request in door.worker.requests)

    async with open_door() as door:
        created = await door.create()
        refused = await door.connect({**created, "session_token": "wrong"})
        assert (refused.status_code, connects(door)) == (404, 0)
        assert (await door.connect(created)).status_code == 200
        assert (await door.connect(created)).status_code == 200
        assert connects(door) == 2, "a reload gets one of its own"


@pytest.mark.anyio
async def test_the_worker_of_a_session_without_players_is_told_to_look(open_door) -> None:
    async with open_door() as door:
        door.worker.plays = True
        created = await door.create()
        await door.connect(created)
        await until(lambda: [record.life.played for record in door.service.live()] == [True])
        await door.service.doubt(created["session_id"])
        await door.service.doubt("nobody")
        assert door.worker.requests[-1] == CheckRoom(session=created["session_id"])
        door.worker.fact(created["session_id"], "lost")
        await door.settled()
        await until(lambda: [record.life.played for record in door.service.live()] == [False])


def signature(body: bytes, secret: str = SECRET, **changes: object) -> str:
    claims = {
        "iss": KEY,
        "exp": int(time.time()) + 300,
        "sha256": base64.b64encode(hashlib.sha256(body).digest()).decode(),
        **changes,
    }
    return jwt.encode({k: v for k, v in claims.items() if v is not None}, secret, "HS256")


BODY = json.dumps({"event": "room_finished", "room": {"name": "v.a"}}).encode()


async def post(body: bytes, authorization: str | None, kind: str) -> tuple[int, bool]:
    """The status, and whether the keeper was hinted."""
    settings = Settings(
        livekit_url="ws://127.0.0.1:1", livekit_api_key=KEY, livekit_api_secret=SECRET
    )
    app = create_app(settings, [])
    keeper = RoomKeeper(FakeRooms(), "v", list, every_seconds=600)
    hinted = asyncio.Event()
    keeper.hint = hinted.set  # type: ignore[method-assign]
    app.state.rooms = keeper
    headers = {"content-type": kind}
    if authorization is not None:
        headers["authorization"] = authorization
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as http:
        answer = await http.post("/v1/livekit/webhook", content=body, headers=headers)
    return answer.status_code, hinted.is_set()


@pytest.mark.anyio
@pytest.mark.parametrize("prefix", ["", "Bearer "])
async def test_a_signed_webhook_is_a_hint(prefix: str) -> None:
    signed = prefix + signature(BODY)
    assert await post(BODY, signed, "application/webhook+json") == (204, True)


@pytest.mark.anyio
@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        "Bearer nonsense",
        signature(BODY, "x" * 40),
        signature(b"another body"),
        signature(BODY, iss="somebody"),
        signature(BODY, sha256=None),
        signature(BODY, exp=None),
        signature(BODY, exp=int(time.time()) - 300),
    ],
)
async def test_a_webhook_that_livekit_has_not_signed_changes_nothing(authorization) -> None:
    assert await post(BODY, authorization, "application/webhook+json") == (401, False)


@pytest.mark.anyio
async def test_a_webhook_that_is_sent_again_is_a_hint_again_and_no_more() -> None:
    """Whoever replays one has the rooms looked at: what it says is believed at no time."""
    believed_gone = json.dumps({"event": "room_finished", "room": {"name": "v.b"}}).encode()
    rooms = FakeRooms("v.b")
    keeper = RoomKeeper(rooms, "v", lambda: ["b"], every_seconds=600, settle_seconds=0)
    keeper.begin()
    await until(lambda: rooms.looks == 1)
    for looks in (2, 3):
        check_webhook(signature(believed_gone), believed_gone, KEY, SECRET)
        keeper.hint()
        await until(lambda looks=looks: rooms.looks == looks)
    assert rooms.rooms == ["v.b"]
    await keeper.aclose()


@pytest.mark.anyio
async def test_a_webhook_is_json_all_the_same() -> None:
    assert await post(BODY, signature(BODY), "text/plain") == (415, False)


def test_without_livekit_there_is_no_webhook() -> None:
    assert "/v1/livekit/webhook" not in create_app(Settings(), []).openapi()["paths"]


def test_the_page_may_connect_to_livekit_and_to_nothing_else() -> None:
    settings = Settings(
        livekit_url="ws://livekit:7880",
        livekit_public_url="wss://livekit.example.org",
        livekit_api_key=KEY,
        livekit_api_secret=SECRET,
    )

    async def policy(settings: Settings) -> str:
        transport = httpx.ASGITransport(create_app(settings, []))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
            return (await http.get("/healthz")).headers["content-security-policy"]

    sources = "connect-src 'self' wss://livekit.example.org https://livekit.example.org;"
    assert sources in asyncio.run(policy(settings))
    assert "connect-src 'self';" in asyncio.run(policy(Settings()))
