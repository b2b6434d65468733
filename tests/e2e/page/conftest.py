"""What the tests of the page share: one transport, and an eye on the console."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import ConsoleMessage, Page

from tests.e2e.page.pictures import keep
from tests.e2e.page.states import Unhurried
from tests.e2e.server import ServerProcess

# Chromium itself notes every request that was refused or found nobody as an error. Those of the API
# are answers that the page deals with; of anything else, such as a script or a picture, they count.
# The picture of the tab is fetched whenever the browser likes, also of a server that has ended.
_REFUSED = re.compile(r"Failed to load resource: (the server responded with|net::ERR_)")
_API = re.compile(r"https?://[^/]+/(v1/|readyz)")
_TAB = re.compile(r"https?://[^/]+/icon\.svg$")


@pytest.fixture(scope="session")
def transport() -> str:
    """What is tested here is the same on every transport."""
    return "webrtc"


@pytest.fixture
def open_page(open_page: Callable[..., Page], faults: list[str]) -> Callable[..., Page]:
    """Pages whose console must stay free of errors."""

    def note(message: ConsoleMessage) -> None:
        if message.type != "error":
            return
        address = message.location["url"]
        of_server = _REFUSED.match(message.text) and _API.match(address)
        of_tab = "ERR_CONNECTION_" in message.text and _TAB.match(address)
        if not of_server and not of_tab:
            faults.append(f"console: {message.text} {address}")

    def make(**options: object) -> Page:
        page = open_page(**options)
        page.on("console", note)
        return page

    return make


@pytest.fixture
def touch_page(open_page: Callable[..., Page], browser: object) -> Iterator[Page]:
    """A phone on its side, with fingers."""
    context = browser.new_context(  # type: ignore[attr-defined]
        viewport={"width": 844, "height": 390}, has_touch=True, is_mobile=True
    )
    yield open_page(context=context)
    context.close()


@pytest.fixture
def keep_picture(request: pytest.FixtureRequest) -> Callable[[Image.Image, str], None]:
    """Where `--keep-pictures` says, keeps a picture under a name."""
    folder: Path | None = request.config.getoption("--keep-pictures")

    def keep_it(shot: Image.Image, name: str) -> None:
        if folder is not None:
            keep(shot, folder / name)

    return keep_it


@pytest.fixture(scope="module")
def unhurried(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Unhurried]]:
    """A server of the embedded world on a slow machine, started when it is first asked for."""
    folder = tmp_path_factory.mktemp("unhurried")
    options = {"chunk_seconds": 0.42, "until": str(folder / "gate")}
    server = ServerProcess(
        folder / "server.log",
        "--seats",
        "8",
        veldt_world="tests.fakes.unhurried:make_world",
        veldt_world_options=json.dumps(options),
        veldt_stage_deadline_seconds="300",
        veldt_disconnect_grace_seconds="120",
        veldt_claim_seconds="120",
    )

    def started() -> Unhurried:
        (folder / "gate").touch()
        if server.process is None:
            server.start()
        server.wait_ready()
        return Unhurried(server, folder / "gate")

    yield started
    server.stop()
