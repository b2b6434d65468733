"""The learned place: feature maps and a small style network that turn poses into screen features.

Every pixel gets FEATURES numbers, which `model.Decoder` turns into colour. They come from maps that
training has filled: a panorama of sky and haze, drifting clouds, the ground in three resolutions, a
repeating grass pattern, ripples of the waterhole, and a texture for every look of a part. Maps are
sampled bilinearly. Parts are composited nearest first; their textures hold distances to a learned
outline, so an edge is one pixel soft from near and from far.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from pipeline.tiny import camera, place
from pipeline.tiny.geometry import (
    TILE,
    TILES_X,
    TILES_Y,
    TRAITS,
    H,
    PartViews,
    TilePairs,
    Views,
    W,
    smoothstep,
)

FEATURES = 6
TEXTURE_SIZE, TEXTURE_REACH = 72, 1.75  # texels; part coordinates run from -reach to reach
TEXTURE_CHANNELS = 2 + FEATURES  # outline distance in widths and in lengths, features
PANORAMA_ROWS, PANORAMA_COLUMNS = 128, 1024
HAZE_COLUMNS = 16
SLOPE_STRETCH, SLOPE_LIMIT = 12.0, 0.66  # panorama rows are densest at the horizon
CLOUD_ROWS, CLOUD_COLUMNS = 48, 192
GROUND_EXTENTS, GROUND_TEXELS = (
    (20.0, 42.0, 42.0),
    (320, 160, 56),
)  # half sides in units, fine first
GRASSINESS_TEXELS = 160
DETAIL_PERIOD, DETAIL_TEXELS = 8.0, (256, 64)  # units after which the grass repeats; fine first
RIPPLE_TEXELS = 96
RIPPLE_FOOTPRINT = 0.45  # units per pixel row beyond which water is calm


def sample(grid: Tensor, x: Tensor, y: Tensor, outside: str = "border") -> Tensor:
    """Sample a map bilinearly: grid [1, c, h, w] at x, y [n, a, b] in -1..1 -> [n, c, a, b]."""
    maps = grid.expand(len(x), -1, -1, -1)
    return functional.grid_sample(
        maps, torch.stack([x, y], -1), padding_mode=outside, align_corners=False
    )


def wrapped(grid: Tensor) -> Tensor:
    """Repeat one column on each side of a map whose columns run once around the horizon."""
    return torch.cat([grid[..., -1:], grid, grid[..., :1]], -1)


def around(angle: Tensor, columns: int) -> Tensor:
    """Return where an angle in radians lies in a `wrapped` map of that many columns, in -1..1."""
    turn = torch.remainder(angle / (2 * math.pi), 1.0)
    return (turn * columns + 1) / (columns + 2) * 2 - 1


def add_below(upper: Tensor, lower: Tensor) -> Tensor:
    """Add lower [n, c, r, w] to the last r rows of upper [n, c, h, w], in place; return upper."""
    upper[:, :, upper.shape[2] - lower.shape[2] :].add_(lower)
    return upper


class PartStyle(nn.Module):
    """What light, haze and distance do to a part: traits -> gains and offsets."""

    OUTPUTS = 2 * FEATURES + 3  # feature gains and offsets, outline gain and offset, opacity

    def __init__(self) -> None:
        """Create with fresh weights."""
        super().__init__()
        self.look = nn.Embedding(place.LOOKS, 8)
        self.hidden1, self.hidden2 = nn.Linear(8 + TRAITS, 48), nn.Linear(48, 48)
        self.out = nn.Linear(48, self.OUTPUTS)
        nn.init.normal_(self.out.weight, std=0.01)
        neutral = [1.0] * FEATURES + [0.0] * FEATURES + [1.0, 0.0, 4.0]
        with torch.no_grad():
            self.out.bias.copy_(torch.tensor(neutral))

    def forward(self, look: Tensor, traits: Tensor) -> Tensor:
        """Map look [n, p] and traits [n, p, TRAITS] to [n, p, OUTPUTS]."""
        hidden = functional.silu(self.hidden1(torch.cat([self.look(look), traits], -1)))
        style: Tensor = self.out(hidden + functional.silu(self.hidden2(hidden)))
        return style


def initial_textures() -> Tensor:
    """Return part textures [1, TEXTURE_CHANNELS, LOOKS * size, size]: plain discs and limbs."""
    line = ((torch.arange(TEXTURE_SIZE) + 0.5) / TEXTURE_SIZE * 2 - 1) * TEXTURE_REACH
    v, u = torch.meshgrid(line, line, indexing="ij")
    disc = 1 - torch.sqrt(u**2 + v**2)
    limb = 1 - torch.sqrt(u**2 + (v.abs() - 1).clamp_min(0) ** 2)
    limbs = {place.TRUNK, place.BRANCH, place.WING, place.HIDE, place.LEG, place.TUFT}
    textures = torch.zeros(place.LOOKS, TEXTURE_CHANNELS, TEXTURE_SIZE, TEXTURE_SIZE)
    for look in range(place.LOOKS):
        if look in limbs:
            textures[look, 0] = limb
        else:
            textures[look, :2] = disc / 2
        textures[look, 2:5] = 0.3
    return textures.transpose(0, 1).reshape(1, TEXTURE_CHANNELS, -1, TEXTURE_SIZE)


class Scene(nn.Module):
    """From poses to screen features."""

    def __init__(self) -> None:
        """Create with fresh weights."""
        super().__init__()

        def grid(channels: int, rows: int, columns: int) -> nn.Parameter:
            return nn.Parameter(torch.randn(1, channels, rows, columns) * 0.02)

        self.panorama = grid(FEATURES + 1, PANORAMA_ROWS, PANORAMA_COLUMNS)  # last: open to clouds
        self.haze = grid(FEATURES, PANORAMA_ROWS, HAZE_COLUMNS)  # how much ground shows through it
        self.cloud = grid(1, CLOUD_ROWS, CLOUD_COLUMNS)
        self.cloud_colour = nn.Parameter(torch.full((FEATURES,), 0.5))
        self.ground = nn.ParameterList(grid(FEATURES, n, n) for n in GROUND_TEXELS)
        self.grassiness = grid(1, GRASSINESS_TEXELS, GRASSINESS_TEXELS)
        self.detail = nn.ParameterList(grid(FEATURES, n, n) for n in DETAIL_TEXELS)
        self.ripples = grid(7, RIPPLE_TEXELS, RIPPLE_TEXELS)  # 3 cosine and 3 sine parts, calmness
        self.ripple_colour = nn.Parameter(torch.full((FEATURES,), 0.05))
        self.sparkle_colour = nn.Parameter(torch.full((FEATURES,), 0.8))
        self.sparkle_edge = nn.Parameter(torch.tensor([8.0, 0.6]))
        self.textures = nn.Parameter(initial_textures())
        self.style = PartStyle()
        with torch.no_grad():
            self.panorama[:, :3].add_(0.5)
            self.panorama[:, -1].add_(1.0)
            self.haze.add_(0.5)
            self.cloud.sub_(4.0)
            self.ground[-1][:, :3].add_(0.3)
            self.grassiness.add_(1.0)

    def maps(self) -> list[nn.Parameter]:
        """Return the feature maps; they learn with larger steps than the networks."""
        return [
            self.panorama,
            self.haze,
            self.cloud,
            *self.ground,
            self.grassiness,
            *self.detail,
            self.ripples,
            self.textures,
        ]

    def forward(self, poses: NDArray[np.float64]) -> Tensor:
        """Render poses [n, 5] (x, y, yaw, pitch, clock) to features [n, FEATURES, H, W]."""
        background = self._sky_and_ground(Views.of(poses))
        return self._draw_parts(background, PartViews.of(poses))

    # -------------------------------------------------------------- sky and ground
    def _sky_and_ground(self, views: Views) -> Tensor:
        """Return the features [n, FEATURES, H, W] of everything behind the parts."""
        slope = -views.below / camera.FOCAL / torch.sqrt(1 + views.offset**2)  # [n, H, W]
        row = torch.asinh(slope * SLOPE_STRETCH) / math.asinh(SLOPE_LIMIT * SLOPE_STRETCH)
        azimuth = views.azimuth.expand_as(slope)
        panorama = sample(wrapped(self.panorama), around(azimuth, PANORAMA_COLUMNS), row)
        picture, open_sky = panorama[:, :FEATURES], panorama[:, FEATURES:]

        bottom = min(H, int(views.horizon.max().ceil()) + 1)  # no frame has sky below this row
        drift = around(azimuth[:, :bottom] + place.CLOUD_TURN * views.clock, CLOUD_COLUMNS)
        cloud = sample(wrapped(self.cloud), drift, slope[:, :bottom] / SLOPE_LIMIT * 2 - 1)
        cover = torch.sigmoid(cloud + open_sky[:, :, :bottom])
        cover = cover * (views.below[:, None, :bottom] < 1)  # each frame has its own horizon
        sky = torch.lerp(picture[:, :, :bottom], self.cloud_colour[:, None, None], cover)
        picture = torch.cat([sky, picture[:, :, bottom:]], 2)

        top = max(0, int(views.horizon.min().floor()))  # no ground above this row in any frame
        clear = sample(wrapped(self.haze), around(azimuth[:, top:], HAZE_COLUMNS), row[:, top:])
        ground = self._ground(views, top) * clear * (views.below[:, None, top:] > 0)
        return add_below(picture, ground)

    def _ground(self, views: Views, top: int) -> Tensor:
        """Return ground features [n, FEATURES, H - top, W] of pixel rows from `top` down."""
        below = views.below[:, top:].clamp_min(0.25)
        depth = camera.EYE_HEIGHT * camera.FOCAL / below
        footprint = depth * depth / (camera.EYE_HEIGHT * camera.FOCAL)  # units per pixel row
        x = views.x + (views.cos - views.sin * views.offset) * depth
        y = views.y + (views.sin + views.cos * views.offset) * depth

        ground = sample(self.ground[2], x / GROUND_EXTENTS[2], y / GROUND_EXTENTS[2])
        for level in (1, 0):  # finer levels fade out where pixels grow coarser than their texels
            extent = GROUND_EXTENTS[level]
            texel = 2 * extent / GROUND_TEXELS[level]
            keep = 1 - smoothstep(1.5 * texel, 4 * texel, footprint)
            first = int((keep.amax((0, 2)) == 0).sum())
            part = sample(self.ground[level], x[:, first:] / extent, y[:, first:] / extent, "zeros")
            ground = add_below(ground, part * keep[:, None, first:])
        ground = self._add_grass(ground, x, y, footprint)
        return self._add_water(ground, x, y, footprint, views.clock)

    def _add_grass(self, ground: Tensor, x: Tensor, y: Tensor, footprint: Tensor) -> Tensor:
        """Add the repeating grass pattern to ground [n, FEATURES, r, W] at x, y [n, r, W]."""
        pattern, top = torch.zeros(()), -1
        for texels, grid in reversed(list(zip(DETAIL_TEXELS, self.detail, strict=True))):
            texel = DETAIL_PERIOD / texels
            keep = 1 - smoothstep(1.5 * texel, 8 * texel, footprint)
            first = int((keep.amax((0, 2)) == 0).sum())
            tile = functional.pad(grid, (1, 1, 1, 1), mode="circular")
            turns = 2 * math.pi / DETAIL_PERIOD
            u, v = around(x[:, first:] * turns, texels), around(y[:, first:] * turns, texels)
            part = sample(tile, u, v) * keep[:, None, first:]
            pattern = part if top < 0 else add_below(pattern, part)
            top = first if top < 0 else top
        extent = GROUND_EXTENTS[0]
        amount = sample(self.grassiness, x[:, top:] / extent, y[:, top:] / extent)
        return add_below(ground, pattern * amount)

    def _add_water(
        self, ground: Tensor, x: Tensor, y: Tensor, footprint: Tensor, clock: Tensor
    ) -> Tensor:
        """Add ripples and glitter to ground [n, FEATURES, r, W] where x, y [n, r, W] is water."""
        cos, sin = math.cos(place.POND_TURN), math.sin(place.POND_TURN)
        dx, dy = x - place.POND_X, y - place.POND_Y
        u = (dx * cos + dy * sin) / place.POND_LONG
        v = (-dx * sin + dy * cos) / place.POND_SHORT
        water = (u * u + v * v < 1) & (footprint < RIPPLE_FOOTPRINT)
        frame, row, column = water.nonzero(as_tuple=True)
        if len(frame) == 0:
            return ground
        where = (frame, row, column)
        ripple, sparkle = self.water(
            u[where], v[where], clock[frame, 0, 0], footprint[frame, row, 0]
        )
        still = ground[frame, :, row, column]  # [k, FEATURES]
        glitter = sparkle[:, None] * (self.sparkle_colour - still)
        change = ripple[:, None] * self.ripple_colour + glitter
        ground.permute(0, 2, 3, 1).index_put_(where, change, accumulate=True)
        return ground

    def water(
        self, u: Tensor, v: Tensor, clock: Tensor, footprint: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return height of ripples and strength of glitter [k] at places u, v of the pond (-1..1).

        Clock in seconds and footprint in units per pixel row are given for each place too.
        """
        waves = sample(self.ripples, u[None, None], v[None, None])[0, :, 0]  # [7, k]
        speed = torch.from_numpy(place.RIPPLES[:, 2] * 2 * math.pi).float()
        phase = clock * speed[:, None]
        beat = torch.cat([phase.cos(), phase.sin()])  # [6, k]
        height = (waves[:6] * beat).sum(0)
        near = 1 - smoothstep(0.12, RIPPLE_FOOTPRINT, footprint)
        strength = near * torch.sigmoid(waves[6] * 4 + 1)
        sparkle = torch.sigmoid(self.sparkle_edge[0] * (height - self.sparkle_edge[1])) * strength
        return height * strength, sparkle

    # -------------------------------------------------------------- parts
    def _draw_parts(self, background: Tensor, parts: PartViews) -> Tensor:
        """Composite all parts over background features [n, FEATURES, H, W]."""
        pairs = TilePairs.of(parts.box)
        if len(pairs.tile) == 0:
            return background
        style = self.style(parts.look, parts.traits)[pairs.frame, pairs.part]
        colour, alpha = self._part_pixels(parts, pairs, style)

        count = len(background)
        tiles = background.view(count, FEATURES, TILES_Y, TILE, TILES_X, TILE)
        tiles = tiles.permute(1, 0, 2, 4, 3, 5).reshape(FEATURES, -1, TILE * TILE)
        uncovered = torch.ones(tiles.shape[1], TILE * TILE)
        weights = []
        for tile, opacity in zip(
            torch.split(pairs.tile, pairs.rank_sizes),
            torch.split(alpha, pairs.rank_sizes),
            strict=True,
        ):
            before = uncovered.index_select(0, tile)
            weights.append(before * opacity)
            uncovered = uncovered.index_copy(0, tile, before * (1 - opacity))
        tiles = (tiles * uncovered).index_add(1, pairs.tile, colour * torch.cat(weights))
        tiles = tiles.view(FEATURES, count, TILES_Y, TILES_X, TILE, TILE).permute(1, 0, 2, 4, 3, 5)
        return tiles.reshape(count, FEATURES, H, W)

    def _part_pixels(
        self, parts: PartViews, pairs: TilePairs, style: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return features [FEATURES, m, TILE²] and opacity [m, TILE²] of every pair's pixels."""

        def of(field: Tensor) -> Tensor:
            return field[pairs.frame, pairs.part][:, None, None]

        # Part coordinates: u across in half-widths, v along in half-lengths; ends of limbs are
        # rounded, so beyond an end v goes on in half-widths.
        inner = torch.arange(TILE) + 0.5
        offset_x = (pairs.column[:, None] + inner)[:, None, :] - of(parts.x)  # [m, 1, TILE]
        offset_y = (pairs.row[:, None] + inner)[:, :, None] - of(parts.y)  # [m, TILE, 1]
        axis_x, axis_y, half_length = of(parts.axis_x), of(parts.axis_y), of(parts.half_length)
        along = offset_x * axis_x + offset_y * axis_y  # pixels
        across = offset_y * axis_x - offset_x * axis_y
        limb = of(parts.limb) > 0
        width = of(parts.half_width) + of(parts.taper) * (along / half_length).clamp(-1, 1)
        width = torch.where(limb, width.clamp_min(0.5), width)
        length = torch.where(limb, width, half_length)
        beyond = (along.abs() - half_length).clamp_min(0) / length
        u = across / width
        v = along.clamp(-half_length, half_length) / half_length + torch.copysign(beyond, along)

        # All looks lie below one another in one texture; outside it, distance simply goes on.
        reach = TEXTURE_REACH * (1 - 1 / TEXTURE_SIZE)
        u_in, v_in = u.clamp(-reach, reach), v.clamp(-reach, reach)
        slot = (v_in / TEXTURE_REACH + 1 + 2 * of(parts.look)) / place.LOOKS - 1
        batch = 2 if len(u) % 2 == 0 else 1  # a batch of two lets two threads share the work
        texels = sample(
            self.textures,
            (u_in / TEXTURE_REACH).reshape(batch, -1, TILE),
            slot.reshape(batch, -1, TILE),
        )
        texels = texels.transpose(0, 1).reshape(TEXTURE_CHANNELS, len(u), TILE, TILE)
        outside = (u - u_in).abs() * width + (v - v_in).abs() * length
        inside = texels[0] * width + texels[1] * length - outside  # about pixels to the outline

        gain, shift, rest = torch.split(style.T[..., None, None], [FEATURES, FEATURES, 3])
        outline_gain, outline_shift, opacity = rest
        alpha = torch.sigmoid(4 * (inside * outline_gain + outline_shift)) * torch.sigmoid(opacity)
        alpha = alpha * of(parts.traits[..., -1])  # the near fade
        colour = texels[2:] * gain + shift
        return colour.flatten(2), alpha.flatten(1)
