"""Rows H2 and H4 of the reports in full: every such value in every place that takes one."""

from __future__ import annotations

import logging
from urllib.parse import quote

import pytest

from server.settings import Settings

pytestmark = pytest.mark.anyio

NO_NUMBERS = (b"NaN", b"Infinity", b"-Infinity", b"1e999")
HOSTILE = (
    "../../etc/passwd",
    "%2e%2e/%2e%2e/etc/passwd",
    "file:///etc/passwd",
    "\\\\host\\share",
    "etc/passwd\x00.png",
)
PROBLEM = "application/problem+json"


@pytest.mark.parametrize("number", NO_NUMBERS, ids=bytes.decode)
async def test_a_number_that_is_none_is_refused_in_every_field(open_door, caplog, number) -> None:
    """Row H2: in known and unknown fields of both bodies; no traceback is logged."""
    caplog.set_level(logging.DEBUG)
    fields = {
        "/v1/sessions": ("world", "start_point", "prompt", "image_id", "seed"),
        "/v1/sessions/{id}/connect": ("sdp", "take_over", "seed"),
    }
    async with open_door() as door:
        created = await door.create()
        headers = {"Content-Type": "application/json", **door.auth(created)}
        for path, names in fields.items():
            for name in names:
                answer = await door.client.post(
                    path.format(id=created["session_id"]),
                    content=b'{"%s": %s}' % (name.encode(), number),
                    headers=headers,
                )
                assert answer.status_code in (400, 422), (path, name, answer.text)
                assert answer.headers["content-type"] == PROBLEM
                assert answer.json()["code"]
        assert (await door.view(created))["status"] == "admitted"
    assert [record for record in caplog.records if record.exc_info] == []


@pytest.mark.parametrize("words", HOSTILE, ids=ascii)
async def test_a_path_of_the_server_is_no_name_anywhere(open_door, tmp_path, words) -> None:
    """Row H4: in bodies, session ids, worlds and the page, as it is and quoted."""
    (tmp_path / "index.html").write_text("<!doctype html>")
    async with open_door(Settings(client_dir=tmp_path)) as door:
        created = await door.create()
        for field in ("world", "start_point", "image_id", "image", "prompt"):
            answer = await door.client.post("/v1/sessions", json={field: words})
            assert answer.status_code == 422, (field, answer.text)
            assert answer.headers["content-type"] == PROBLEM
        for name in (words.replace("\x00", "%00"), quote(words, safe="")):
            for method, path in (
                ("GET", f"/v1/sessions/{name}"),
                ("DELETE", f"/v1/sessions/{name}"),
                ("GET", f"/v1/sessions/{name}/events"),
                ("POST", f"/v1/sessions/{name}/connect"),
                ("GET", f"/v1/worlds/{name}/start_points/gate/picture"),
                ("GET", f"/v1/worlds/meadow/start_points/{name}/picture"),
                ("GET", f"/{name}"),
            ):
                answer = await door.client.request(
                    method,
                    path,
                    headers=door.auth(created),
                    json={} if method == "POST" else None,
                )
                assert answer.status_code in (404, 405, 422), (method, path, answer.text)
                assert answer.headers["content-type"] == PROBLEM
                assert "root:" not in answer.text
        assert (await door.view(created))["status"] == "admitted"
        assert door.service.occupancy().free == 1
