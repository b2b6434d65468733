"""The eye: picture size, field of view and height. What a pose looks like starts from these."""

from __future__ import annotations

import math

WIDTH, HEIGHT = 256, 160
FOCAL = WIDTH / 2 / math.tan(math.radians(75) / 2)  # pixels; 75 degrees across
EYE_HEIGHT = 1.5  # units
NEAR_DEPTH, NEAR_FADE_END = 0.35, 0.60  # parts closer than this fade out, then vanish
