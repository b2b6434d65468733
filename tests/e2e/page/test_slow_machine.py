"""A computer that is too slow: its pictures really stay away, and the page says on which side."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import psutil
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.player import enter, hud, wait_for
from tests.e2e.server import ServerProcess

STOPPED_SECONDS, RUNNING_SECONDS = 0.09, 0.01
PILL = """
document.addEventListener("DOMContentLoaded", () => {
    window.said = [];
    const pill = document.querySelector(".pill");
    new MutationObserver(() => said.push(pill.textContent))
        .observe(pill, {childList: true, characterData: true, subtree: true});
});
"""
READS_ON = "() => document.querySelector('[data-testid=help]').contains(document.activeElement)"


@contextmanager
def slowed(browser: Browser) -> Iterator[None]:
    """Let the processes that decode and show pages run for a tenth of the time."""
    info = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
    renderers = [psutil.Process(one["id"]) for one in info if one["type"] == "renderer"]
    over = threading.Event()

    def signal_all(which: signal.Signals) -> None:
        for renderer in renderers:
            with suppress(psutil.NoSuchProcess):
                renderer.send_signal(which)

    def pulse() -> None:
        while not over.is_set():
            signal_all(signal.SIGSTOP)
            over.wait(STOPPED_SECONDS)
            signal_all(signal.SIGCONT)
            over.wait(RUNNING_SECONDS)

    thread = threading.Thread(target=pulse)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def not_shown(page: Page) -> tuple[int, int]:
    """How many pictures the page had, and how many of them it did not show."""
    return tuple(  # type: ignore[return-value]
        page.evaluate(
            """() => {
                const told = document.querySelector("video").getVideoPlaybackQuality();
                return [told.totalVideoFrames, told.droppedVideoFrames];
            }"""
        )
    )


@pytest.mark.timeout(300)
def test_a_computer_that_is_too_slow_is_told_so_until_it_is_fast_again(
    browser: Browser, open_page: Callable[..., Page], make_server: Callable[..., ServerProcess]
) -> None:
    page = open_page(script=PILL)
    enter(page, make_server("--world", "marker"))
    total, dropped = not_shown(page)
    with slowed(browser):
        wait_for(page, "slow", 60)
        expect(page.get_by_test_id("pill")).to_have_text(
            "This computer is too slow to show every frame"
        )
        later, lost = not_shown(page)
        assert lost - dropped > 0.25 * (later - total), "it was not slow"
        assert hud(page)["frames_dropped"] > dropped
        page.keyboard.press("?")
        expect(page.get_by_test_id("help")).to_be_visible()
    expect(page.locator("body")).to_have_attribute("data-state", "playing", timeout=120_000)
    assert page.evaluate(READS_ON), "the change took the focus out of the help"
    assert not any("server" in words for words in page.evaluate("() => said"))
