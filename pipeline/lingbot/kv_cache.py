"""The self-attention cache: a fixed buffer used as a ring behind a few sink frames. SPEC §2.1.

Equal to the reference's rolling cache read in logical order (sink, then oldest to newest), without
moving memory: a new chunk overwrites the slots of the oldest tokens. Keys are stored after norm
and rotation (SPEC §8.5). `Cursor` is plain arithmetic; only `KVCache` touches tensors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from pipeline.lingbot.config import DiTConfig
from pipeline.lingbot.errors import BadWindow
from pipeline.lingbot.rope import shift_frames_

POSITION_LIMIT = 1024  # entries of the reference's position table


@dataclass(frozen=True)
class Window:
    """How much of the past a session keeps, in latent frames of `frame_tokens` tokens."""

    frame_tokens: int
    frames: int  # capacity, sink and current chunk included (the reference's local_attn_size)
    sink: int = 0  # first frames that are never evicted
    rolling: bool = True  # False: the whole video has a place, nothing is evicted
    max_attention_tokens: int | None = None  # attend to the last so many; SPEC §2.1: drops the sink
    position_limit: int | None = POSITION_LIMIT  # rebase positions before they reach it
    max_sink_distance: int | None = None  # current frame − first sink frame; None: grows for ever

    def __post_init__(self) -> None:
        """Refuse what no chunk could ever use."""
        if self.frame_tokens < 1 or self.sink < 0 or self.frames <= self.sink:
            raise BadWindow(
                f"a window of {self.frames} frames with {self.sink} sink frames of "
                f"{self.frame_tokens} tokens leaves no room for a chunk"
            )
        for name in ("max_attention_tokens", "position_limit"):
            if (value := getattr(self, name)) is not None and value < 1:
                raise BadWindow(f"{name} must be at least 1, not {value}")
        if self.max_sink_distance is not None and self.max_sink_distance < self.frames - 1:
            raise BadWindow(
                f"max_sink_distance {self.max_sink_distance} is shorter than the window itself, "
                f"which spans {self.frames - 1} frames"
            )

    @property
    def tokens(self) -> int:
        """Capacity in tokens."""
        return self.frames * self.frame_tokens

    @property
    def sink_tokens(self) -> int:
        """Sink size in tokens."""
        return self.sink * self.frame_tokens


@dataclass(frozen=True)
class Cursor:
    """Where a cache stands: pure arithmetic, tokens unless named frames."""

    end: int = 0  # tokens since stream start (the reference's global_end)
    filled: int = 0  # tokens in the buffer (local_end)
    chunk: int = 0  # tokens of the open chunk
    head: int = 0  # offset of the oldest token in the ring behind the sink
    base: int = 0  # frames that rebasing has taken off every position
    sink_shift: int = 0  # frames that the sink was moved forward

    def opened(self, window: Window, frames: int) -> Cursor:
        """The cursor once `frames` new frames have their places, the oldest evicted for them.

        Raises:
            BadWindow: window < sink + chunk (SPEC §2.1: the reference would silently overwrite
                its sink), or a window that does not roll is full.
        """
        new, ring = frames * window.frame_tokens, window.tokens - window.sink_tokens
        if frames < 1 or new > ring:
            raise BadWindow(
                f"a window of {window.frames} frames cannot hold {window.sink} sink frames "
                f"and a chunk of {frames}"
            )
        if window.position_limit is not None and frames > window.position_limit:
            raise BadWindow(
                f"a chunk of {frames} frames passes position limit {window.position_limit}"
            )
        evicted = max(0, self.filled + new - window.tokens)
        if evicted and not window.rolling:
            raise BadWindow(f"all {window.frames} frames are used and the window does not roll")
        return replace(
            self,
            end=self.end + new,
            filled=self.filled + new - evicted,
            chunk=new,
            head=(self.head + evicted) % ring,
        )

    def start_frame(self, window: Window) -> int:
        """The open chunk's first frame as the rotary positions count it."""
        return (self.end - self.chunk) // window.frame_tokens - self.base

    def slots(self, window: Window, first: int, last: int, device: torch.device) -> Tensor:
        """Places in the buffer of logical tokens first..last-1: int64 [last-first]."""
        logical = torch.arange(first, last, device=device)
        sink, ring = window.sink_tokens, window.tokens - window.sink_tokens
        return torch.where(logical < sink, logical, sink + (logical - sink + self.head) % ring)


class LayerKV(NamedTuple):
    """One layer's cache as attention uses it; `write` and `read` are the same for all layers."""

    keys: Tensor  # [B, C, H, D]
    values: Tensor  # [B, C, H, D]
    write: Tensor  # int64 [N]: places of the open chunk
    read: Tensor | None  # int64 [M]: places to attend to; None: the first `filled`
    filled: int

    def put(self, keys: Tensor, values: Tensor) -> None:
        """Write the chunk's k, v [B, N, H, D] in place: noisy ones never survive the commit."""
        self.keys.index_copy_(1, self.write, keys.to(self.keys.dtype))
        self.values.index_copy_(1, self.write, values.to(self.values.dtype))

    def seen(self) -> tuple[Tensor, Tensor]:
        """k, v that the chunk attends to [B, M, H, D], itself included, in any order."""
        if self.read is None:
            return self.keys[:, : self.filled], self.values[:, : self.filled]
        return self.keys.index_select(1, self.read), self.values.index_select(1, self.read)


@dataclass(frozen=True)
class KVCache:
    """One session's keys and values for all layers; the buffers are shared along its cursors."""

    keys: Tensor  # [L, B, C, H, D]
    values: Tensor  # [L, B, C, H, D]
    window: Window
    cursor: Cursor = Cursor()

    @classmethod
    def allocate(
        cls,
        config: DiTConfig,
        window: Window,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> KVCache:
        """A cache of its own; services take one from a `KVPool` instead."""
        shape = (2, config.layers, 1, window.tokens, config.heads, config.head_dim)
        keys, values = torch.zeros(shape, dtype=dtype, device=device)
        return cls(keys, values, window)

    def opened(self, frames: int) -> KVCache:
        """The cache for the next chunk of `frames`, called once before the chunk's model calls.

        Calls on the returned cache overwrite the chunk's own places, so they may be repeated.
        Moves positions where the window says so.
        """
        cursor = self.cursor.opened(self.window, frames)
        cursor = self._sink_kept_near(self._rebased(cursor, frames))
        return replace(self, cursor=cursor)

    def restarted(self) -> KVCache:
        """The same buffers, empty: a reset."""
        return replace(self, cursor=Cursor())

    def layers(self) -> list[LayerKV]:
        """Every layer's view for the open chunk."""
        cursor, window, device = self.cursor, self.window, self.keys.device
        write = cursor.slots(window, cursor.filled - cursor.chunk, cursor.filled, device)
        most, read = window.max_attention_tokens, None
        if most is not None and most < cursor.filled:
            read = cursor.slots(window, cursor.filled - most, cursor.filled, device)
        return [
            LayerKV(k, v, write, read, cursor.filled)
            for k, v in zip(self.keys, self.values, strict=True)
        ]

    def ordered(self, layer: int) -> tuple[Tensor, Tensor]:
        """Copies of one layer's k, v [B, filled, H, D]: sink first, then oldest to newest."""
        slots = self.cursor.slots(self.window, 0, self.cursor.filled, self.keys.device)
        return self.keys[layer].index_select(1, slots), self.values[layer].index_select(1, slots)

    def _rebased(self, cursor: Cursor, frames: int) -> Cursor:
        """Count positions from the new chunk once they would pass the limit.

        Attention sees differences only, so moving all keys alike changes no result (SPEC §2); it
        happens once in a thousand frames, since each turn rounds bf16 keys.
        """
        limit, start = self.window.position_limit, cursor.start_frame(self.window)
        if limit is None or start + frames <= limit or not start:
            return cursor
        for keys in self.keys:
            shift_frames_(keys[:, : cursor.filled], -start)
        return replace(cursor, base=cursor.base + start)

    def _sink_kept_near(self, cursor: Cursor) -> Cursor:
        """Move the sink up to the oldest kept frame once it is further away than allowed.

        SPEC §2: what grows untrained is the distance current ↔ sink. This changes the model: off
        unless set, and to be judged by eye.
        """
        window = self.window
        if window.max_sink_distance is None or not window.sink:
            return cursor
        distance = cursor.end // window.frame_tokens - 1 - cursor.sink_shift
        if distance <= window.max_sink_distance:
            return cursor
        forward = distance - (window.frames - 1)
        for keys in self.keys:
            shift_frames_(keys[:, : window.sink_tokens], forward)
        return replace(cursor, sink_shift=cursor.sink_shift + forward)


def kv_bytes(config: DiTConfig, window: Window, dtype: torch.dtype = torch.bfloat16) -> int:
    """Memory of one session's cache."""
    return 2 * config.layers * window.tokens * config.dim * dtype.itemsize


class KVPool:
    """Places for the caches of `sessions` sessions, allocated once at load. One thread's."""

    def __init__(
        self,
        config: DiTConfig,
        window: Window,
        sessions: int,
        dtype: torch.dtype = torch.bfloat16,
        device: torch.device | str = "cpu",
    ) -> None:
        """Allocate all of them now, so that no session can fail for memory later."""
        self._free = [KVCache.allocate(config, window, dtype, device) for _ in range(sessions)]
        self._taken: dict[int, KVCache] = {}

    def take(self) -> KVCache:
        """An empty cache for one session; raises BadWindow if all are taken."""
        if not self._free:
            raise BadWindow(f"all {len(self._taken)} key-value caches are in use")
        cache = self._free.pop()
        self._taken[cache.keys.data_ptr()] = cache
        return cache

    def give_back(self, cache: KVCache) -> None:
        """Return a taken cache, at any cursor; raises BadWindow for one that was not taken."""
        taken = self._taken.pop(cache.keys.data_ptr(), None)
        if taken is None:
            raise BadWindow("this key-value cache was not taken from the pool, or was given back")
        self._free.append(taken)
