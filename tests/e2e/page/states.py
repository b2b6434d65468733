"""Ways into every state of the page, each by what really happens: no page is told to pretend.

Only the server's part in `waiting` and `turn` is played by the test: there is no line for seats
yet, so its answers are written here as `docs/protocol/http.md` describes them.
"""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from playwright.sync_api import Page, Route, expect

from tests.e2e.page.pictures import Behind
from tests.e2e.player import enter, seen_key, wait_for
from tests.e2e.server import ServerProcess

MakeServer = Callable[..., ServerProcess]
OpenPage = Callable[..., Page]

FACES = Path("web_client/src/session/face.ts")  # the page's own list of its states
HIDE = """hidden => {
    Object.defineProperty(document, "visibilityState",
        {value: hidden ? "hidden" : "visible", configurable: true});
    document.dispatchEvent(new Event("visibilitychange"));
}"""
NO_WEBRTC = "delete window.RTCPeerConnection; delete window.webkitRTCPeerConnection;"


@dataclass(frozen=True)
class Unhurried:
    """A slow server of the embedded world, where nothing goes on without a file: its gate."""

    server: ServerProcess
    gate: Path


@dataclass
class Stage:
    """What a way into a state needs: a page, and servers."""

    page: Page
    tiny: ServerProcess
    make_server: MakeServer
    unhurried: Callable[[], Unhurried]
    open_page: OpenPage
    start: str = "waterhole"
    _undo: list[Callable[[], None]] = field(default_factory=list)

    def later(self, undo: Callable[[], None]) -> None:
        """Do this when the state has been looked at."""
        self._undo.append(undo)

    def undo(self) -> None:
        """Put back what the way into the state has changed."""
        while self._undo:
            self._undo.pop()()


def arriving(stage: Stage) -> None:
    stage.page.goto(f"{stage.tiny.url}/?start={stage.start}")
    expect(stage.page.get_by_test_id("play")).to_be_enabled()
    wait_for(stage.page, "arriving")


def checking(stage: Stage) -> None:
    """The worker dies while a place is being chosen; its successor is still getting warm."""
    unhurried = stage.unhurried()
    stage.page.goto(f"{unhurried.server.url}/?start={stage.start}")
    expect(stage.page.get_by_test_id("play")).to_be_enabled()
    unhurried.gate.unlink()
    stage.later(unhurried.gate.touch)
    [worker] = unhurried.server.workers()
    worker.kill()
    psutil.wait_procs([worker], timeout=30)
    stage.page.get_by_test_id("play").click()
    wait_for(stage.page, "checking")


SESSION = {
    "session_id": "s_line",
    "session_token": "t_line",
    "transport": "webrtc",
    "world": "tiny",
    "claim_seconds": None,
}

NOTHING_YET = {
    "stage": None,
    "reason": None,
    "queue_position": None,
    "eta_seconds": None,
    "played_seconds": 0.0,
}


def in_line(page: Page, server: ServerProcess, start: str, claim: float | None = None) -> None:
    """Be third in line; with `claim`, the seat is then kept for so many seconds."""
    queued = {"queue_position": 3, "eta_seconds": 150.0}
    until: float | None = None  # counts from the moment that the page is told
    told = False  # that it waits: who comes again hears how it stands now

    def left() -> dict[str, object]:
        nonlocal until
        until = until or time.monotonic() + (claim or 0)
        return {"claim_seconds": max(0.0, until - time.monotonic())}

    def view(route: Route) -> None:
        now = {"status": "queued", **queued} if claim is None else {"status": "admitted", **left()}
        route.fulfill(json={**SESSION, **NOTHING_YET, "start_point": start, **now})

    def stream(route: Route) -> None:
        nonlocal told
        news: list[dict[str, object]] = []
        if claim is None or not told:
            news.append({"event": "queued", **queued})
        if claim is not None:
            news.append({"event": "admitted", **left()})
        told = True
        body = "".join(f"data: {json.dumps(one)}\n\n" for one in news)
        route.fulfill(headers={"content-type": "text/event-stream"}, body=body)

    created = {**SESSION, "status": "queued", **queued}
    page.route("**/v1/sessions", lambda route: route.fulfill(status=201, json=created))
    page.route("**/v1/sessions/s_line", view)
    page.route("**/v1/sessions/s_line/events", stream)
    page.goto(f"{server.url}/?start={start}")
    page.get_by_test_id("play").click()


def waiting(stage: Stage) -> None:
    in_line(stage.page, stage.tiny, stage.start)
    wait_for(stage.page, "waiting")


def turn(stage: Stage) -> None:
    in_line(stage.page, stage.tiny, stage.start, claim=20.0)
    wait_for(stage.page, "turn")


def connecting(stage: Stage) -> None:
    """The network holds the offer back."""
    held: list[Route] = []
    stage.page.route("**/connect", lambda route: held.append(route))
    stage.page.goto(f"{stage.tiny.url}/?start={stage.start}")
    stage.page.get_by_test_id("play").click()
    wait_for(stage.page, "connecting")
    stage.later(lambda: stage.page.unroute("**/connect"))


def starting(stage: Stage) -> None:
    """A first chunk that takes its time."""
    unhurried = stage.unhurried()
    unhurried.gate.unlink()
    stage.later(unhurried.gate.touch)
    stage.page.goto(f"{unhurried.server.url}/?start={stage.start}")
    stage.page.get_by_test_id("play").click()
    wait_for(stage.page, "starting")


def playing(stage: Stage) -> None:
    """Walking: W is held, and the frame on screen is known to show it."""
    enter(stage.page, stage.tiny, stage.start)
    stage.page.keyboard.down("KeyW")
    seen_key(stage.page, "KeyW")
    stage.page.mouse.move(600, 300)  # the tools are there


def slow(stage: Stage) -> None:
    """Chunks that take longer to make than to play."""
    unhurried = stage.unhurried()
    enter(stage.page, unhurried.server, stage.start)
    wait_for(stage.page, "slow")


def paused(stage: Stage) -> None:
    enter(stage.page, stage.tiny, stage.start)
    stage.page.keyboard.press("KeyP")
    wait_for(stage.page, "paused")


def hidden(stage: Stage) -> None:
    enter(stage.page, stage.tiny, stage.start)
    stage.page.evaluate(HIDE, True)
    wait_for(stage.page, "hidden")
    stage.later(lambda: stage.page.evaluate(HIDE, False))


def reconnecting(stage: Stage) -> None:
    """Nothing comes from the worker any more: its process stands still."""
    limits = {"veldt_worker_hang_seconds": "180", "veldt_disconnect_grace_seconds": "120"}
    server = stage.make_server(**limits)
    enter(stage.page, server, stage.start)
    stage.page.keyboard.down("KeyW")
    [worker] = server.workers()
    worker.send_signal(signal.SIGSTOP)
    stage.later(lambda: worker.send_signal(signal.SIGCONT))
    wait_for(stage.page, "reconnecting", 60)


def elsewhere(stage: Stage) -> None:
    """A second tab with the same session takes it over."""
    enter(stage.page, stage.tiny, stage.start)
    stored = stage.page.evaluate("JSON.stringify({...sessionStorage})")
    second = stage.open_page(context=stage.page.context)
    second.add_init_script(
        f"for (const [k, v] of Object.entries({stored})) sessionStorage.setItem(k, v);"
    )
    second.goto(stage.tiny.url)
    wait_for(second, "elsewhere")
    second.get_by_test_id("take-over").click()
    wait_for(stage.page, "elsewhere")
    stage.page.bring_to_front()


def crossroads(stage: Stage) -> None:
    """A link to another place is opened in the tab that plays."""
    unhurried = stage.unhurried()
    enter(stage.page, unhurried.server, "hut")
    stage.page.goto(f"{unhurried.server.url}/?start={stage.start}")
    wait_for(stage.page, "crossroads")


def ended(stage: Stage) -> None:
    enter(stage.page, stage.tiny, stage.start)
    stage.page.wait_for_function("() => document.querySelector('video').currentTime > 2")
    stage.page.get_by_test_id("leave").click()
    wait_for(stage.page, "ended")


def error(stage: Stage) -> None:
    """A browser that knows no WebRTC."""
    stage.page.add_init_script(NO_WEBRTC)
    stage.page.goto(f"{stage.tiny.url}/?start={stage.start}")
    stage.page.get_by_test_id("play").click()
    wait_for(stage.page, "error")


@dataclass(frozen=True)
class Reached:
    """A state, the way there, its words, and the next step that it offers."""

    name: str
    reach: Callable[[Stage], None]
    words: str  # somewhere on the page
    step: str | None  # data-testid of what leads on; None = it goes on by itself
    pill: str
    behind: Behind  # what lies behind all of it
    title: str = "The veldt"  # of the tab
    words_in_hand: str | None = None  # where fingers play, if others


STATES = (
    Reached("arriving", arriving, "Choose where to begin", "play", "Ready", Behind.PLACE),
    Reached("checking", checking, "Getting ready: ", "withdraw", "Getting ready: ", Behind.PLACE),
    Reached("crossroads", crossroads, "Where to?", "go-elsewhere", "Two ways", Behind.HAZE),
    Reached(
        "waiting", waiting, "2 ahead of you · about 2–3 min", "leave-here", "Waiting",
        Behind.HAZE, "2 ahead of you · The veldt",
    ),
    Reached(
        "turn", turn, "Your seat is ready — step in (", "step-in", "Your turn",
        Behind.HAZE, "Your seat is ready · The veldt",
    ),
    Reached("connecting", connecting, "Connecting", "leave", "Connecting", Behind.PLACE),
    Reached("starting", starting, "Warming up", "leave", "Warming up", Behind.PLACE),
    Reached("playing", playing, "", "leave", "", Behind.WORLD),
    Reached("slow", slow, "The server is at ", "leave", " % speed (1 player)", Behind.WORLD),
    Reached(
        "paused", paused, "Paused — press any key", "resume", "Paused", Behind.DIMMED,
        words_in_hand="Paused — tap to go on",
    ),
    Reached(
        "hidden", hidden, "Paused while you look away", None, "Paused while hidden", Behind.DIMMED
    ),
    Reached(
        "reconnecting", reconnecting, "Connection lost. Trying again (", "leave-here",
        "Reconnecting", Behind.DIMMED,
    ),
    Reached(
        "elsewhere", elsewhere, "Playing in another tab", "take-over", "Playing in another tab",
        Behind.DIMMED,
    ),
    Reached("ended", ended, "Until next time", "play-again", "Ended", Behind.BLURRED),
    Reached("error", error, "This browser blocks WebRTC.", "retry", "Not playing", Behind.HAZE),
)  # fmt: skip


def faces() -> list[str]:
    """The states that the page has."""
    [table] = re.findall(r"FACES = \[(.*?)\]", FACES.read_text(), re.DOTALL)
    return re.findall(r'"(\w+)"', table)


@contextmanager
def reached(state: Reached, stage: Stage) -> Iterator[Page]:
    """The page in that state; what was changed for it is put back afterwards."""
    try:
        state.reach(stage)
        yield stage.page
    finally:
        stage.undo()
