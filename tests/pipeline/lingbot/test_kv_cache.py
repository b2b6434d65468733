from dataclasses import dataclass, field

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from pipeline.lingbot import rope
from pipeline.lingbot.attention import sdpa
from pipeline.lingbot.config import DiTConfig
from pipeline.lingbot.errors import BadWindow
from pipeline.lingbot.kv_cache import Cursor, KVCache, KVPool, Window, kv_bytes
from tests.pipeline.lingbot.reference import close

TINY = DiTConfig(dim=32, ffn_dim=32, layers=2, heads=2)
HEADS, WIDTH = TINY.heads, TINY.head_dim


@dataclass
class Rolling:
    """The reference's cache by the letter of SPEC §2.1: a buffer whose contents are moved."""

    capacity: int
    sink: int
    most: int | None
    rolls: bool
    global_end: int = 0
    local_end: int = 0
    k: Tensor = field(default_factory=lambda: torch.empty(0))
    v: Tensor = field(default_factory=lambda: torch.empty(0))

    def __post_init__(self) -> None:
        self.k, self.v = torch.zeros(2, self.capacity, HEADS, WIDTH)

    def call(self, k: Tensor, v: Tensor, start: int) -> tuple[Tensor, Tensor]:
        n, end = len(k), start + len(k)
        if self.rolls and end > self.global_end and self.local_end + n > self.capacity:
            evict = self.local_end + n - self.capacity
            keep = self.local_end - evict - self.sink
            for buffer in (self.k, self.v):
                moved = buffer[self.sink + evict : self.local_end].clone()
                buffer[self.sink : self.sink + keep] = moved
            self.local_end += end - self.global_end - evict
        else:
            self.local_end += end - self.global_end
        self.global_end = end
        self.k[self.local_end - n : self.local_end] = k
        self.v[self.local_end - n : self.local_end] = v
        first = max(0, self.local_end - (self.most or self.capacity))
        return self.k[first : self.local_end], self.v[first : self.local_end]


@st.composite
def plays(draw: st.DrawFn) -> tuple[Window, list[int]]:
    sink = draw(st.integers(0, 5))
    frames = draw(st.integers(sink + 1, sink + 9))
    tokens = draw(st.integers(1, 4))
    most = draw(st.none() | st.integers(1, frames * tokens + 3))
    window = Window(tokens, frames, sink, max_attention_tokens=most, position_limit=None)
    return window, draw(st.lists(st.integers(1, frames - sink), min_size=1, max_size=14))


@settings(max_examples=120, deadline=None)
@given(plays())
def test_the_ring_equals_the_rolling_cache(play: tuple[Window, list[int]]) -> None:
    window, chunks = play
    torch.manual_seed(0)  # or an example that fails may pass when it is tried again
    cache = KVCache.allocate(TINY, window)
    sink, most = window.sink_tokens, window.max_attention_tokens
    rolling = Rolling(window.tokens, sink, most, rolls=True)
    query = torch.randn(1, 3, HEADS, WIDTH)
    for frames in chunks:
        n = frames * window.frame_tokens
        cache, start = cache.opened(frames), rolling.global_end
        for _ in range(2):  # a step and the commit that overwrites it
            k, v = torch.randn(2, n, HEADS, WIDTH)
            old_k, old_v = rolling.call(k, v, start)
            layer = cache.layers()[1]
            layer.put(k[None], v[None])
            ring_k, ring_v = layer.seen()
            assert ring_k.shape[1] == len(old_k)
            close(sdpa(query, ring_k, ring_v), sdpa(query, old_k[None], old_v[None]), atol=1e-6)
        assert (cache.cursor.end, cache.cursor.filled) == (rolling.global_end, rolling.local_end)
        for got, old in zip(cache.ordered(1), (rolling.k, rolling.v), strict=True):
            assert torch.equal(got[0], old[: rolling.local_end])
        assert not cache.keys[0].any()  # other layers are untouched


@settings(max_examples=60, deadline=None)
@given(plays(), st.integers(0, 30))
def test_positions_rebased_or_not_give_the_same_attention(
    play: tuple[Window, list[int]], slack: int
) -> None:
    window, chunks = play
    torch.manual_seed(0)
    f = window.frame_tokens
    grids = {n: (n, 1, f) for n in chunks}
    limit = max(chunks) + slack
    rebased = Window(f, window.frames, window.sink, position_limit=limit)
    fixed = Window(f, window.frames, window.sink, position_limit=None)
    caches = [KVCache.allocate(TINY, w) for w in (fixed, rebased)]
    for frames in chunks:
        q, k, v = torch.randn(3, 1, frames * f, HEADS, WIDTH)
        outs = []
        for i in range(2):
            caches[i] = caches[i].opened(frames)
            start = caches[i].cursor.start_frame(caches[i].window)
            turn = rope.rotation(grids[frames], start, WIDTH)
            layer = caches[i].layers()[0]
            layer.put(rope.rotate(k, turn), v)
            outs.append(sdpa(rope.rotate(q, turn), *layer.seen()))
        assert caches[1].cursor.start_frame(rebased) + frames <= limit
        close(outs[1], outs[0])


def test_a_chunk_overwrites_the_oldest_places_and_nothing_else_moves() -> None:
    window = Window(frame_tokens=2, frames=7, sink=1)
    cache = KVCache.allocate(TINY, window)
    for _ in range(3):
        cache = cache.opened(3)
        layer = cache.layers()[0]
        before = layer.keys.clone()
        new = torch.randn(1, 6, HEADS, WIDTH)
        layer.put(new, new)
        changed = (layer.keys != before).any(-1).any(-1)[0].nonzero().flatten().tolist()
        assert changed == sorted(layer.write.tolist())
    assert (cache.keys.data_ptr(), cache.cursor.filled) == (layer.keys.data_ptr(), 14)


@pytest.mark.parametrize(
    ("frames", "sink", "chunk"), [(4, 2, 3), (3, 0, 4), (5, 3, 3), (6, 6, 1), (2, 3, 1)]
)
def test_a_window_smaller_than_sink_and_chunk_is_refused(
    frames: int, sink: int, chunk: int
) -> None:
    with pytest.raises(BadWindow):
        KVCache.allocate(TINY, Window(6, frames, sink)).opened(chunk)


def test_nonsense_windows_are_refused() -> None:
    for bad in (
        {"frame_tokens": 0, "frames": 3},
        {"frame_tokens": 6, "frames": 3, "sink": -1},
        {"frame_tokens": 6, "frames": 3, "max_attention_tokens": 0},
        {"frame_tokens": 6, "frames": 9, "sink": 1, "max_sink_distance": 7},
        {"frame_tokens": 6, "frames": 9, "position_limit": 0},
    ):
        with pytest.raises(BadWindow):
            Window(**bad)
    with pytest.raises(BadWindow, match="position limit"):
        KVCache.allocate(TINY, Window(6, 9, position_limit=2)).opened(3)
    with pytest.raises(BadWindow):
        Cursor().opened(Window(6, 9), 0)


def test_a_window_that_does_not_roll_is_full_at_its_end() -> None:
    cache = KVCache.allocate(TINY, Window(2, 6, rolling=False)).opened(3).opened(3)
    with pytest.raises(BadWindow, match="does not roll"):
        cache.opened(1)


def test_the_sink_can_be_kept_at_a_bounded_distance() -> None:
    """The sink's keys then stand where they would if rotated at their moved position."""
    bound = 9
    window = Window(frame_tokens=2, frames=6, sink=2, max_sink_distance=bound)
    cache = KVCache.allocate(TINY, window)
    first = torch.randn(1, 6, HEADS, WIDTH)
    for i in range(12):
        cache = cache.opened(3)
        start = cache.cursor.start_frame(window)
        k = first if i == 0 else torch.randn(1, 6, HEADS, WIDTH)
        cache.layers()[0].put(rope.rotate(k, rope.rotation((3, 1, 2), start, WIDTH)), k)
        last = start + 2
        moved = cache.cursor.sink_shift
        assert last - moved <= bound
        sink, _ = cache.ordered(0)
        at_moved = rope.rotate(first, rope.rotation((3, 1, 2), moved, WIDTH))
        close(sink[:, :4], at_moved[:, :4])
    assert moved > 0


def test_without_a_bound_the_sink_stays_where_it_was() -> None:
    cache = KVCache.allocate(TINY, Window(2, 6, sink=2))
    for _ in range(12):
        cache = cache.opened(3)
    assert cache.cursor.sink_shift == 0


def test_a_reset_gives_the_same_buffers_empty() -> None:
    cache = KVCache.allocate(TINY, Window(2, 6, sink=2)).opened(3).opened(3).opened(3)
    again = cache.restarted()
    assert again.cursor == Cursor()
    assert again.keys.data_ptr() == cache.keys.data_ptr()


def test_a_pool_lends_each_cache_to_one_session() -> None:
    pool = KVPool(TINY, Window(2, 6), sessions=2, dtype=torch.float32)
    a, b = pool.take(), pool.take()
    assert a.keys.data_ptr() != b.keys.data_ptr()
    with pytest.raises(BadWindow, match="all 2"):
        pool.take()
    pool.give_back(a.opened(3))
    with pytest.raises(BadWindow, match="given back"):
        pool.give_back(a)
    assert pool.take().cursor == Cursor()


def test_the_plan_for_memory_is_what_is_allocated() -> None:
    window = Window(6, 7, 2)
    cache = KVCache.allocate(TINY, window, torch.bfloat16)
    assert kv_bytes(TINY, window) == cache.keys.nbytes + cache.values.nbytes
    one_frame = kv_bytes(DiTConfig(), Window(1508, 1))
    assert one_frame == pytest.approx(1.235e9, rel=1e-3)  # SPEC §7
