"""Pictures of the page as it is on screen, at a desk and in the hand, and what lies behind."""

from __future__ import annotations

import base64
import io
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from playwright.sync_api import CDPSession, Page

Grey = NDArray[np.float64]

DESK: Final = (1280, 800)
HAND: Final = (390, 844)  # a phone, upright
HAND_SCALE: Final = 2  # screen pixels to a CSS pixel


def file_name(state: str, size: tuple[int, int]) -> str:
    """What a state's picture is called in docs/pictures."""
    return f"{state}{'-phone' if size == HAND else ''}.webp"


# What fades has faded, what slides has arrived; what never ends may go on.
SETTLED = """() => document.getAnimations().every(one =>
    one.playState !== "running" || one.effect.getComputedTiming().endTime === Infinity)
    && document.querySelectorAll(".backdrop > *").length <= 1"""


def settle(page: Page) -> None:
    """Wait until nothing fades or slides any more."""
    page.wait_for_function(SETTLED, polling=50)


def photograph(page: Page, hand: CDPSession | None = None) -> Image.Image:
    """What is on screen, in the screen's own pixels; `hand` is that of `in_the_hand`."""
    cdp = hand or page.context.new_cdp_session(page)
    shot = cdp.send("Page.captureScreenshot", {"format": "png", "optimizeForSpeed": True})
    if hand is None:
        cdp.detach()
    return Image.open(io.BytesIO(base64.b64decode(shot["data"]))).convert("RGB")


@contextmanager
def in_the_hand(page: Page) -> Iterator[CDPSession]:
    """The same page as on a phone: small, sharp, under a finger."""
    cdp = page.context.new_cdp_session(page)
    width, height = HAND
    cdp.send(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": HAND_SCALE, "mobile": True},
    )
    cdp.send("Emulation.setTouchEmulationEnabled", {"enabled": True, "maxTouchPoints": 5})
    page.wait_for_function(
        "width => innerWidth === width && matchMedia('(pointer: coarse)').matches", arg=width
    )
    yield cdp
    cdp.send("Emulation.setTouchEmulationEnabled", {"enabled": False})
    cdp.send("Emulation.clearDeviceMetricsOverride")
    cdp.detach()


class Behind(Enum):
    """What lies behind the words: bounds of `Look` at a desk (brightness, sharpness)."""

    PLACE = (0.20, 0.85, 0.4, 1.2)  # the start picture, nearly sharp
    HAZE = (0.60, 0.85, 0.0, 0.33)  # the start picture, blurred
    WORLD = (0.90, 1.10, 0.8, 1.3)  # as it is
    DIMMED = (0.40, 0.60, 0.8, 1.3)  # its last frame, darker
    BLURRED = (0.40, 0.60, 0.0, 0.45)  # its last frame, darker and blurred


@dataclass(frozen=True)
class Look:
    """What is seen of a picture where nothing lies over it, in proportion to the picture itself."""

    brightness: float
    sharpness: float  # of its edges, whatever the brightness
    likeness: float  # correlation of its larger parts: 1 = the same picture


# The picture that lies at the back, as a data URL or address, and where it should be.
SOURCE = """frame => {
    const [video, still] = [...document.querySelectorAll("#stage video, #stage canvas")];
    const shown = still.hidden ? video : still;
    if (!frame) {
        const poster = document.querySelector(".poster:last-child");
        return new URL(getComputedStyle(poster).backgroundImage.slice(5, -2), location).href;
    }
    const canvas = document.createElement("canvas");
    canvas.width = shown.videoWidth ?? shown.width;
    canvas.height = shown.videoHeight ?? shown.height;
    canvas.getContext("2d").drawImage(shown, 0, 0);
    return canvas.toDataURL();
}"""
COVERS = """() => [...document.querySelectorAll(
    ".where, .tool, .cluster, .panel, .hud, .greeting, .arriving h2, .cards, .begin, .hint-pill")]
    .filter(one => one.checkVisibility())
    .map(one => one.getBoundingClientRect())
    .map(({left, top, right, bottom}) => [left, top, right, bottom])"""
_AROUND = 50  # CSS pixels about what lies over the picture: most of its shadow
_PART = 40  # CSS pixels: the larger parts of a picture


def look(page: Page, shot: Image.Image, behind: Behind, before: Image.Image) -> Look:
    """Compare what is on screen with the picture that should lie behind, at a desk's size.

    Before the picture was taken, `source` was `before`; a world that lives is another one by now.
    """
    return max(
        (_look(page, shot, behind, one) for one in (before, source(page, behind))),
        key=lambda seen: seen.likeness,
    )


def source(page: Page, behind: Behind) -> Image.Image:
    """The picture that should lie at the back, as it is by itself."""
    frame = behind in (Behind.WORLD, Behind.DIMMED, Behind.BLURRED)
    with urllib.request.urlopen(page.evaluate(SOURCE, frame)) as answer:
        return Image.open(io.BytesIO(answer.read())).convert("RGB")


def _look(page: Page, shot: Image.Image, behind: Behind, picture: Image.Image) -> Look:
    margin = 0.06 if behind in (Behind.PLACE, Behind.HAZE) else 0.0
    width, height = shot.size
    seen, whole = _grey(shot), _grey(_cover(picture, width, height, margin))
    bare = np.ones(seen.shape, bool)
    for left, top, right, bottom in page.evaluate(COVERS):
        rows = slice(max(0, int(top) - _AROUND), int(bottom) + _AROUND)
        bare[rows, max(0, int(left) - _AROUND) : int(right) + _AROUND] = False
    # A veil darkens the upper and the lower edge, for what stands there; a panel throws a shadow.
    bare[: int(0.22 * height)] = bare[int(0.7 * height) :] = False
    brightness = float(seen[bare].mean() / whole[bare].mean())
    sharpness = _edges(seen, bare) / _edges(whole, bare) / brightness
    return Look(brightness, sharpness, _likeness(seen, whole, bare))


def _grey(picture: Image.Image) -> Grey:
    return np.asarray(picture).astype(float).mean(2)


def _cover(picture: Image.Image, width: int, height: int, margin: float) -> Image.Image:
    """`object-fit: cover`, or a poster that reaches a `margin` beyond the window on all sides."""
    wide, high = width * (1 + 2 * margin), height * (1 + 2 * margin)
    scale = max(wide / picture.width, high / picture.height)
    large = picture.resize(
        (round(picture.width * scale), round(picture.height * scale)), Image.Resampling.BILINEAR
    )
    across, down = 0.5, 0.4 if margin else 0.5
    left = (large.width - wide) * across + width * margin
    top = (large.height - high) * down + height * margin
    return large.crop((round(left), round(top), round(left) + width, round(top) + height))


def _edges(grey: Grey, bare: NDArray[np.bool_]) -> float:
    both = bare[:, 1:] & bare[:, :-1]
    return float(np.sqrt(np.square(np.diff(grey, axis=1)[both]).mean()))


def _likeness(one: Grey, other: Grey, bare: NDArray[np.bool_]) -> float:
    """Correlation of the means of large squares."""
    rows, columns = (side // _PART * _PART for side in one.shape)

    def parts(values: NDArray[np.float64]) -> Grey:
        cut = values[:rows, :columns]
        return cut.reshape(rows // _PART, _PART, columns // _PART, _PART).sum((1, 3))

    count = parts(bare.astype(float))
    known = count > _PART**2 / 2
    first, second = (parts(grey * bare)[known] / count[known] for grey in (one, other))
    return float(np.corrcoef(first, second)[0, 1])


def keep(shot: Image.Image, path: Path) -> None:
    """Write a picture for the docs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    shot.save(path, quality=82, method=6)
