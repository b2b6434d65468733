"""The pictures of the docs: one of each state at each size, and a short walk. Tests take them."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Page

from tests.e2e.page.pictures import DESK, HAND, HAND_SCALE, file_name
from tests.e2e.page.states import faces
from tests.e2e.picture import (
    Seen,
    grab_frames,
    grab_steady,
    seconds_between,
    shift_per_second,
    zoom_per_second,
)
from tests.e2e.player import enter, hud
from tests.e2e.server import ServerProcess

FOLDER = Path("docs/pictures")
PAGES = [Path("README.md"), *sorted(Path("docs").rglob("*.md"))]
LAYERS = ("figures.webp", "help.webp")
LOOP = "loop.webp"
MOST_BYTES = 3_000_000  # of all of them together

LOOP_SCALE = 2
WALK = (("KeyW", 1.2), ("KeyL", 1.0), ("KeyW", 1.2), ("KeyJ", 1.0))  # key, seconds of the world
# Looked at with each picture: who walks on for long comes to other places.
SEEN = "key => document.querySelector('[data-testid=shown-keys]').textContent.includes(key)"


def test_each_state_has_one_picture_of_each_size_and_nothing_else_is_there() -> None:
    states = [file_name(name, size) for name in faces() for size in (DESK, HAND)]
    assert sorted(path.name for path in FOLDER.iterdir()) == sorted([*states, *LAYERS, LOOP])
    hand = (HAND[0] * HAND_SCALE, HAND[1] * HAND_SCALE)
    for name in [*states, *LAYERS]:
        with Image.open(FOLDER / name) as picture:
            assert picture.size == (hand if name.endswith("-phone.webp") else DESK), name
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) <= MOST_BYTES


def test_the_docs_show_each_picture_and_name_none_that_is_missing() -> None:
    shown = set()
    for page in PAGES:
        for link in re.findall(r"!\[[^\]]*\]\(([^)#]+)\)", page.read_text()):
            assert (page.parent / link).is_file(), f"{page} shows {link}"
            shown.add((page.parent / link).resolve())
    assert {path.resolve() for path in FOLDER.iterdir()} <= shown


def test_the_loop_is_long_enough_to_be_a_walk() -> None:
    with Image.open(FOLDER / LOOP) as loop:
        frames = getattr(loop, "n_frames", 1)
        seen = []
        for number in range(frames):
            loop.seek(number)
            small = loop.convert("RGB").resize((64, 40))
            seen.append(np.asarray(small, float))
    assert frames >= 48
    steps = [np.abs(one - other).mean() for one, other in itertools.pairwise(seen)]
    assert np.median(steps) > 0.5, "it stands still"
    assert max(steps) < 40, "it jumps"


def test_a_walk_goes_ahead_and_turns(
    page: Page, tiny_server: ServerProcess, request: pytest.FixtureRequest
) -> None:
    enter(page, tiny_server, "giraffes")
    grab_frames(page, 12)  # it stands, and the picture is sharp
    fps = hud(page)["target_fps"]
    legs = []
    for key, seconds in WALK:
        page.keyboard.down(key)
        page.wait_for_function(SEEN, arg=key)
        legs.append(grab_steady(page, round(seconds * fps)))
        page.keyboard.up(key)
    folder: Path | None = request.config.getoption("--keep-pictures")
    if folder is not None:
        write_loop([frame for leg in legs for frame in leg], folder / LOOP)
    ahead, right, _, left = [leg[len(leg) // 2 :] for leg in legs]  # each well under way
    assert zoom_per_second(ahead) > 1.02
    assert shift_per_second(right) < -5
    assert shift_per_second(left) > 5


def write_loop(frames: list[Seen], path: Path) -> None:
    """An animated WebP that runs as it was seen."""
    gaps = [seconds_between(one, other) for one, other in itertools.pairwise(frames)]
    height, width = frames[0].rgb.shape[:2]
    first, *rest = [
        Image.fromarray(frame.rgb).resize(
            (width * LOOP_SCALE, height * LOOP_SCALE), Image.Resampling.BICUBIC
        )
        for frame in frames
    ]
    milliseconds = [round(1000 * min(gap, 0.2)) for gap in gaps] + [42]
    first.save(
        path, save_all=True, append_images=rest, duration=milliseconds, loop=0, quality=78, method=4
    )
