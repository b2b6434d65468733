"""The client's sending rule over a network that loses, delays, reorders and duplicates."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from itertools import cycle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from server.protocol.keys import Keys
from server.worker.intake import ControlIntake

NONCE = 11
AFTER_CHANGE = (0.0, 0.02, 0.04, 0.08)  # DESIGN §9.2
WHILE_HELD, OTHERWISE = 0.1, 0.5
CHUNK = 1 / 6
CODES = ("KeyW", "KeyA", "Space")


@dataclass(frozen=True)
class Fate:
    """What the network does to one message: arrivals after these delays; none = lost."""

    delays: tuple[float, ...]


class Client:
    """What the page would send for these changes of what is held, and what is true meanwhile."""

    def __init__(self, changes: list[tuple[float, str, bool]], until: float) -> None:
        """`changes` are (when, code, down), in order; nothing happens after `until`."""
        self.until = until
        self.taps: Counter[str] = Counter()
        self.held_spans: dict[str, list[tuple[float, float]]] = {}
        self.sent: list[tuple[float, Keys]] = []
        held: dict[str, float] = {}
        edges = [when for when, _, _ in changes] + [until]
        for seq, (when, code, down) in enumerate(changes, 1):
            if down and code not in held:
                held[code] = when
                self.taps[code] += 1
            elif not down and code in held:
                self.held_spans.setdefault(code, []).append((held.pop(code), when))
            message = Keys(epoch=0, nonce=NONCE, seq=seq, held=tuple(held), presses=dict(self.taps))
            times = [when + offset for offset in AFTER_CHANGE]
            while times[-1] < edges[seq]:
                times.append(times[-1] + (WHILE_HELD if held else OTHERWISE))
            self.sent += [(time, message) for time in times if time < edges[seq]]
        for code, since in held.items():
            self.held_spans.setdefault(code, []).append((since, until))

    def held_within(self, code: str, begin: float, end: float) -> bool:
        return any(a <= end and b >= begin for a, b in self.held_spans.get(code, ()))


def play(client: Client, fates: list[Fate], refused: list[bool]) -> Counter[str]:
    """Run it all; returns the taps that chunks were given, and checks what they had held."""
    arrivals = []
    for (when, message), fate in zip(client.sent, cycle(fates), strict=False):
        arrivals += [(when + delay, message) for delay in fate.delays]
    arrivals.sort(key=lambda arrival: arrival[0])
    final = client.sent[-1][1] if client.sent else None
    intake = ControlIntake()
    intake.hello(NONCE)
    applied: Counter[str] = Counter()
    refusals = cycle(refused)
    now = 0.0
    while now < client.until + 1.0:
        now += CHUNK
        while arrivals and arrivals[0][0] <= now:
            intake.receive(arrivals[0][1], arrivals.pop(0)[0])
        pending = intake.snapshot(now)
        for code in pending.control.held:
            assert client.held_within(code, now - 0.6, now), f"{code} is stuck at {now:.3f}"
        if not next(refusals):
            applied += Counter(pending.control.presses)
            intake.consume(pending)
    if final is not None:  # the client goes on repeating: one comes through in the end
        intake.receive(final, now)
    applied += Counter(intake.snapshot(now).control.presses)
    return applied


delay = st.floats(0.0, 0.09)
fates = st.lists(
    st.one_of(
        st.just(Fate(())),
        st.builds(lambda d: Fate((d,)), delay),
        st.builds(lambda a, b: Fate((a, b)), delay, delay),
    ),
    min_size=1,
    max_size=30,
)
gaps = st.tuples(st.floats(0.001, 0.7), st.sampled_from(CODES), st.booleans())


@settings(max_examples=150, deadline=None)
@given(
    st.lists(gaps, min_size=1, max_size=25),
    fates,
    st.lists(st.booleans(), max_size=5).map(lambda some: [*some, False]),
)
def test_every_tap_is_applied_once_and_no_key_is_stuck(script: list, fate: list, refused: list):
    now, changes = 0.0, []
    for gap, code, down in script:
        now += gap
        changes.append((now, code, down))
    client = Client(changes, now + 1.0)
    applied = play(client, fate, refused)
    assert applied == client.taps


@pytest.mark.parametrize("seed", range(5))
def test_a_minute_of_play_with_a_fifth_lost(seed: int):
    chance = random.Random(seed)
    fate = [
        Fate(
            ()
            if chance.random() < 0.2
            else tuple(chance.uniform(0.0, 0.09) for _ in range(2 if chance.random() < 0.2 else 1))
        )
        for _ in range(997)
    ]
    now, changes, down = 0.0, [], Counter[str]()
    while now < 60.0:
        now += chance.choice((0.03, 0.08, 0.3, 1.2))
        code = chance.choice(CODES)
        down[code] ^= 1
        changes.append((now, code, bool(down[code])))
    client = Client(changes, now + 1.0)
    applied = play(client, fate, [False])
    assert sum(applied.values()) > 20
    assert applied == client.taps


def test_a_network_that_dies_with_a_key_down_lets_go_of_it():
    client = Client([(0.1, "KeyW", True)], until=0.2)
    intake = ControlIntake()
    intake.hello(NONCE)
    for when, message in client.sent:
        intake.receive(message, when)
    assert intake.snapshot(0.6).control.held == {"KeyW"}
    assert intake.snapshot(0.2 + 0.51).control.held == frozenset()
