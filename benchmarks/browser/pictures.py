"""Pictures of every state of the page, at the size of a desktop and of a phone, and a loop of play.

`python -m benchmarks.browser.pictures` writes them to docs/pictures; `--only playing slow` takes
some of them. Each state is reached for real, by the ways of `tests/e2e/page/states.py`, and the
loop is made of frames as they were displayed.
"""

from __future__ import annotations

import argparse
import dataclasses
import io
import itertools
import os
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, BrowserContext, Page, Route, sync_playwright

from tests.e2e.conftest import FLAGS, NO_MDNS
from tests.e2e.page.states import STATES, Reached, Stage, reached
from tests.e2e.picture import grab_frames, seconds_between
from tests.e2e.player import enter, seen_key, wait_for
from tests.e2e.server import ServerProcess

OUT = Path("docs/pictures")
SIZES = {"": (1280, 800), "-phone": (390, 844)}
PLACES = {"playing": "facing-the-sun", "arriving": "waterhole"}  # others begin at the waterhole
LOOP_SCALE = 2
MOVES = (("KeyW", 34), ("KeyL", 24), ("KeyW", 30), ("KeyJ", 24))  # key, frames


@contextmanager
def starved(server: ServerProcess, share: float) -> Iterator[None]:
    """A worker that gets only this share of the processor's time, as on a machine that is busy."""
    over = threading.Event()
    [worker] = server.workers()

    def pulse() -> None:
        while not over.is_set():
            worker.send_signal(signal.SIGSTOP)
            over.wait(0.2 * (1 - share))
            worker.send_signal(signal.SIGCONT)
            over.wait(0.2 * share)

    thread = threading.Thread(target=pulse)
    thread.start()
    yield
    over.set()
    thread.join()


def starting_here(stage: Stage) -> None:
    """The savanna, warming up on a machine that is very busy."""
    server = stage.make_server()
    pulses = ExitStack()
    stage.later(pulses.close)

    def connect(route: Route) -> None:
        route.continue_()
        pulses.enter_context(starved(server, 0.04))

    stage.page.route("**/connect", connect)
    stage.page.goto(f"{server.url}/?start={stage.start}")
    stage.page.get_by_test_id("play").click()
    wait_for(stage.page, "starting")


def slow_here(stage: Stage) -> None:
    """The savanna, on a machine that is busy."""
    server = stage.make_server()
    enter(stage.page, server, stage.start)
    pulses = ExitStack()
    stage.later(pulses.close)
    pulses.enter_context(starved(server, 0.14))
    wait_for(stage.page, "slow")


# The tests reach these two with a test picture, which is no sight.
HERE = {"starting": starting_here, "slow": slow_here}


class Studio:
    """A browser, a server that is shared, and servers that states break."""

    def __init__(self, browser: Browser, folder: Path) -> None:
        self._browser = browser
        self._folder = folder
        self._servers: list[ServerProcess] = []
        self.shared = self.make_server("--seats", "8", veldt_disconnect_grace_seconds="3")

    def make_server(self, *options: str, **settings: str) -> ServerProcess:
        """Start one more."""
        log = self._folder / f"server-{len(self._servers)}.log"
        server = ServerProcess(log, *options, **settings)
        self._servers.append(server)
        return server.start()

    def close(self) -> None:
        """End all servers but the shared one."""
        for server in self._servers[1:]:
            server.stop()
        del self._servers[1:]

    def stop(self) -> None:
        """End all of them."""
        self.close()
        self.shared.stop()

    @contextmanager
    def page(self, size: tuple[int, int], *, phone: bool) -> Iterator[Page]:
        """A page of this size, as sharp as such screens are."""
        context = self._browser.new_context(
            viewport={"width": size[0], "height": size[1]},
            device_scale_factor=2 if phone else 1,
            is_mobile=phone,
            has_touch=phone,
        )
        yield context.new_page()
        context.close()

    def take(self, state: Reached, suffix: str, out: Path) -> None:
        """Reach a state and keep what it looks like."""
        with self.page(SIZES[suffix], phone=suffix != "") as page:

            def another(context: BrowserContext) -> Page:
                return context.new_page()

            start = PLACES.get(state.name, "waterhole")
            stage = Stage(page, self.shared, self.make_server, another, start)
            state = dataclasses.replace(state, reach=HERE.get(state.name, state.reach))
            with reached(state, stage):
                if state.name == "playing":
                    page.keyboard.down("KeyW")
                    seen_key(page, "KeyW")
                    grab_frames(page, 10)
                page.wait_for_timeout(900)  # what fades has faded
                save(page, out / f"{state.name}{suffix}")
        self.close()

    def extras(self, out: Path) -> None:
        """The help sheet, and the figures while playing."""
        with self.page(SIZES[""], phone=False) as page:
            enter(page, self.shared, "under-the-acacia")
            for key in "WLWJWLWJWLWJ":
                page.keyboard.press(f"Key{key}", delay=150)
                page.wait_for_timeout(500)
            page.keyboard.press("KeyH")
            page.wait_for_timeout(2500)
            save(page, out / "figures")
            page.keyboard.press("KeyH")
            page.keyboard.press("?")
            page.wait_for_timeout(900)
            save(page, out / "help")

    def loop(self, out: Path) -> None:
        """A short walk, as it was displayed."""
        with self.page(SIZES[""], phone=False) as page:
            enter(page, self.shared, "giraffes")
            grab_frames(page, 20)  # it stands, and the picture is sharp
            seen = []
            for key, count in MOVES:
                page.keyboard.down(key)
                seen += grab_frames(page, count)
                page.keyboard.up(key)
        gaps = [seconds_between(a, b) for a, b in itertools.pairwise(seen)]
        milliseconds = [round(1000 * min(gap, 0.2)) for gap in gaps] + [42]
        height, width = seen[0].rgb.shape[:2]
        large = (width * LOOP_SCALE, height * LOOP_SCALE)
        first, *rest = [
            Image.fromarray(frame.rgb).resize(large, Image.Resampling.BICUBIC) for frame in seen
        ]
        first.save(
            out / "loop.webp", save_all=True, append_images=rest, duration=milliseconds, loop=0,
            quality=78, method=4,
        )  # fmt: skip


def save(page: Page, path: Path) -> None:
    """Keep what the page looks like, as WebP; the README's picture as PNG too."""
    shot = Image.open(io.BytesIO(page.screenshot()))
    shot.convert("RGB").save(path.with_suffix(".webp"), quality=82, method=6)
    if path.name == "playing":
        shot.convert("RGB").quantize(256, dither=Image.Dither.FLOYDSTEINBERG).save(
            path.with_suffix(".png"), optimize=True
        )


def main() -> None:
    """Take them all, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=None)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    wanted = options.only
    options.out.mkdir(parents=True, exist_ok=True)
    with ExitStack() as ending:
        folder = Path(ending.enter_context(tempfile.TemporaryDirectory()))
        driver = ending.enter_context(sync_playwright())
        browser = driver.chromium.launch(
            executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"),
            args=[*FLAGS, NO_MDNS],
            ignore_default_args=["--headless"],
        )
        ending.callback(browser.close)
        studio = Studio(browser, folder)
        ending.callback(studio.stop)
        for state in STATES:
            if wanted is None or state.name in wanted:
                for suffix in SIZES:
                    studio.take(state, suffix, options.out)
                    print(f"{state.name}{suffix}")
        if wanted is None or "extras" in wanted:
            studio.extras(options.out)
        if wanted is None or "loop" in wanted:
            studio.loop(options.out)


if __name__ == "__main__":
    main()
