"""Rows H1, H2 and H4 of the reports: who may ask, from where, with what."""

from __future__ import annotations

import json

import pytest

from server.settings import Settings

ROUTES = (
    "/",
    "/index.html",
    "/docs",
    "/openapi.json",
    "/metrics",
    "/healthz",
    "/readyz",
    "/v1/worlds",
    "/v1/worlds/meadow/start_points/gate/picture",
    "/v1/sessions/x",
    "/v1/sessions/x/events",
    "/nowhere",
)
PAGE_HEADERS = (
    "content-security-policy",
    "x-content-type-options",
    "referrer-policy",
    "x-frame-options",
    "cross-origin-resource-policy",
)


@pytest.mark.anyio
@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize("host", ["evil.test:8000", "localhost.evil.test", "127.0.0.1.nip.io"])
async def test_a_foreign_host_gets_nothing_from_any_route(open_door, path, host) -> None:
    async with open_door() as door:
        answer = await door.client.get(path, headers={"Host": host})
        assert answer.status_code == 403
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["code"] == "host_not_allowed"


@pytest.mark.anyio
@pytest.mark.parametrize("host", ["[::1]:8000", "LOCALHOST:8000", "localhost", "127.0.0.1"])
async def test_loopback_spellings_work(open_door, host) -> None:
    async with open_door() as door:
        answer = await door.client.get("/healthz", headers={"Host": host})
        assert answer.status_code == 200


@pytest.mark.anyio
@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize("origin", ["http://evil.test", "null", "http://127.0.0.1:9999"])
async def test_a_page_of_another_origin_gets_nothing_from_any_route(
    open_door, path, origin
) -> None:
    async with open_door() as door:
        answer = await door.client.get(path, headers={"Origin": origin})
        assert answer.status_code == 403
        assert answer.json()["code"] == "origin_not_allowed"
        assert "access-control-allow-origin" not in answer.headers


@pytest.mark.anyio
async def test_a_cross_site_request_without_origin_is_known_by_its_fetch_metadata(
    open_door,
) -> None:
    async with open_door() as door:
        image = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
        assert (await door.client.get("/v1/worlds", headers=image)).status_code == 403
        link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
        assert (await door.client.get("/healthz", headers=link)).status_code == 200
        form = await door.client.post("/v1/sessions", json={}, headers=link)
        assert form.status_code == 403
        own = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}
        assert (await door.client.get("/v1/worlds", headers=own)).status_code == 200


@pytest.mark.anyio
async def test_our_own_page_may_create_a_session(open_door) -> None:
    async with open_door() as door:
        answer = await door.client.post(
            "/v1/sessions", json={}, headers={"Origin": "http://127.0.0.1:8000"}
        )
        assert answer.status_code == 201


@pytest.mark.anyio
async def test_names_and_origins_of_a_proxy_can_be_allowed(open_door) -> None:
    settings = Settings(allowed_hosts=("Play.Example",), allowed_origins=("https://other.example",))
    async with open_door(settings) as door:
        answer = await door.client.get(
            "/healthz", headers={"Host": "play.example", "Origin": "https://other.example"}
        )
        assert answer.status_code == 200


@pytest.mark.anyio
@pytest.mark.parametrize(
    "media_type",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/json5",
        "application/problem+json",
        "",
    ],
)
async def test_a_body_that_is_not_json_by_its_type_is_refused(open_door, media_type) -> None:
    async with open_door() as door:
        answer = await door.client.post(
            "/v1/sessions", content=b"{}", headers={"Content-Type": media_type}
        )
        assert answer.status_code == 415
        assert answer.json()["code"] == "unsupported_media_type"


@pytest.mark.anyio
async def test_an_empty_form_is_refused_as_well(open_door) -> None:
    async with open_door() as door:
        answer = await door.client.post(
            "/v1/sessions", headers={"Content-Type": "application/x-www-form-urlencoded"}
        )
        assert answer.status_code == 415


@pytest.mark.anyio
@pytest.mark.parametrize(
    "media_type", ["application/json", "Application/JSON; charset=utf-8", "application/json ;x=y"]
)
async def test_json_types_in_any_spelling_are_taken(open_door, media_type) -> None:
    async with open_door() as door:
        answer = await door.client.post(
            "/v1/sessions", content=b"{}", headers={"Content-Type": media_type}
        )
        assert answer.status_code == 201


@pytest.mark.anyio
async def test_a_body_that_is_too_large_is_refused_before_it_is_read(open_door) -> None:
    taken = 0

    async def chunks():
        nonlocal taken
        for _ in range(100):
            taken += 1
            yield b" " * 100_000

    async with open_door() as door:
        json_type = {"Content-Type": "application/json"}
        streamed = await door.client.post("/v1/sessions", content=chunks(), headers=json_type)
        assert streamed.status_code == 413
        assert taken < 15
        declared = await door.client.post(
            "/v1/sessions", content=b" " * 1_000_001, headers=json_type
        )
        assert declared.status_code == 413
        assert declared.json()["code"] == "body_too_large"


BODIES = [
    b"NaN",
    b"Infinity",
    b'{"prompt": NaN}',
    b'{"prompt": -Infinity}',
    b'{"seed": Infinity}',
    b'{"seed": NaN}',
    b'{"seed": 1e999}',
    b'{"prompt": 1e999}',
    b'{"world": "\\ud800"}',
    b'{"prompt": "\\udfff"}',
    b'{"\\ud800": 1}',
    b'{"NaN": {"x": NaN}}',
    b"9" * 5000,
    b'{"world": ' + b"9" * 5000 + b"}",
    b"[" * 100_000,
    b'{"a":' * 50_000,
    b"\xff\xfe\x00",
    b'{"world": "\xff"}',
    b"{}{}",
    b"",
    b"null",
    b"[]",
    b'"text"',
    b'{"world": "a\\u0000b"}',
    b'{"world": "../../etc/passwd"}',
    b'{"start_point": "file:///etc/passwd"}',
    b'{"start_point": "\\\\\\\\host\\\\share"}',
    b'{"image_id": "%2e%2e/"}',
    json.dumps({"prompt": "x" * 5000}).encode(),
]


@pytest.mark.anyio
@pytest.mark.parametrize("path", ["/v1/sessions", "/v1/sessions/{id}/connect"])
@pytest.mark.parametrize("body", BODIES, ids=lambda body: repr(body[:24]))
async def test_no_body_is_answered_with_anything_but_a_problem(open_door, path, body) -> None:
    async with open_door() as door:
        created = await door.create()
        answer = await door.client.post(
            path.format(id=created["session_id"]),
            content=body,
            headers={"Content-Type": "application/json", **door.auth(created)},
        )
        assert 400 <= answer.status_code < 500, answer.text
        problem = answer.json()
        assert problem["status"] == answer.status_code
        assert problem["code"]
        assert "root:" not in answer.text
        assert (await door.view(created))["status"] == "admitted"


@pytest.mark.anyio
@pytest.mark.parametrize("path", ["/", "/healthz", "/nowhere", "/v1/sessions/x", "/metrics"])
async def test_every_answer_carries_the_security_headers(open_door, path) -> None:
    async with open_door() as door:
        answer = await door.client.get(path)
        for name in PAGE_HEADERS:
            assert name in answer.headers
        policy = answer.headers["content-security-policy"]
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        refused = await door.client.get(path, headers={"Host": "evil.test"})
        assert "content-security-policy" in refused.headers


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("host", "sent"), [("192.0.2.7:8000", False), ("127.0.0.1:8000", True), ("veldt.test", True)]
)
async def test_a_browser_is_not_sent_a_policy_that_it_would_complain_of(
    open_door, host, sent
) -> None:
    wide = Settings(host="0.0.0.0", public_play=True, allowed_hosts=("veldt.test",))
    async with open_door(wide) as door:
        answer = await door.client.get("/", headers={"Host": host})
        assert ("cross-origin-opener-policy" in answer.headers) is sent


@pytest.mark.anyio
async def test_a_bug_of_ours_is_a_problem_that_tells_nothing(open_door, caplog) -> None:
    async with open_door() as door:
        door.service.readiness = None  # type: ignore[method-assign]
        answer = await door.client.get("/readyz")
        assert answer.status_code == 500
        assert answer.json()["code"] == "internal_error"
        assert "NoneType" not in answer.text
        assert any(record.exc_info for record in caplog.records)
