from __future__ import annotations

import datetime
import time

import jwt
import pytest

from server.protocol.rooms import WORKER
from server.transports.livekit.address import LiveKitAddress
from server.transports.livekit.service import RoomService
from server.transports.livekit.tokens import GRANTS, Role, mint
from tests.fakes.livekit_player import LiveKitPlayer
from tests.livekit_server import LiveKitServer

from .conftest import Stage

ADDRESS = LiveKitAddress("ws://a", "wss://b", "key", "s" * 32)


def claims(token: str) -> dict[str, object]:
    return dict(jwt.decode(token, "s" * 32, algorithms=["HS256"]))


def test_a_player_may_watch_and_speak_in_one_room_and_nothing_else() -> None:
    said = claims(mint(ADDRESS, Role.PLAYER, "r", "player-1"))
    assert said["video"] == {
        "room": "r",
        "roomJoin": True,
        "canSubscribe": True,
        "canPublishData": True,
        "canPublish": False,
        "canPublishSources": [],
        "canUpdateOwnMetadata": False,
        "roomCreate": False,
        "roomList": False,
        "roomRecord": False,
        "roomAdmin": False,
        "ingressAdmin": False,
        "hidden": False,
        "recorder": False,
        "agent": False,
    }
    assert said["sub"] == "player-1"
    assert said["kind"] == "standard"


def test_a_spectator_may_only_watch() -> None:
    allowed = {name for name, value in GRANTS[Role.SPECTATOR].items() if value}
    assert allowed == {"roomJoin", "canSubscribe"}


def test_the_worker_joins_as_an_agent_and_publishes_one_kind_of_track() -> None:
    said = claims(mint(ADDRESS, Role.WORKER, "r", WORKER))
    assert said["kind"] == "agent"
    assert GRANTS[Role.WORKER]["canPublishSources"] == ["camera"]


def test_every_role_spells_out_the_same_grants() -> None:
    assert set(GRANTS) == set(Role)
    assert len({frozenset(grants) for grants in GRANTS.values()}) == 1


def test_a_token_is_short_lived_and_has_no_beginning() -> None:
    said = claims(mint(ADDRESS, Role.PLAYER, "r", "player-1"))
    assert "nbf" not in said
    assert 60 <= int(str(said["exp"])) - time.time() <= 120


@pytest.mark.parametrize(
    ("role", "room", "who"),
    [
        (Role.PLAYER, "", "player-1"),
        (Role.PLAYER, "r", ""),
        (Role.PLAYER, "r", WORKER),
        (Role.WORKER, "r", "player-1"),
    ],
)
def test_nobody_gets_a_token_of_another_role(role: Role, room: str, who: str) -> None:
    with pytest.raises(ValueError, match="cannot be the"):
        mint(ADDRESS, role, room, who)


@pytest.mark.anyio
@pytest.mark.parametrize("seconds", [-30.0, 30.0])
async def test_a_clock_that_is_half_a_minute_off_keeps_nobody_out(
    stage: Stage, livekit: LiveKitServer, seconds: float
) -> None:
    await stage.player()
    room = next(name for name in await livekit.rooms() if stage.session in name)
    token = mint(
        stage.address, Role.SPECTATOR, room, "spectator-1", clock=lambda: time.time() + seconds
    )
    player = LiveKitPlayer()
    await player.join({"url": livekit.url, "token": token})
    assert player.room.isconnected()
    await player.aclose()


@pytest.mark.anyio
@pytest.mark.parametrize("seconds", [-30, 30])
async def test_a_clock_that_is_half_a_minute_off_makes_and_deletes_rooms(
    livekit: LiveKitServer, monkeypatch: pytest.MonkeyPatch, seconds: int
) -> None:
    class Shifted(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Shifted:
            return cls.fromtimestamp(time.time() + seconds, tz)

    address = LiveKitAddress(livekit.url, livekit.url, livekit.key, livekit.secret)
    room = f"clock.{seconds}"
    async with RoomService(address) as service:
        with monkeypatch.context() as patch:  # LiveKit's library writes `nbf`: now, by its clock
            patch.setattr(datetime, "datetime", Shifted)
            await service.create(room)
        assert room in await livekit.rooms()
        await service.delete(room)


@pytest.mark.anyio
async def test_each_connect_gets_a_token_of_its_own_for_this_room_only(
    stage: Stage, livekit: LiveKitServer
) -> None:
    answers = [await stage.connect(), await stage.connect(), await stage.transport.invite()]
    said = [
        dict(jwt.decode(str(answer.details["token"]), livekit.secret, algorithms=["HS256"]))
        for answer in answers
    ]
    assert [one["sub"] for one in said[:2]] == ["player-1", "player-2"]
    assert said[2]["sub"].startswith("spectator-")
    room = f"{stage.address.room_prefix}.{stage.session}"
    roles = (Role.PLAYER, Role.PLAYER, Role.SPECTATOR)
    assert [one["video"] for one in said] == [{**GRANTS[role], "room": room} for role in roles]
    assert all(int(one["exp"]) - time.time() <= 90 for one in said)
