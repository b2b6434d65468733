from __future__ import annotations

from collections import Counter
from itertools import islice

import pytest

from server.transports.impairment import Fate, Impaired, Impairment


def test_same_seed_gives_the_same_fates() -> None:
    one, two = Impairment(seed=3, loss=0.2, duplicate=0.2, delay=0.2), Impairment(seed=4, loss=0.2)
    assert list(islice(one.fates(), 100)) == list(islice(one.fates(), 100))
    assert list(islice(one.fates(), 100)) != list(islice(two.fates(), 100))


def test_chances_are_kept_and_nothing_is_invented() -> None:
    impaired = Impaired(Impairment(seed=1, loss=0.2, duplicate=0.1, delay=0.1))
    sent = [b"%d" % n for n in range(5000)]
    arrived = [part for payload in sent for part in impaired.arriving(payload)]
    copies = Counter(arrived)
    assert set(arrived) <= set(sent)
    assert 0.18 < sum(payload not in copies for payload in sent) / len(sent) < 0.22
    assert 0.08 < sum(count == 2 for count in copies.values()) / len(sent) < 0.12
    assert arrived != sorted(arrived, key=int)


def test_delayed_ones_arrive_behind_the_next() -> None:
    impaired = Impaired(Impairment(script=(Fate.DELAY, Fate.DELAY, Fate.DELIVER)))
    assert impaired.arriving(b"1") == ()
    assert impaired.arriving(b"2") == ()
    assert impaired.arriving(b"3") == (b"3", b"1", b"2")


def test_without_impairment_all_arrive() -> None:
    assert Impaired(None).arriving(b"x") == (b"x",)


def test_chances_over_one_are_refused() -> None:
    with pytest.raises(ValueError, match="at most 1"):
        Impairment(loss=0.6, delay=0.6)
