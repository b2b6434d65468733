"""A Chromium of its own, whose hidden tabs are hidden.

Playwright's own browsers make every page believe that it is looked at. This one is started
without that, slows the timers of hidden tabs as it does when it ships, and can be let go of, so
that nothing of a test happens in its pages meanwhile.
"""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Self

import httpx
from playwright.sync_api import Browser, Page, Playwright

START_SECONDS = 30.0
ALIVE = {"--disable-background-timer-throttling", "--disable-renderer-backgrounding"}


class LooseChromium:
    """One browser process with one window; tabs are told apart by their addresses."""

    def __init__(self, playwright: Playwright, path: str, folder: Path, *flags: str) -> None:
        self._playwright = playwright
        self._command = [
            path,
            *(flag for flag in flags if flag not in ALIVE),
            "--remote-debugging-port=0",
            f"--user-data-dir={folder}",
            "about:blank",
        ]
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._browser: Browser | None = None
        self._http = ""

    def start(self) -> Self:
        """Spawn and attach."""
        self._process = subprocess.Popen(
            self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        told = self._folder / "DevToolsActivePort"
        deadline = time.monotonic() + START_SECONDS
        while not (told.exists() and (lines := told.read_text().split())):
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise RuntimeError("Chromium did not come up")
            time.sleep(0.05)
        self._http = f"http://127.0.0.1:{lines[0]}"
        self.attach()
        return self

    def attach(self) -> None:
        """Take the browser as it is: no emulated focus, no emulated size."""
        if self._browser is None:
            self._browser = self._playwright.chromium.connect_over_cdp(self._http, no_defaults=True)

    def detach(self) -> None:
        """Let go of it; it goes on by itself."""
        if self._browser is not None:
            self._browser.close()
            self._browser = None

    def new_page(self, script: str = "") -> Page:
        """A tab in front of all others."""
        assert self._browser is not None
        page = self._browser.contexts[0].new_page()
        if script:
            page.add_init_script(script)
        page.bring_to_front()
        return page

    def page(self, address: str) -> Page:
        """The tab with this address, after `attach`."""
        assert self._browser is not None
        [page] = [one for one in self._browser.contexts[0].pages if one.url.startswith(address)]
        return page

    def close_all_but_one(self) -> None:
        """Close every tab but the first: a window without tabs is no window."""
        assert self._browser is not None
        for page in self._browser.contexts[0].pages[1:]:
            page.close()

    def tabs(self) -> list[dict[str, str]]:
        """What the tab strip says, newest tab first. Needs no attaching."""
        listed = httpx.get(f"{self._http}/json/list", timeout=10).json()
        return [tab for tab in listed if tab["type"] == "page"]

    def title(self, address: str) -> str:
        """What stands on the tab with this address. Needs no attaching."""
        [title] = [tab["title"] for tab in self.tabs() if tab["url"].startswith(address)]
        return title

    def cover(self) -> None:
        """Open an empty tab in front of all others. Needs no attaching."""
        httpx.put(f"{self._http}/json/new?about:blank", timeout=10).raise_for_status()

    def show(self, address: str) -> None:
        """Bring the tab with this address to the front. Needs no attaching."""
        [tab] = [tab["id"] for tab in self.tabs() if tab["url"].startswith(address)]
        httpx.get(f"{self._http}/json/activate/{tab}", timeout=10).raise_for_status()

    def stop(self) -> None:
        """End it."""
        self.detach()
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(5)
            self._process = None
