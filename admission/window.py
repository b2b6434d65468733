"""The last few measurements of one quantity."""

from __future__ import annotations

from collections import deque


class Window:
    """A bounded number of measurements, oldest forgotten first, and their percentiles."""

    def __init__(self, size: int) -> None:
        """Keep the last `size` measurements."""
        self._values: deque[float] = deque(maxlen=size)

    def __len__(self) -> int:
        return len(self._values)

    def add(self, value: float) -> None:
        """Take one measurement."""
        self._values.append(value)

    def percentile(self, share: float) -> float | None:
        """The value below which `share` (0..1) of them lie, interpolated; None without any."""
        if not self._values:
            return None
        ordered = sorted(self._values)
        place = share * (len(ordered) - 1)
        below = int(place)
        above = min(below + 1, len(ordered) - 1)
        return ordered[below] + (place - below) * (ordered[above] - ordered[below])

    def median(self) -> float | None:
        """The middle one: a single stall among them does not move it."""
        return self.percentile(0.5)
