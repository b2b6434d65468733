"""Pictures on their way out: when they are published, in what form, with which receipt.

Read pacing.py (the publish clock), playout.py (how fast a session really plays), receipts.py (the
numbers that go along), i420.py (RGB to what an encoder takes).
Knows nothing of sessions, sockets, encoders or asyncio; only i420.py touches pixels.

A chunk of two pictures comes as a burst and is published evenly; then the last one is repeated:

>>> pacer = Pacer[str](fps=10, frames_per_chunk=2)
>>> pacer.push(["one", "two"], epoch=0, chunk=0, receipt=pack_receipt(7, 1), now=100.0)
>>> pacer.pop_due(now=100.0).media, pacer.pop_due(now=100.0)
('one', None)
>>> pacer.next_due(now=100.0), round(pacer.playout_end(now=100.0), 6)
(100.1, 100.2)
>>> pacer.pop_due(now=100.1).frame_id, pacer.pop_due(now=100.3).frame_id
(2, 2)
>>> unpack_receipt(pack_receipt(7, 1))
Receipt(nonce=7, seq=1)
"""

from server.media.pacing import PacedFrame, Pacer
from server.media.playout import PlayoutMeter
from server.media.receipts import PtsClock, Receipt, pack_receipt, unpack_receipt

__all__ = [
    "PacedFrame",
    "Pacer",
    "PlayoutMeter",
    "PtsClock",
    "Receipt",
    "pack_receipt",
    "unpack_receipt",
]
