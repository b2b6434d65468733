"""Things end and break: the page says in words what happened, and always offers a next step."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.e2e.page.sight import SIZES, axe_faults, misplaced, resize
from tests.e2e.player import been, enter, hud, told, wait_for
from tests.e2e.server import ServerProcess

MakeServer = Callable[..., ServerProcess]


ADMIN = "operator-" + "k" * 16
OPERATOR = {"Authorization": f"Bearer {ADMIN}"}


@pytest.fixture(scope="module")
def one_seat(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A house with one seat, whose worker tests may kill: another takes its place."""
    log = tmp_path_factory.mktemp("one_seat") / "server.log"
    server = ServerProcess(log, "--world", "marker", "--seats", "1", veldt_admin_key=ADMIN).start()
    yield server
    server.stop()


@pytest.fixture
def house(one_seat: ServerProcess) -> Iterator[ServerProcess]:
    """That house, ready and empty, and emptied again."""
    one_seat.wait_ready()
    yield one_seat
    for session in _listed(one_seat):
        kick(one_seat, session)


def _listed(server: ServerProcess) -> list[str]:
    answer = httpx.get(f"{server.url}/v1/sessions", headers=OPERATOR, timeout=10).json()
    return [session["session_id"] for session in answer["sessions"]]


def kick(server: ServerProcess, session: str) -> None:
    """End a session as an operator does."""
    httpx.delete(f"{server.url}/v1/sessions/{session}", headers=OPERATOR, timeout=10)


def ended(page: Page, title: str, reason: str, seconds: float = 30) -> None:
    """It has ended: why, for how long it was played, and how to go on."""
    wait_for(page, "ended", seconds)
    expect(page.get_by_test_id("sheet-title")).to_have_text(title)
    expect(page.get_by_test_id("reason")).to_contain_text(reason)
    expect(page.locator(".panel")).to_contain_text(re.compile(r"You played for [1-9]\d* s\."))
    expect(page.get_by_test_id("play-again")).to_be_enabled()
    expect(page.get_by_test_id("play-again")).to_be_focused()
    expect(page.get_by_test_id("choose")).to_be_visible()


# Plays that end by themselves soon may be over before a test has looked at them.
HOLD_WHEN_PLAYING = """() => {
    new MutationObserver((_, observer) => {
        if (document.body.dataset.state !== "playing") return;
        observer.disconnect();
        const key = {code: "KeyW", key: "w", bubbles: true};
        window.dispatchEvent(new KeyboardEvent("keydown", key));
    }).observe(document.body, {attributeFilter: ["data-state"]});
}"""


def begin(page: Page, server: ServerProcess) -> None:
    """Choose to play."""
    page.goto(server.url)
    page.get_by_test_id("play").click()


def for_two_seconds(page: Page) -> None:
    """Play that long."""
    page.wait_for_function("() => document.querySelector('video').currentTime > 2")


def test_the_limits_end_it_in_words_and_it_can_be_played_again(
    page: Page, make_server: MakeServer
) -> None:
    limits = {"veldt_idle_timeout_seconds": "3", "veldt_max_session_seconds": "8"}
    begin(page, make_server("--world", "marker", **limits))
    been(page, "playing")
    ended(page, "Nobody there?", "Nothing was pressed")
    page.evaluate(HOLD_WHEN_PLAYING)  # somebody is there
    page.get_by_test_id("play-again").click()
    been(page, "playing")
    ended(page, "Time is up", "time limit")
    assert axe_faults(page) == []
    page.get_by_test_id("choose").click()
    wait_for(page, "arriving")


def test_a_world_that_fails_is_said(page: Page, make_server: MakeServer) -> None:
    server = make_server("--world", "failing", veldt_world_options=json.dumps({"at_chunk": 12}))
    begin(page, server)
    been(page, "playing")
    ended(page, "The world was lost", "its model reported a fault")
    page.get_by_test_id("play-again").click()
    been(page, "playing")


def test_an_operator_may_end_it(page: Page, house: ServerProcess) -> None:
    enter(page, house)
    for_two_seconds(page)
    kick(house, hud(page)["session"])
    ended(page, "Ended by the operator", "An operator has ended this session.")
    page.keyboard.press("Enter")
    wait_for(page, "playing")


# Keeps what the page says of a service that went away; it may be back before a test looks.
AWAITED = """() => {
    window.awaited = [];
    new MutationObserver(() => {
        const words = document.querySelector("[data-testid=awaited]")?.textContent;
        if (words) awaited.push(words);
    }).observe(document.body, {childList: true, characterData: true, subtree: true});
}"""


def test_a_killed_worker_is_said_and_survived_by_keyboard(page: Page, house: ServerProcess) -> None:
    enter(page, house)
    for_two_seconds(page)
    page.evaluate(AWAITED)
    [worker] = house.workers()
    worker.kill()
    ended(page, "The world was lost", "The worker that made your world has stopped.")
    page.wait_for_function("() => awaited.some(words => words.includes('It is being restarted'))")
    page.keyboard.press("Enter")  # while the next one is still loading
    wait_for(page, "playing", 60)


def test_a_full_house_is_said_and_tried_again(
    open_page: Callable[..., Page], house: ServerProcess
) -> None:
    first, second = open_page(), open_page()
    second.context.grant_permissions(["clipboard-read", "clipboard-write"])
    enter(first, house)
    second.goto(house.url)
    second.get_by_test_id("play").click()
    wait_for(second, "error", 40)
    expect(second.get_by_test_id("sheet-title")).to_have_text("Every seat is taken right now.")
    faults = details_faults(second, "code: queue_full", "session: none")
    first.get_by_test_id("leave").click()
    wait_for(first, "ended")
    second.get_by_test_id("retry").click()
    second.get_by_test_id("play").click()
    wait_for(second, "playing")
    assert not faults, "\n".join(faults)


def details_faults(page: Page, *lines: str) -> list[str]:
    """Unfold the details and copy them; what is wrong with their looks, at any size."""
    expect(page.get_by_test_id("error-details")).to_be_hidden()
    page.get_by_text("Details").click()
    details = page.get_by_test_id("error-details")
    for line in lines:
        expect(details).to_contain_text(line)
    page.get_by_test_id("error-copy").click()
    told(page, "Copied")
    assert page.evaluate("() => navigator.clipboard.readText()") == details.text_content()
    expect(page.get_by_test_id("toast")).to_have_text("")  # it passes
    faults = axe_faults(page)
    for name, (width, height) in SIZES.items():
        resize(page, width, height)
        faults += [f"{name}: {fault}" for fault in misplaced(page)]
    return faults


def test_a_session_that_the_server_has_forgotten_is_said_with_its_name(
    open_page: Callable[..., Page], make_server: MakeServer
) -> None:
    """The server was killed, and another one has come in its place."""
    page = open_page()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    server = make_server("--world", "marker")
    enter(page, server)
    session = hud(page)["session"]
    assert server.process is not None
    server.process.kill()
    server.process.wait(5)
    wait_for(page, "reconnecting", 40)
    server.start()
    wait_for(page, "error")
    title = page.get_by_test_id("sheet-title")
    expect(title).to_contain_text("The server does not know this session any more.")
    faults = details_faults(page, "code: unknown_session", f"session: {session}")
    page.get_by_test_id("retry").click()
    wait_for(page, "arriving")
    assert not faults, "\n".join(faults)


def test_a_server_that_stops_is_said(page: Page, make_server: MakeServer) -> None:
    server = make_server("--world", "marker")
    enter(page, server)
    for_two_seconds(page)
    server.stop()
    ended(page, "The server is stopping", "play again")
    page.get_by_test_id("play-again").click()
    wait_for(page, "error")
    expect(page.get_by_test_id("sheet-title")).to_have_text("The server does not answer.")
    expect(page.get_by_test_id("retry")).to_be_focused()


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
    expect(page.locator(".panel")).to_contain_text("may block UDP", timeout=30_000)
    expect(page.get_by_test_id("leave")).to_be_visible()
