"""A gamepad and fingers, as the page meets them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Self

from playwright.sync_api import CDPSession, Page

# `navigator.getGamepads` of a browser with a pad that tests move. `null` = nothing is plugged in.
MOCKED_PADS = """
window.pads = [null, null, null, null];
navigator.getGamepads = () => window.pads;
"""


def set_pad(
    page: Page,
    axes: Sequence[float] | None,
    buttons: Sequence[int] = (),
    *,
    mapping: str = "standard",
    event: str = "",
) -> None:
    """Put the pad into a state; `axes=None` pulls its plug. Silent unless `event` names one."""
    pad = "null"
    if axes is not None:
        pressed = [{"pressed": k in buttons, "value": float(k in buttons)} for k in range(17)]
        fields = {"id": "Pad", "index": 0, "connected": True, "mapping": mapping}
        pad = json.dumps({**fields, "axes": list(axes), "buttons": pressed})
    page.evaluate(f"() => {{ window.pads[0] = {pad}; }}")
    if event:
        page.evaluate(f"() => {{ window.dispatchEvent(new Event({json.dumps(event)})); }}")


def press_pad(page: Page, button: int) -> None:
    """Press a button of the pad and let it go, each for as long as the page needs to look."""
    for buttons in ((button,), ()):
        set_pad(page, (0, 0, 0, 0), buttons)
        page.evaluate("() => new Promise(done => setTimeout(done, 80))")


class Fingers:
    """Touches by the browser's own input, several at once."""

    def __init__(self, page: Page) -> None:
        self._cdp: CDPSession = page.context.new_cdp_session(page)
        self._down: dict[int, tuple[float, float]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *fault: object) -> None:
        if self._down:
            self._send("touchEnd", {})

    def down(self, finger: int, x: float, y: float) -> None:
        """A finger touches the glass."""
        self._down[finger] = (x, y)
        self._send("touchStart")

    def move(self, finger: int, x: float, y: float) -> None:
        """It slides."""
        self._down[finger] = (x, y)
        self._send("touchMove")

    def up(self, finger: int) -> None:
        """It is lifted."""
        self._send("touchEnd", {finger: self._down.pop(finger)})

    def _send(self, kind: str, down: Mapping[int, tuple[float, float]] | None = None) -> None:
        shown = self._down if down is None else down
        points = [{"x": x, "y": y, "id": finger} for finger, (x, y) in shown.items()]
        self._cdp.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
