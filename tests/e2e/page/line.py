"""A line for a seat, in front of a server that has none yet.

Answers what `docs/protocol/http.md` says of a session that waits, over a stream that stays open,
and passes everything else on. It hears what a server would go by: whether whoever waits is alive.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import httpx

from tests.e2e.page.states import NOTHING_YET, SESSION
from tests.e2e.server import ServerProcess

COMMENT_SECONDS = 5.0  # a server writes one at least every 15 s
_PASSED_ON = ("content-type", "cache-control")


class WaitingLine:
    """One session, third in line until the test says otherwise."""

    def __init__(self, server: ServerProcess) -> None:
        self.opened: list[float] = []  # when an event stream was opened, monotonic
        self.closed: list[float] = []  # when it ended, by either side
        self.streams = 0  # open now
        self._server = server
        self._events: list[dict[str, Any]] = []
        self._queued(3, 150.0)
        self._cuts = 0
        self._ended = False
        self._changed = threading.Condition()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, daemon=True)
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *fault: object) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        self._http.shutdown()
        self._http.server_close()

    def advance(self, position: int) -> None:
        """Somebody in front has gone."""
        with self._changed:
            self._queued(position, 40.0)
            self._changed.notify_all()

    def admit(self) -> None:
        """A seat is free: it is kept for long, so that the test need not hurry."""
        with self._changed:
            self._events.append({"event": "admitted", "claim_seconds": 600.0})
            self._changed.notify_all()

    def cut(self) -> None:
        """End the event stream, as proxies do after a while."""
        with self._changed:
            self._cuts += 1
            self._changed.notify_all()

    def wait_for_stream(self, count: int, seconds: float) -> None:
        """Wait until a stream has been opened that many times."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self.opened) >= count, seconds):
                raise TimeoutError(f"{len(self.opened)} of {count} streams within {seconds} s")

    def view(self) -> dict[str, Any]:
        """What `GET /v1/sessions/{id}` answers."""
        now = self._events[-1]
        status = "admitted" if now["event"] == "admitted" else "queued"
        rest = {key: value for key, value in now.items() if key != "event"}
        return {**SESSION, **NOTHING_YET, "start_point": "hut", "status": status, **rest}

    def stream(self, write: Any) -> None:
        """Tell all that is and will be, until the test or whoever listens has had enough."""
        with self._changed:
            self.opened.append(time.monotonic())
            self.streams += 1
            told, cuts = len(self._events) - 1, self._cuts
            self._changed.notify_all()
        try:
            while self._cuts == cuts and not self._ended:
                with self._changed:
                    fresh, told = self._events[told:], len(self._events)
                for event in fresh:
                    write(f"data: {json.dumps(event)}\n\n")
                write(": still here\n\n")
                with self._changed:
                    if told == len(self._events) and self._cuts == cuts and not self._ended:
                        self._changed.wait(COMMENT_SECONDS)
        finally:
            with self._changed:
                self.streams -= 1
                self.closed.append(time.monotonic())

    def pass_on(self, method: str, path: str, body: bytes) -> httpx.Response:
        """What the real server answers."""
        headers = {"content-type": "application/json"} if body else {}
        return httpx.request(
            method, self._server.url + path, content=body, headers=headers, timeout=15
        )

    def _queued(self, position: int, eta: float) -> None:
        self._events.append({"event": "queued", "queue_position": position, "eta_seconds": eta})


def _handler(line: WaitingLine) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/v1/sessions/s_line":
                self._answer(200, line.view())
            elif self.path == "/v1/sessions/s_line/events":
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.end_headers()
                with contextlib.suppress(OSError):  # nobody listens any more
                    line.stream(self._write)
            else:
                self._pass_on()

        def do_POST(self) -> None:
            if self.path == "/v1/sessions":
                self._body()
                self._answer(201, line.view())
            else:
                self._pass_on()

        def log_message(self, format: str, *arguments: object) -> None:
            """Say nothing."""

        def _body(self) -> bytes:
            return self.rfile.read(int(self.headers.get("content-length", 0)))

        def _write(self, text: str) -> None:
            self.wfile.write(text.encode())
            self.wfile.flush()

        def _answer(self, status: int, content: object) -> None:
            body = json.dumps(content).encode()
            self._send(status, {"content-type": "application/json"}, body)

        def _pass_on(self) -> None:
            response = line.pass_on(self.command, self.path, self._body())
            headers = {k: v for k, v in response.headers.items() if k in _PASSED_ON}
            self._send(response.status_code, headers, response.content)

        def _send(self, status: int, headers: dict[str, str], body: bytes) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler
