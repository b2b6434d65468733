"""API keys, the admin key, quotas."""

from __future__ import annotations

import pytest

from server.front.errors import QuotaExceeded
from server.front.quotas import AddressQuota
from server.settings import Settings

pytestmark = pytest.mark.anyio
KEY, ADMIN = "program-" + "k" * 16, "operator-" + "k" * 16


async def test_with_api_keys_only_their_holders_create_sessions(open_door) -> None:
    async with open_door(Settings(api_keys=(KEY,))) as door:
        for headers in ({}, {"X-API-Key": "wrong"}, {"Authorization": f"Bearer {KEY}x"}):
            answer = await door.client.post("/v1/sessions", json={}, headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (401, "key_required")
        for headers in ({"X-API-Key": KEY}, {"Authorization": f"Bearer {KEY}"}):
            answer = await door.client.post("/v1/sessions", json={}, headers=headers)
            assert answer.status_code == 201
            created = answer.json()
            assert (await door.connect(created)).status_code == 200


async def test_an_operator_sees_and_ends_every_session(open_door) -> None:
    async with open_door(Settings(admin_key=ADMIN)) as door:
        created = await door.create()
        await door.connect(created)
        operator = {"Authorization": f"Bearer {ADMIN}"}
        listed = (await door.client.get("/v1/sessions", headers=operator)).json()["sessions"]
        assert [session["session_id"] for session in listed] == [created["session_id"]]
        assert created["session_token"] not in str(listed)
        kick = await door.client.delete(f"/v1/sessions/{created['session_id']}", headers=operator)
        assert kick.status_code == 204
        assert (await door.view(created))["reason"] == "kicked"
        unknown = await door.client.delete("/v1/sessions/nobody", headers=operator)
        assert unknown.status_code == 404


@pytest.mark.parametrize("key", [None, ADMIN])
async def test_nobody_else_is_an_operator(open_door, key) -> None:
    async with open_door(Settings(admin_key=key)) as door:
        created = await door.create()
        for headers in ({}, door.auth(created), {"Authorization": "Bearer "}):
            for method, path in (("GET", "/v1/sessions"), ("POST", "/v1/workers/worker-0/drain")):
                answer = await door.client.request(method, path, headers=headers)
                assert (answer.status_code, answer.json()["code"]) == (401, "admin_required")


async def test_public_play_has_a_quota_for_each_address(open_door) -> None:
    settings = Settings(host="0.0.0.0", public_play=True, max_sessions_per_address=1)
    async with open_door(settings) as door:
        created = await door.create()
        answer = await door.client.post("/v1/sessions", json={})
        assert (answer.status_code, answer.json()["code"]) == (429, "quota_exceeded")
        await door.delete(created)
        await door.create()


def test_a_quota_counts_live_sessions_and_new_ones_a_minute() -> None:
    quota = AddressQuota(live=2, per_minute=3)
    quota.take("a", 0.0)
    quota.take("a", 1.0)
    with pytest.raises(QuotaExceeded):
        quota.take("a", 2.0)
    quota.give_back("a")
    quota.take("a", 3.0)
    quota.give_back("a")
    with pytest.raises(QuotaExceeded) as caught:
        quota.take("a", 4.0)
    assert caught.value.retry_after == pytest.approx(56.0)
    quota.take("b", 4.0)
    quota.take("a", 60.5)


def test_without_limits_a_quota_refuses_nobody() -> None:
    quota = AddressQuota(None, None)
    for now in range(1000):
        quota.take("a", float(now))


async def test_no_request_of_a_session_needs_a_thread(open_door, monkeypatch) -> None:
    async def refused(*_: object, **__: object) -> None:
        raise AssertionError("a thread was asked for")

    monkeypatch.setattr("anyio.to_thread.run_sync", refused)
    async with open_door() as door:
        created = await door.create()
        assert (await door.connect(created)).status_code == 200
        assert (await door.view(created))["status"] == "connecting"
        assert (await door.delete(created)).status_code == 204
