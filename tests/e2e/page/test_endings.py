"""Things end and break: the page says in words what happened, and always offers a next step."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.page.sight import axe_faults
from tests.e2e.player import enter, wait_for
from tests.e2e.server import ServerProcess

MakeServer = Callable[..., ServerProcess]


@pytest.mark.parametrize(
    ("settings", "title", "sentence"),
    [
        ({"veldt_max_session_seconds": "3"}, "Time is up", "time limit"),
        ({"veldt_idle_timeout_seconds": "3"}, "Nobody there?", "Nothing was pressed"),
    ],
    ids=["time limit", "idle"],
)
def test_a_limit_ends_it_in_words_and_it_can_be_played_again(
    page: Page, make_server: MakeServer, settings: dict[str, str], title: str, sentence: str
) -> None:
    server = make_server("--world", "marker", **settings)
    enter(page, server)
    wait_for(page, "ended", 15)
    expect(page.get_by_test_id("sheet-title")).to_have_text(title)
    expect(page.get_by_test_id("reason")).to_contain_text(sentence)
    expect(page.locator("body")).to_contain_text("You played for")
    assert axe_faults(page) == []
    page.get_by_test_id("play-again").click()
    wait_for(page, "playing")


def test_a_killed_worker_is_said_and_survived_by_keyboard(
    page: Page, make_server: MakeServer
) -> None:
    server = make_server("--world", "marker")
    enter(page, server)
    [worker] = server.workers()
    worker.kill()
    wait_for(page, "ended", 10)
    expect(page.get_by_test_id("sheet-title")).to_have_text("The world was lost")
    expect(page.get_by_test_id("reason")).to_contain_text("It is being restarted")
    expect(page.get_by_test_id("play-again")).to_be_focused()
    page.keyboard.press("Enter")  # while the next one is still loading
    wait_for(page, "playing", 60)


def test_a_full_house_is_said_and_tried_again(
    open_page: Callable[..., Page], make_server: MakeServer
) -> None:
    server = make_server("--world", "marker", "--seats", "1")
    first, second = open_page(), open_page()
    enter(first, server)
    second.goto(server.url)
    second.get_by_test_id("play").click()
    wait_for(second, "error", 20)
    expect(second.get_by_test_id("sheet-title")).to_have_text("Every seat is taken right now.")
    second.get_by_text("Details").click()
    expect(second.get_by_test_id("error-details")).to_contain_text("code: queue_full")
    expect(second.get_by_test_id("error-copy")).to_be_visible()
    assert axe_faults(second) == []
    first.get_by_test_id("leave").click()
    wait_for(first, "ended")
    second.get_by_test_id("retry").click()
    second.get_by_test_id("play").click()
    wait_for(second, "playing")


def test_a_server_that_is_gone_is_said(page: Page, make_server: MakeServer) -> None:
    server = make_server("--world", "marker")
    page.goto(server.url)
    expect(page.get_by_test_id("play")).to_be_enabled()
    server.stop()
    page.get_by_test_id("play").click()
    wait_for(page, "error")
    expect(page.get_by_test_id("sheet-title")).to_have_text("The server does not answer.")
    expect(page.get_by_test_id("retry")).to_be_focused()


def test_a_server_that_stops_while_one_plays_is_said(page: Page, make_server: MakeServer) -> None:
    server = make_server("--world", "marker")
    enter(page, server)
    server.stop()
    wait_for(page, "ended", 10)
    expect(page.get_by_test_id("sheet-title")).to_have_text("The server is stopping")


def test_no_media_path_is_said_while_it_is_tried(page: Page, tiny_server: ServerProcess) -> None:
    """The answer leads to an address where nobody is."""

    def lead_astray(route: object) -> None:
        response = route.fetch()  # type: ignore[attr-defined]
        answer = response.json()
        lines = [line for line in answer["sdp"].split("\r\n") if "candidate" not in line]
        nobody = "a=candidate:1 1 udp 2130706431 127.0.0.1 9 typ host"
        at = next(k for k, line in enumerate(lines) if line.startswith("a=mid"))
        lines.insert(at, nobody)
        answer["sdp"] = "\r\n".join(lines)
        route.fulfill(response=response, body=json.dumps(answer))  # type: ignore[attr-defined]

    # The offer's own candidates go too: nobody finds anybody.
    page.add_init_script(
        """
        const described = Object.getOwnPropertyDescriptor(
            RTCPeerConnection.prototype, "localDescription").get;
        Object.defineProperty(RTCPeerConnection.prototype, "localDescription", {get() {
            const own = described.call(this);
            return own && {type: own.type, sdp: own.sdp.replace(/a=candidate.*\\r\\n/g, "")};
        }});
        RTCPeerConnection.prototype.setRemoteDescription = async () => undefined;
        """
    )
    page.route("**/connect", lead_astray)
    page.goto(tiny_server.url)
    page.get_by_test_id("play").click()
    wait_for(page, "connecting")
    expect(page.locator(".more")).to_contain_text("may block UDP", timeout=15_000)
    expect(page.get_by_test_id("leave")).to_be_visible()


def test_thinking_better_of_it_while_nothing_is_ready(page: Page, make_server: MakeServer) -> None:
    server = make_server("--world", "marker")
    page.goto(server.url)
    expect(page.get_by_test_id("play")).to_be_enabled()
    [worker] = server.workers()
    worker.kill()
    worker.wait(5)
    page.get_by_test_id("play").click()
    wait_for(page, "checking", 5)
    page.get_by_test_id("withdraw").click()
    wait_for(page, "arriving", 5)
    expect(page.get_by_test_id("play")).to_be_enabled()
