"""Row C3 of the reports, on direct WebRTC (tests/e2e/livekit/test_late.py: the other one)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page

from tests.e2e.detour import PICTURES, detour, follow_answers, no_loss_freezes
from tests.e2e.player import enter
from tests.e2e.server import ServerProcess
from tests.fakes.relay import LossyRelay

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="session")
def transport() -> str:
    return "webrtc"


def test_lost_packets_freeze_no_picture(
    open_page: Callable[..., Page], make_server: Callable[..., ServerProcess]
) -> None:
    """C3: the longest freeze at 5 % loss. Nobody comes late here: each player has an encoder."""
    server = make_server(veldt_world="marker")
    beside = open_page(script=PICTURES)
    enter(beside, server)
    with LossyRelay(seed=5) as relay:
        page = open_page(script=PICTURES + detour(relay))
        follow_answers(page, relay)
        enter(page, server)
        no_loss_freezes(page, relay, beside)
        page.close()
