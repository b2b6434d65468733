"""Row C3 of the reports, on LiveKit: whoever comes late sees at once, and loss freezes nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page

from tests.e2e.detour import LONGEST_GAP, PICTURES, detour, first_picture_after, no_loss_freezes
from tests.e2e.livekit.test_watching import link_of
from tests.e2e.player import enter, wait_for
from tests.e2e.server import ServerProcess
from tests.fakes.relay import LossyRelay
from tests.livekit_server import LiveKitServer

pytestmark = pytest.mark.timeout(240)
IDLE_SECONDS = 8


def test_a_late_spectator_sees_a_picture_that_stands_and_no_loss_freezes_it(
    open_page: Callable[..., Page],
    make_server: Callable[..., ServerProcess],
    livekit_server: LiveKitServer,
) -> None:
    """C3. A key frame is made for whoever asks, and everybody who might is long content.

    So the world that has stood for some seconds is the one that has stood for a minute: what is
    repeated of it are small differences, of which a newcomer can make nothing.
    """
    server = make_server(veldt_world="marker")
    player = open_page(script=PICTURES)
    enter(player, server)
    link = link_of(player, server)
    player.keyboard.press("KeyP")
    wait_for(player, "paused")
    player.wait_for_timeout(1000 * IDLE_SECONDS)
    with LossyRelay(livekit_server.udp_port, seed=5) as relay:
        spectator = open_page(script=PICTURES + detour(relay))
        since = player.evaluate("() => performance.now()")
        spectator.goto(link)
        wait_for(spectator, "watching")
        first = first_picture_after(spectator)
        # Its player is shown the same picture again and again, unless the machine stands still.
        assert first <= 2 + player.evaluate(LONGEST_GAP, since)
        player.keyboard.press("KeyX")
        wait_for(player, "playing")
        no_loss_freezes(spectator, relay, beside=player)
        spectator.close()
