"""The life of a session over HTTP, against a worker that does what the test says."""

from __future__ import annotations

import asyncio

import pytest

from admission.session import EndReason
from server.front.quotas import Pace
from server.front.record import CONNECTS_AT_ONCE
from server.protocol.worker import CloseSession, ConnectSession, Failure, Loading
from server.settings import Settings
from tests.fakes.waiting import until
from tests.fakes.worker import FakeWorker, world

pytestmark = pytest.mark.anyio


def status_is(door, created, status):
    async def check() -> bool:
        return (await door.view(created))["status"] == status

    return check


async def test_a_session_is_created_connected_played_and_left(open_door) -> None:
    async with open_door() as door:
        created = await door.create(start_point="pond")
        assert created["status"] == "admitted"
        assert created["transport"] == "memory"
        assert 10 < created["claim_seconds"] <= 20
        answer = await door.connect(created, sdp="v=0", take_over=True)
        assert answer.status_code == 200
        assert (await door.view(created))["status"] == "connecting"
        [request] = door.worker.requests
        assert isinstance(request, ConnectSession)
        assert (request.body.sdp, request.body.take_over) == ("v=0", True)
        assert request.start.start_point == "pond"
        session = created["session_id"]
        door.worker.fact(session, "connected")
        door.worker.fact(session, "starting", stage="reading the prompt")
        await door.settled()
        view = await door.view(created)
        assert (view["status"], view["stage"]) == ("starting", "reading the prompt")
        door.worker.fact(session, "running")
        await door.settled()
        view = await door.view(created)
        assert (view["status"], view["stage"]) == ("running", None)
        door.worker.fact(session, "paused")
        await door.settled()
        assert (await door.view(created))["status"] == "suspended"
        door.worker.fact(session, "resumed")
        await door.settled()
        assert (await door.delete(created)).status_code == 204
        assert door.worker.requests[-1] == CloseSession(session=session, reason=EndReason.LEFT)
        assert door.worker.holds == set()
        view = await door.view(created)
        assert (view["status"], view["reason"]) == ("closed", "left")


async def test_delete_is_idempotent(open_door) -> None:
    async with open_door() as door:
        created = await door.create()
        await door.connect(created)
        answers = await asyncio.gather(*(door.delete(created) for _ in range(5)))
        assert {answer.status_code for answer in answers} == {204}
        assert (await door.delete(created)).status_code == 204
        assert sum(isinstance(request, CloseSession) for request in door.worker.requests) == 1


async def test_a_seat_that_was_never_claimed_is_given_back_without_asking_the_worker(
    open_door,
) -> None:
    async with open_door(Settings(claim_seconds=0.05)) as door:
        created = await door.create()
        await until(status_is(door, created, "expired"))
        assert (await door.view(created))["reason"] == "claim_missed"
        assert door.worker.requests == []
        assert door.service.occupancy().free == 2


@pytest.mark.parametrize(
    ("limit", "facts", "reason", "status"),
    [
        ("connect_seconds", [], "connect_timeout", "failed"),
        ("idle_timeout_seconds", ["connected", "running"], "idle", "expired"),
        ("max_session_seconds", ["connected", "running"], "time_limit", "expired"),
        ("disconnect_grace_seconds", ["connected", "running", "lost"], "disconnected", "expired"),
    ],
)
async def test_a_deadline_ends_a_session_with_its_reason(
    open_door, limit, facts, reason, status
) -> None:
    async with open_door(Settings(**{limit: 0.1})) as door:
        created = await door.create()
        await door.connect(created)
        for fact in facts:
            door.worker.fact(created["session_id"], fact)
        await until(status_is(door, created, status))
        assert (await door.view(created))["reason"] == reason
        assert door.worker.holds == set()
        assert door.service.occupancy().free == 2


async def test_input_puts_the_idle_limit_off(open_door) -> None:
    skipped = 0.0
    async with open_door() as door:
        door.clock(lambda: 1000.0 + skipped)  # it stands but for what is said here
        door.worker.plays = True
        created = await door.create()
        await door.connect(created)
        await door.settled()
        for _ in range(6):
            skipped += 0.6 * Settings().idle_timeout_seconds
            door.overdue()
            assert (await door.view(created))["status"] == "running"
            door.worker.fact(created["session_id"], "active")
            await door.settled()
        skipped += 1.1 * Settings().idle_timeout_seconds
        door.overdue()
        await until(status_is(door, created, "expired"))
        assert (await door.view(created))["reason"] == "idle"


@pytest.mark.parametrize(
    ("reason", "status"), [("stopped", "closed"), ("world_failed", "failed"), (None, "failed")]
)
async def test_a_session_that_cannot_go_on_is_closed(open_door, reason, status) -> None:
    async with open_door() as door:
        door.worker.plays = True
        created = await door.create()
        await door.connect(created)
        door.worker.fact(created["session_id"], "ended", reason=reason and EndReason(reason))
        await until(status_is(door, created, status))
        assert (await door.view(created))["reason"] == (reason or "world_failed")
        assert (await door.connect(created)).status_code == 410


async def test_secrets_and_ids_cannot_be_told_apart(open_door) -> None:
    async with open_door() as door:
        created = await door.create()
        other = await door.create()
        answers = []
        for session, token in (
            ("0" * 20, created["session_token"]),
            (created["session_id"], "wrong"),
            (created["session_id"], other["session_token"]),
            (created["session_id"], "\xe9\xff"),
        ):
            headers = {"Authorization": f"Bearer {token}".encode("latin-1")}
            url = f"/v1/sessions/{session}"
            for method, path, body in (
                ("GET", url, None),
                ("DELETE", url, None),
                ("GET", f"{url}/events", None),
                ("POST", f"{url}/connect", {}),
            ):
                answers.append(await door.client.request(method, path, json=body, headers=headers))
        assert {answer.status_code for answer in answers} == {404}
        assert len({answer.text for answer in answers}) == 1
        assert answers[0].json()["code"] == "unknown_session"
        assert (await door.view(created))["status"] == "admitted"


async def test_without_a_secret_nothing_is_told(open_door) -> None:
    async with open_door() as door:
        created = await door.create()
        for session in (created["session_id"], "nobody"):
            for headers in ({}, {"Authorization": "Basic eA=="}, {"Authorization": "Bearer"}):
                answer = await door.client.get(f"/v1/sessions/{session}", headers=headers)
                assert answer.status_code == 401
                assert answer.json()["code"] == "secret_required"
                assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    "session", ["../../etc/passwd", "%2e%2e%2f", "\\\\host\\share", "a%00b", "x" * 2000, "é", "{"]
)
async def test_odd_session_ids_are_unknown(open_door, session) -> None:
    async with open_door() as door:
        answer = await door.client.get(
            f"/v1/sessions/{session}", headers={"Authorization": "Bearer x"}
        )
        assert answer.status_code == 404
        assert "root:" not in answer.text


@pytest.mark.parametrize(
    ("body", "code", "field", "says"),
    [
        ({"world": "mars"}, "unknown_world", "world", "meadow"),
        ({"start_point": "moon"}, "unknown_start_point", "start_point", "gate, pond"),
        ({"prompt": "a lake"}, "unsupported_by_world", "prompt", "meadow takes no prompt"),
        ({"image_id": "abc"}, "unsupported_by_world", "image_id", "meadow takes no image"),
        ({"speed": 1}, "invalid_request", "speed", ""),
        ({"world": 5}, "invalid_request", "world", ""),
    ],
)
async def test_a_start_that_the_world_cannot_give_names_the_field(
    open_door, body, code, field, says
) -> None:
    async with open_door() as door:
        answer = await door.client.post("/v1/sessions", json=body)
        assert answer.status_code == 422
        problem = answer.json()
        assert (problem["code"], problem["field"]) == (code, field)
        assert says in problem["detail"]
        assert door.service.occupancy().free == 2


async def test_a_prompt_reaches_a_world_that_takes_one(open_door) -> None:
    async with open_door(worker=FakeWorker(content=world(prompt=True, image=True))) as door:
        created = await door.create(world="meadow", prompt="a lake")
        await door.connect(created)
        [request] = door.worker.requests
        assert isinstance(request, ConnectSession)
        assert (request.start.prompt, request.start.start_point) == ("a lake", "gate")
        image = await door.client.post("/v1/sessions", json={"image_id": "abc"})
        assert (image.status_code, image.json()["code"]) == (422, "unknown_image")


async def test_a_full_house_is_refused_with_the_time_to_ask_again(open_door) -> None:
    async with open_door() as door:
        sessions = [await door.create(), await door.create()]
        answer = await door.client.post("/v1/sessions", json={})
        assert answer.status_code == 429
        assert answer.json()["code"] == "queue_full"
        assert int(answer.headers["Retry-After"]) >= 1
        for created in sessions:
            assert (await door.view(created))["status"] == "admitted"


async def test_leaving_and_coming_again_is_never_refused(open_door) -> None:
    """Row E1: one seat, twenty times as quickly as a page can."""
    async with open_door(worker=FakeWorker(seats=1)) as door:
        door.worker.plays = True
        for _ in range(20):
            created = await door.create()
            await door.connect(created)
            assert (await door.delete(created)).status_code == 204


async def test_a_create_waits_for_the_seat_that_a_stop_is_giving_back(open_door) -> None:
    async with open_door(worker=FakeWorker(seats=1)) as door:
        created = await door.create()
        await door.connect(created)
        door.worker.close_gate.clear()
        door.worker.fact(created["session_id"], "ended", reason=EndReason.STOPPED)
        await door.settled()
        again = asyncio.create_task(door.client.post("/v1/sessions", json={}))
        await door.settled()
        assert not again.done()
        door.worker.close_gate.set()
        assert (await again).status_code == 201


async def test_before_a_worker_is_ready_sessions_are_refused_with_its_stage(open_door) -> None:
    async with open_door(worker=FakeWorker(ready=False)) as door:
        ready = await door.client.get("/readyz")
        assert ready.status_code == 503
        answer = await door.client.post("/v1/sessions", json={})
        assert (answer.status_code, answer.json()["code"]) == (503, "no_worker")
        assert int(answer.headers["Retry-After"]) >= 1
        door.worker.become_ready()
        await door.settled()
        assert (await door.client.get("/readyz")).json()["ready"] is True
        await door.create()


async def test_the_cold_start_stage_is_told(open_door) -> None:
    async with open_door(worker=FakeWorker(ready=False)) as door:
        door.worker.emit(Loading(stage="warming up", progress=0.25))
        await door.settled()
        answer = await door.client.get("/readyz")
        assert answer.json() == {"ready": False, "stage": "warming up", "progress": 0.25}
        assert (await door.client.get("/healthz")).status_code == 200


@pytest.mark.parametrize(
    ("code", "status"), [("bad_offer", 422), ("playing_elsewhere", 409), ("connect_failed", 503)]
)
async def test_a_refused_connect_leaves_the_session_as_it_was(open_door, code, status) -> None:
    """Row A2: a bad offer is answered, and a good one may follow."""
    async with open_door() as door:
        created = await door.create()
        door.worker.refuse_connect = Failure(code=code, message="no video line", field="sdp")
        answer = await door.connect(created, sdp="nonsense")
        assert (answer.status_code, answer.json()["code"]) == (status, code)
        assert answer.json()["detail"] == "no video line"
        door.worker.refuse_connect = None
        assert (await door.connect(created, sdp="good")).status_code == 200


async def test_a_worker_that_does_not_answer_a_connect_is_slow_not_ours(open_door) -> None:
    async with open_door(Settings(worker_call_seconds=0.05)) as door:
        created = await door.create()
        door.worker.connect_gate.clear()
        answer = await door.connect(created)
        assert (answer.status_code, answer.json()["code"]) == (503, "worker_slow")


async def test_connects_of_one_session_are_bounded(open_door) -> None:
    async with open_door() as door:
        created = await door.create()
        door.worker.connect_gate.clear()
        waiting = [asyncio.create_task(door.connect(created)) for _ in range(7)]
        await door.asked(ConnectSession, 4)
        await until(lambda: sum(task.done() for task in waiting) == 3)
        done = [task for task in waiting if task.done()]
        assert [task.result().status_code for task in done] == [429] * 3
        door.worker.connect_gate.set()
        assert (
            sorted(a.status_code for a in await asyncio.gather(*waiting)) == [200] * 4 + [429] * 3
        )


async def test_a_connect_that_crosses_a_delete_leaves_nothing_behind(open_door) -> None:
    async with open_door() as door:
        created = await door.create()
        door.worker.connect_gate.clear()
        connecting = asyncio.create_task(door.connect(created))
        await door.asked(ConnectSession)
        deleting = asyncio.create_task(door.delete(created))
        await door.asked(CloseSession)
        door.worker.connect_gate.set()  # only now does the worker build the session
        answer = await connecting
        assert (answer.status_code, answer.json()["code"]) == (410, "session_ended")
        assert (await deleting).status_code == 204
        assert door.worker.holds == set()
        assert door.service.occupancy().free == 2


async def test_delete_answers_202_while_the_worker_is_still_releasing(
    open_door, monkeypatch
) -> None:
    monkeypatch.setattr("server.front.service.CLOSE_ANSWER_SECONDS", 0.05)
    async with open_door() as door:
        created = await door.create()
        await door.connect(created)
        door.worker.close_gate.clear()
        answer = await door.delete(created)
        assert answer.status_code == 202
        assert answer.json()["status"] == "draining"
        assert door.service.occupancy().free == 1
        door.worker.close_gate.set()
        await until(status_is(door, created, "closed"))
        assert (await door.delete(created)).status_code == 204


async def test_ended_sessions_are_remembered_for_a_while_and_not_without_bound(open_door) -> None:
    async def ended(door) -> dict:
        created = await door.create()
        await door.delete(created)
        return created

    async def code(door, s) -> int:
        url = f"/v1/sessions/{s['session_id']}"
        return (await door.client.get(url, headers=door.auth(s))).status_code

    async with open_door(Settings(max_ended_sessions=3)) as door:
        sessions = [await ended(door) for _ in range(5)]
        assert [await code(door, s) for s in sessions] == [404, 404, 200, 200, 200]
    async with open_door(Settings(ended_session_seconds=0.2)) as door:
        first = await ended(door)

        async def forgotten() -> bool:
            await ended(door)
            return await code(door, first) == 404

        await until(forgotten)


async def test_facts_out_of_place_change_nothing(open_door) -> None:
    async with open_door() as door:
        created = await door.create()
        for fact in ("running", "paused", "connected", "lost", "resumed"):
            door.worker.fact(created["session_id"], fact)
            door.worker.fact("nobody", fact)
        await door.settled()
        assert (await door.view(created))["status"] == "admitted"
        assert (await door.client.get("/readyz")).status_code == 200


async def test_a_storm_of_connects_reaches_its_worker_at_a_bounded_rate(open_door) -> None:
    async with open_door() as door:
        created, other = await door.create(), await door.create()
        answers = [await door.connect(created) for _ in range(CONNECTS_AT_ONCE + 30)]
        refused = [answer for answer in answers if answer.status_code == 429]
        assert len(refused) >= 10  # 3 a second are let in: 20 more would take 7 s
        assert refused[0].json()["code"] == "too_many_requests"
        assert refused[0].headers["retry-after"] == "1"
        assert len(door.worker.requests) == len(answers) - len(refused)
        assert (await door.connect(other)).status_code == 200  # it has done nothing


def test_a_pace_is_a_burst_and_then_a_rate() -> None:
    pace = Pace(2, 4.0)
    assert [pace.take(100.0) for _ in range(3)] == [0.0, 0.0, 0.25]
    assert pace.take(100.24) > 0
    assert pace.take(100.25) == 0.0
    assert [pace.take(1e9) for _ in range(3)] == [0.0, 0.0, 0.25]
