"""The `veldt` command."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final, NoReturn

import typer
from rich.console import Console

from server.protocol.http import Readiness
from server.settings import BadSettings, Settings, settings_from

BAD_USE: Final = 2  # exit code of whatever the operator can put right
UNWELL: Final = 1  # of `doctor`, where something has to be mended

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Playable worlds.",
)
stderr = Console(stderr=True, highlight=False, soft_wrap=True)
stdout = Console(highlight=False, soft_wrap=True)


@app.callback()
def veldt() -> None:
    """Stream playable generated worlds to browsers."""


@app.command()
def serve(
    world: Annotated[str | None, typer.Option(help="World to load [VELDT_WORLD].")] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on [VELDT_HOST].")] = None,
    port: Annotated[int | None, typer.Option(help="Port, 0 = any [VELDT_PORT].")] = None,
    fps: Annotated[int | None, typer.Option(help="Frame rate of tiny [VELDT_TINY_FPS].")] = None,
    seats: Annotated[
        int | None, typer.Option(help="Sessions at a time [VELDT_MAX_SESSIONS_PER_WORKER].")
    ] = None,
    log_level: Annotated[str | None, typer.Option(help="[VELDT_LOG_LEVEL]")] = None,
) -> None:
    """Load a world, warm it up, serve the player's page; prints the address once it can be played.

    Every other setting is a VELDT_… variable: see docs/operations/settings.md.
    """
    try:
        settings = settings_from(
            os.environ,
            world=world,
            host=host,
            port=port,
            tiny_fps=fps,
            max_sessions_per_worker=seats,
            log_level=log_level,
        )
    except BadSettings as error:
        _fail(str(error))
    # Not before the settings are right: these take a second to import.
    from server.front.logs import configure
    from server.front.ports import PortUnavailable, listen
    from server.front.serving import serve as serve_until_signal

    try:
        listening = listen(settings.host, settings.port)
    except PortUnavailable as error:
        _fail(str(error))
    settings = settings.model_copy(update={"port": listening.getsockname()[1]})
    configure(settings.log_level, settings.log_format)
    with _progress(settings) as progress:
        hopeless = asyncio.run(
            serve_until_signal(settings, listening, on_readiness=progress.update)
        )
    if hopeless is not None:
        if progress.shown == hopeless:  # it was the last step that was told
            raise typer.Exit(BAD_USE)
        _fail(hopeless)


@app.command()
def fetch_weights(
    to: Annotated[Path, typer.Option(help="Directory to put them in (some 86 GB).")],
    accept_licence: Annotated[
        bool, typer.Option("--accept-licence", help="Accept the licence shown, without asking.")
    ] = False,
) -> None:
    """Download the published weights of LingBot-World-Fast; shows their licence first."""
    from pipeline.lingbot.fetch import main as fetch  # a second of imports that serve never needs

    consent = ["--accept-licence"] if accept_licence else []
    raise typer.Exit(fetch(["--to", str(to), *consent]))


@app.command()
def doctor(
    world: Annotated[str | None, typer.Option(help="World to load [VELDT_WORLD].")] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on [VELDT_HOST].")] = None,
    port: Annotated[int | None, typer.Option(help="Port [VELDT_PORT].")] = None,
) -> None:
    """Examine all that play needs here: one line each, what is wrong and how to mend it."""
    try:
        settings = settings_from(os.environ, world=world, host=host, port=port)
    except BadSettings as error:
        _fail(str(error))
    from server.doctor import Health, examine

    async def report() -> bool:
        well = True
        async for finding in examine(settings):
            stdout.print(str(finding), markup=False)
            well = well and finding.health is not Health.BAD
        return well

    if not asyncio.run(report()):
        raise typer.Exit(UNWELL)


class Progress:
    """Shows the steps of the cold start, then the address."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._status = stderr.status("starting") if stderr.is_terminal else None
        self.shown = ""  # the last step that was printed
        self._played = False

    def update(self, state: Readiness) -> None:
        """A step, or readiness. The address is printed once."""
        if state.ready:
            self.stop()
            if not self._played:
                self._played = True
                stdout.print(f"play at {self._settings.url}")
            return
        if self._status is not None and not self._played:
            share = "" if state.progress is None else f" ({state.progress:.0%})"
            self._status.update(f"{state.stage}{share}")
            self._status.start()
        elif state.stage != self.shown and not self._played:
            stderr.print(f"veldt: {state.stage}", markup=False)
            self.shown = state.stage

    def stop(self) -> None:
        """Give the terminal back."""
        if self._status is not None:
            self._status.stop()


@contextmanager
def _progress(settings: Settings) -> Iterator[Progress]:
    progress = Progress(settings)
    try:
        yield progress
    finally:
        progress.stop()


def _fail(sentence: str) -> NoReturn:
    """One sentence for the operator, never a traceback."""
    stderr.print(f"veldt: {sentence}", markup=False)
    raise typer.Exit(BAD_USE)


def main() -> None:
    """The console script."""
    app()


if __name__ == "__main__":
    main()
