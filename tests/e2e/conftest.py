"""A player's side: Chromium through Playwright, and a server that is really running."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Page,
    Playwright,
    expect,
    sync_playwright,
)

from tests.e2e.player import WITNESS
from tests.e2e.server import ServerProcess
from tests.livekit_server import LiveKitServer

FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--autoplay-policy=no-user-gesture-required",
    "--allow-loopback-in-peer-connection",
    "--disable-background-networking",
    "--disable-quic",
    "--disable-background-timer-throttling",
    "--disable-renderer-backgrounding",
    "--no-first-run",
    "--disable-component-update",
    "--disable-sync",
]
NO_MDNS = "--disable-features=WebRtcHideLocalIpsWithMdns"

expect.set_options(timeout=15_000)  # a busy machine may stand still for seconds


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """In CI a browser test that is skipped has failed."""
    report = yield
    if report.skipped and os.environ.get("CI") == "true" and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped, and CI must run it: {call.excinfo}"
    return report


@pytest.fixture(scope="session")
def chromium_path() -> str:
    """The browser: `CHROMIUM` or the one on PATH; a machine without one fails with the cure."""
    for name in (os.environ.get("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"):
        if name and (path := shutil.which(name)):
            return path
    pytest.fail("no Chromium: 'apt-get install chromium' or CHROMIUM=/path/to/chromium")


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as driver:
        yield driver


@pytest.fixture(scope="session")
def browser(playwright: Playwright, chromium_path: str) -> Iterator[Browser]:
    """Chromium with host addresses shown, so that connecting takes no mDNS second."""
    browser = playwright.chromium.launch(
        executable_path=chromium_path, args=[*FLAGS, NO_MDNS], ignore_default_args=["--headless"]
    )
    yield browser
    browser.close()


@pytest.fixture(scope="session")
def plain_browser(playwright: Playwright, chromium_path: str) -> Iterator[Browser]:
    """Chromium as it ships: host addresses hidden behind mDNS names."""
    browser = playwright.chromium.launch(
        executable_path=chromium_path, args=FLAGS, ignore_default_args=["--headless"]
    )
    yield browser
    browser.close()


@pytest.fixture
def faults(request: pytest.FixtureRequest) -> Iterator[list[str]]:
    """What went wrong inside pages of this test; it must stay empty."""
    found: list[str] = []
    yield found
    assert found == [], f"the page reported: {found}"


@pytest.fixture
def servers() -> Iterator[list[ServerProcess]]:
    """The servers of one test; they end after its pages, which may still be loading something."""
    started: list[ServerProcess] = []
    yield started
    for server in started:
        server.stop()


@pytest.fixture
def open_page(
    browser: Browser,
    faults: list[str],
    request: pytest.FixtureRequest,
    tmp_path: Path,
    servers: list[ServerProcess],
) -> Iterator[Callable[..., Page]]:
    """Opens pages at desktop size; a failing test leaves their screenshots in `tmp_path`."""
    contexts: list[BrowserContext] = []

    def make(
        *, within: Browser | None = None, context: BrowserContext | None = None, script: str = ""
    ) -> Page:
        if context is None:
            context = (within or browser).new_context(viewport={"width": 1280, "height": 800})
            contexts.append(context)
        page = context.new_page()
        page.add_init_script(WITNESS)
        if script:
            page.add_init_script(script)
        page.on("pageerror", lambda error: faults.append(str(error)))
        return page

    failed_before = request.session.testsfailed
    yield make
    if request.session.testsfailed > failed_before:
        for number, page in enumerate(page for context in contexts for page in context.pages):
            page.screenshot(path=tmp_path / f"failed-{number}.png")
    for context in contexts:
        # What a page asks for while it is closed is answered by nobody, and is nobody's fault.
        for routed in (context, *context.pages):
            routed.unroute_all(behavior="ignoreErrors")
        context.close()


@pytest.fixture
def page(open_page: Callable[..., Page]) -> Page:
    return open_page()


@pytest.fixture(scope="session", params=["webrtc", "livekit"])
def transport(request: pytest.FixtureRequest) -> str:
    """How players are reached; what a player sees is the same."""
    return str(request.param)


@pytest.fixture(scope="session")
def livekit_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveKitServer]:
    """The real one, shared by all services of the tests: each has rooms of its own."""
    server = LiveKitServer(tmp_path_factory.mktemp("livekit")).start()
    yield server
    server.stop()


@pytest.fixture
def transport_settings(transport: str, request: pytest.FixtureRequest) -> dict[str, str]:
    """What a server needs in its environment to use the transport."""
    if transport == "webrtc":
        return {}
    server: LiveKitServer = request.getfixturevalue("livekit_server")
    return server.settings


@pytest.fixture(scope="session")
def tiny_servers(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[[str, dict[str, str]], ServerProcess]]:
    """One server of the embedded world per transport, started when it is first asked for.

    Folders override `transport`; a session-wide server that depended on it would be handed on
    from one folder to another, whatever it speaks.
    """
    started: dict[str, ServerProcess] = {}

    def of(transport: str, settings: dict[str, str]) -> ServerProcess:
        if transport not in started:
            log = tmp_path_factory.mktemp("tiny") / "server.log"
            limits = {"veldt_disconnect_grace_seconds": "15", "veldt_claim_seconds": "120"}
            started[transport] = ServerProcess(log, "--seats", "16", **limits, **settings).start()
        return started[transport]

    yield of
    for server in started.values():
        server.stop()


@pytest.fixture
def tiny_server(
    tiny_servers: Callable[[str, dict[str, str]], ServerProcess],
    transport: str,
    transport_settings: dict[str, str],
) -> ServerProcess:
    """The embedded world, shared by the tests that leave it as they found it.

    A closed page keeps its seat for the grace, so that is short here and seats are many: but long
    enough for a reload on a busy machine.
    """
    return tiny_servers(transport, transport_settings)


@pytest.fixture
def make_server(
    tmp_path: Path, transport_settings: dict[str, str], servers: list[ServerProcess]
) -> Callable[..., ServerProcess]:
    """Starts servers that a test may break."""

    def make(*options: str, **settings: str) -> ServerProcess:
        log = tmp_path / f"server-{len(servers)}.log"
        server = ServerProcess(log, *options, **{**transport_settings, **settings})
        servers.append(server)
        return server.start()

    return make


@pytest.fixture(scope="session")
def marker_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """Pictures that say what they show, over direct WebRTC, for players who leave no trace.

    Whoever vanishes is given up soon.
    """
    server = ServerProcess(
        tmp_path_factory.mktemp("marker") / "server.log",
        "--world",
        "marker",
        "--seats",
        "8",
        veldt_connect_seconds="6",
        veldt_lost_seconds="6",
        veldt_disconnect_grace_seconds="3",
    ).start()
    yield server
    server.stop()
