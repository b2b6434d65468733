"""Makes the transport that the settings name."""

from __future__ import annotations

from typing import Literal

from server.transports.base import MediaTransport, TransportSink
from server.transports.memory import MemoryTransport
from server.transports.settings import TransportSettings

__all__ = ["TransportKind", "TransportSettings", "make_transport"]

TransportKind = Literal["webrtc", "livekit", "memory"]


def make_transport(
    kind: TransportKind, session: str, sink: TransportSink, settings: TransportSettings
) -> MediaTransport:
    """A transport for one session; call it on the event loop that it will live on."""
    if kind == "memory":
        return MemoryTransport(session, sink, settings)
    if kind == "webrtc":
        from server.transports.webrtc import WebRtcTransport  # aiortc is slow to import

        return WebRtcTransport(session, sink, settings)
    if kind == "livekit":
        from server.transports.livekit.transport import LiveKitTransport

        return LiveKitTransport(session, sink, settings)
    raise ValueError(f"there is no transport named {kind!r}")
