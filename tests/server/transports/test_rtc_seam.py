"""Fails where a newer aiortc or aioice no longer has what `rtc_seam` and `addresses` lean on."""

from __future__ import annotations

import inspect

import aioice.ice
import pytest
from aiortc import RTCPeerConnection, RTCRtpSender
from aiortc.codecs.vpx import Vp8Encoder
from aiortc.rtcdtlstransport import RTCDtlsTransport
from aiortc.rtcicetransport import RTCIceTransport
from aiortc.rtcsctptransport import RTCSctpTransport


@pytest.mark.parametrize(
    ("method", "calls"),
    [
        (RTCRtpSender._handle_rtcp_packet, "self._send_keyframe()"),
        (RTCRtpSender._next_encoded_frame, "self.__encoder.pack(data)"),
        (RTCRtpSender._run_rtp, "uint32_add(timestamp_origin, enc_frame.timestamp)"),
        (Vp8Encoder.pack, "convert_timebase(packet.pts, packet.time_base, VIDEO_TIME_BASE)"),
        (aioice.ice.StunProtocol.datagram_received, "self.receiver.data_received("),
        (aioice.ice.Connection.request_received, "self.check_incoming(message, addr, protocol)"),
        (aioice.ice.Connection.gather_candidates, "get_host_addresses("),
        (RTCRtpSender._handle_rtcp_packet, "self._retransmit(seq)"),
        (RTCDtlsTransport._recv_next, "self._data_receiver._handle_data(data)"),
        (RTCDtlsTransport._recv_next, "self._handle_rtcp_data(data)"),
        (RTCDtlsTransport._recv_next, "self._handle_rtp_data(data"),
        (RTCSctpTransport._receive_sack_chunk, "range(gap[0], gap[1] + 1)"),
        (RTCSctpTransport._receive_data_chunk, "self._advertised_rwnd -= len(chunk.user_data)"),
        (RTCSctpTransport._handle_data, "self._receive_chunk("),
        (RTCIceTransport.__init__, "self._connection = gatherer._connection"),
        (RTCPeerConnection.close, "transceiver.receiver.transport.transport.stop()"),
    ],
)
def test_seam_is_where_it_was(method: object, calls: str) -> None:
    assert calls in inspect.getsource(method)  # type: ignore[arg-type]
