"""A network that loses: datagrams on their way to one port of loopback and back.

Not every machine has `tc netem`, so the loss is made where the datagrams pass.
"""

from __future__ import annotations

import random
import selectors
import socket
import threading
from collections import Counter
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Final, Self

HOST: Final = "127.0.0.1"
LARGEST: Final = 65_535
BUFFER_BYTES: Final = 1 << 21


class LossyRelay:
    """Carries datagrams from clients to one port and back, and loses some.

    `loss` (0 to 1) may be changed at any time; 1 is a cut cable. `target` is the port to which
    clients who come now are carried.
    """

    def __init__(self, target: int = 9, *, seed: int = 1) -> None:
        self.target = target
        self.loss = 0.0
        self.counters: Counter[str] = Counter()
        self._random = random.Random(seed)
        self._front = _bound()
        self._wake, self._woken = socket.socketpair()
        self._behind: dict[tuple[str, int], socket.socket] = {}
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._front, selectors.EVENT_READ, self._from_clients)
        self._selector.register(self._woken, selectors.EVENT_READ, None)
        self._thread = threading.Thread(target=self._run, name="lossy relay", daemon=True)

    @property
    def port(self) -> int:
        """Where clients send to."""
        return int(self._front.getsockname()[1])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._wake.send(b"x")
        self._thread.join(5)
        for one in (self._front, self._wake, self._woken, *self._behind.values()):
            one.close()
        self._selector.close()
        assert not self._thread.is_alive()

    def _run(self) -> None:
        while True:
            for key, _ in self._selector.select():
                if key.data is None:
                    return
                key.data()

    def _from_clients(self) -> None:
        try:
            data, client = self._front.recvfrom(LARGEST)
        except OSError:  # a page that is gone cannot be reached: that was what came
            return
        behind = self._behind.get(client)
        if behind is None:
            behind = self._behind[client] = _bound()
            behind.connect((HOST, self.target))
            back = partial(self._from_server, behind, client)
            self._selector.register(behind, selectors.EVENT_READ, back)
        if self._passes("up"):
            with suppress(OSError):  # nobody listens there, and the kernel says so
                behind.send(data)

    def _from_server(self, behind: socket.socket, client: tuple[str, int]) -> None:
        with suppress(OSError):  # the same, or what was announced was that
            data = behind.recv(LARGEST)
            if self._passes("down"):
                self._front.sendto(data, client)

    def _passes(self, way: str) -> bool:
        lost = self._random.random() < self.loss
        self.counters[f"{way}_lost" if lost else way] += 1
        return not lost


def _bound() -> socket.socket:
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for buffer in (socket.SO_RCVBUF, socket.SO_SNDBUF):
        one.setsockopt(socket.SOL_SOCKET, buffer, BUFFER_BYTES)
    one.bind((HOST, 0))
    one.setblocking(False)
    return one
