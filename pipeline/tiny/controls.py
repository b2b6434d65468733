"""From keys and axes to what the player wants, frame by frame.

A held key acts for the whole chunk. A key-down that is no longer held (a tap) acts for a fixed
time, so that it moves the world by the same amount at any frame rate; what does not fit into the
chunk is kept as unspent time, so that ten taps are ten, however fast they came.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pipeline.service import Control, ControlSnapshot
from pipeline.tiny.motion import STAND, Wanted

KEYS: Final = "WASDIJKL"  # walk and strafe with WASD, look with IJKL
CONTROLS: Final = (
    Control("KeyW", "Walk ahead"),
    Control("KeyA", "Step left"),
    Control("KeyS", "Walk back"),
    Control("KeyD", "Step right"),
    Control("KeyI", "Look up", ("ArrowUp",)),
    Control("KeyJ", "Look left", ("ArrowLeft",)),
    Control("KeyK", "Look down", ("ArrowDown",)),
    Control("KeyL", "Look right", ("ArrowRight",)),
)
AXES: Final = ("forward", "strafe", "yaw", "pitch")
TAP_SECONDS = 0.125  # how long a tap acts
MOST_UNSPENT_SECONDS = 4.0  # beyond this many taps in hand, more of them are lost

Seconds = tuple[float, ...]  # one for each of KEYS
NOTHING_UNSPENT: Final[Seconds] = (0.0,) * len(KEYS)


@dataclass(frozen=True)
class Steering:
    """A control snapshot as this world understands it: the control artifact of one chunk."""

    held: tuple[bool, ...] = (False,) * len(KEYS)  # one for each of KEYS
    taps: tuple[int, ...] = (0,) * len(KEYS)  # key-downs that are not the start of a hold
    axes: Wanted = STAND

    @staticmethod
    def of(control: ControlSnapshot) -> Steering:
        """Translate key codes and their aliases; other codes mean nothing here."""
        held, taps = [], []
        for key in CONTROLS:
            codes = (key.code, *key.aliases)
            down = [code for code in codes if code in control.held]
            presses = sum(max(0, control.presses.get(code, 0)) for code in codes)
            held.append(bool(down))
            taps.append(max(0, presses - len(down)))
        axes = (max(-1.0, min(1.0, control.axes.get(axis, 0.0))) for axis in AXES)
        return Steering(tuple(held), tuple(taps), Wanted(*axes))

    @staticmethod
    def holding(keys: str) -> Steering:
        """Hold some of `KEYS`, such as "WL"."""
        return Steering(held=tuple(key in keys for key in KEYS))

    def frames(
        self, unspent: Seconds, count: int, seconds: float
    ) -> tuple[tuple[Wanted, ...], Seconds]:
        """Return what is wanted in each of `count` frames of that length, and the unspent rest.

        A key that is held spends tap time too, so that taps never make it go on after release.
        """
        left = [
            min(MOST_UNSPENT_SECONDS, rest + TAP_SECONDS * taps)
            for rest, taps in zip(unspent, self.taps, strict=True)
        ]
        wanted = []
        for _ in range(count):
            spent = [min(seconds, rest) for rest in left]
            left = [rest - used for rest, used in zip(left, spent, strict=True)]
            levels = [
                1.0 if held else used / seconds for held, used in zip(self.held, spent, strict=True)
            ]
            wanted.append(_combined(levels, self.axes))
        return tuple(wanted), tuple(left)


def _combined(levels: list[float], axes: Wanted) -> Wanted:
    """Return the sum of keys (each 0..1, in the order of KEYS) and axes, each within -1..1."""
    ahead, left, back, right, up, look_left, down, look_right = levels

    def limited(value: float) -> float:
        return max(-1.0, min(1.0, value))

    return Wanted(
        forward=limited(ahead - back + axes.forward),
        strafe=limited(right - left + axes.strafe),
        yaw=limited(look_right - look_left + axes.yaw),
        pitch=limited(up - down + axes.pitch),
    )
