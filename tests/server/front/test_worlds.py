from __future__ import annotations

import pytest

from tests.fakes.worker import PNG

pytestmark = pytest.mark.anyio


async def test_worlds_tell_their_capabilities(open_door) -> None:
    async with open_door() as door:
        [world] = (await door.client.get("/v1/worlds")).json()["worlds"]
        assert (world["name"], world["prompt"], world["image"]) == ("meadow", False, False)
        assert world["controls"] == [{"code": "KeyW", "label": "walk", "aliases": ["ArrowUp"]}]
        assert [point["name"] for point in world["start_points"]] == ["gate", "pond"]
        picture = await door.client.get(world["start_points"][0]["picture"])
        assert (picture.status_code, picture.content) == (200, PNG)
        assert picture.headers["content-type"] == "image/png"
        again = await door.client.get(
            world["start_points"][0]["picture"], headers={"If-None-Match": picture.headers["etag"]}
        )
        assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize("path", ["mars/start_points/gate", "meadow/start_points/%2e%2e%2fgate"])
async def test_an_unknown_picture_is_not_found(open_door, path) -> None:
    async with open_door() as door:
        answer = await door.client.get(f"/v1/worlds/{path}/picture")
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
