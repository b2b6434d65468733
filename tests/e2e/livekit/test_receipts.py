"""A browser that cannot read encoded frames (row K4): it plays, and measures all the same."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.e2e.player import enter, hud
from tests.e2e.server import ServerProcess

UNABLE = """
delete window.RTCRtpScriptTransform;
delete RTCRtpReceiver.prototype.createEncodedStreams;
delete RTCRtpSender.prototype.createEncodedStreams;
"""


def test_key_to_photon_is_measured_where_frames_cannot_be_read(
    open_page: Callable[..., Page], tiny_server: ServerProcess
) -> None:
    page = open_page(script=UNABLE)
    with page.expect_request("**/connect") as asked:
        enter(page, tiny_server)
    assert asked.value.post_data_json["frame_metadata"] is False
    page.wait_for_function(
        """() => {
          const { hud } = document.querySelector("[data-hud]").dataset;
          const { shown_seq, sent_seq } = JSON.parse(hud);
          return shown_seq !== null && shown_seq === sent_seq;
        }"""
    )
    page.keyboard.press("KeyW", delay=300)
    expect(page.get_by_test_id("hud-k2p-p50")).not_to_have_text("not measured", timeout=20_000)
    figures = hud(page)
    assert figures["key_to_photon_samples"] >= 1
    assert 0 < figures["key_to_photon_p50_ms"] < 30_000
