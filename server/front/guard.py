"""What stands before every route: who was asked, from where, with what, and how much of it.

A service on loopback can be reached by any page that the machine's browser opens, so Host and
Origin are checked on every request, static files and metrics included. A body is JSON, is read
here, within a size and a time, and only then handed on. Every answer gets its security headers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from server.front.errors import RequestRejected
from server.front.hosts import Authority, HostRule, parse_authority, same_origin
from server.front.problems import internal_problem, problem_response, response_of

log = structlog.get_logger(__name__)

BODY_SECONDS: Final = 15.0  # for the whole body to arrive
DISCARDED_BODIES: Final = 4  # a body that is too large is read, if it is no larger than so many
_JSON: Final = frozenset({b"application/json"})
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_CSP: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "media-src 'self' blob: mediastream:; font-src 'self'; connect-src 'self'{elsewhere}; "
    "manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
_OPENER: Final = b"cross-origin-opener-policy"
SECURITY_HEADERS: Final[Mapping[bytes, bytes]] = {
    b"content-security-policy": _CSP.format(elsewhere="").encode(),
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"x-frame-options": b"DENY",
    _OPENER: b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
}


class Guard:
    """ASGI middleware around the whole application."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        hosts: HostRule,
        origins: tuple[str, ...] = (),
        max_body_bytes: int = 1_000_000,
        body_seconds: float | None = None,
        connects_to: tuple[str, ...] = (),
        special_types: Mapping[str, frozenset[bytes]] | None = None,
    ) -> None:
        """Guard `app`.

        Args:
            app: What is guarded.
            hosts: The names that it answers to.
            origins: Of other sites whose pages may use it.
            max_body_bytes: Longest body.
            body_seconds: How long a body may take to arrive.
            connects_to: Where the page may connect besides this service (sources of CSP).
            special_types: Media types of a body by path, where they are not plain JSON's.
        """
        self._special_types = special_types or {}
        self._app = app
        elsewhere = "".join(f" {source}" for source in connects_to)
        self._headers = {
            **SECURITY_HEADERS,
            b"content-security-policy": _CSP.format(elsewhere=elsewhere).encode(),
        }
        self._hosts = hosts
        self._origins = frozenset(origin.lower().rstrip("/") for origin in origins)
        self._max_body_bytes = max_body_bytes
        self._body_seconds = body_seconds or BODY_SECONDS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check, then hand on; a fault of ours is answered too, as long as nothing was sent."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return  # a websocket: there are none here
        answer = _Answer(send, self._headers)
        try:
            asked = self._check_host(scope)
            if _in_the_clear(scope, asked):
                answer.leave_out(_OPENER)
            self._check_origin(scope, asked)
            if (body := await self._read_body(scope, receive)) is None:
                return  # the client has gone
            await self._app(scope, _replay(body, receive), answer)
        except RequestRejected as error:
            response = response_of(error)
            response.headers["Connection"] = "close"  # the rest of its body is not waited for
            await response(scope, receive, answer)
        except Exception:
            log.exception("internal_error", method=scope["method"], path=scope["path"])
            if not answer.started:
                await problem_response(internal_problem())(scope, receive, answer)

    def _check_host(self, scope: Scope) -> Authority:
        """Who was asked: the URI in absolute form says it, else the Host header (RFC 9112 §3.2)."""
        named = _values(scope, b"host")
        if len(named) != 1:
            raise RequestRejected("host_required", "exactly one Host header is needed")
        authority = parse_authority(named[0])
        target: bytes = scope.get("raw_path") or b"/"
        if authority is not None and not target.startswith((b"/", b"*")):
            authority = _absolute_form(scope, target)
        if authority is None:
            raise RequestRejected("bad_request", "the Host is not a name or an address")
        if not self._hosts.allows_authority(authority):
            raise RequestRejected(
                "host_not_allowed",
                "this service does not answer to that name; VELDT_ALLOWED_HOSTS adds names",
            )
        return authority

    def _check_origin(self, scope: Scope, asked: Authority) -> None:
        """Refuse what a page of another site sends, reading included."""
        origins = _values(scope, b"origin")
        if len(origins) > 1:
            raise RequestRejected("bad_request", "there is more than one Origin header")
        if origins:
            known = origins[0].decode("latin-1").lower() in self._origins
            if known or same_origin(origins[0].lower(), asked):
                return
            raise RequestRejected(
                "origin_not_allowed", "pages of another origin may not use this service"
            )
        site = _values(scope, b"sec-fetch-site")
        if not site or site[0] in (b"same-origin", b"none"):
            return
        navigates = _values(scope, b"sec-fetch-mode") == [b"navigate"]
        if not (navigates and scope["method"] in _SAFE):  # a link from elsewhere is fine
            raise RequestRejected(
                "origin_not_allowed", "pages of another origin may not use this service"
            )

    async def _read_body(self, scope: Scope, receive: Receive) -> bytes | None:
        """The whole body, or None if the client left while sending it."""
        declared = _declared_length(scope)
        if declared == 0 and not _values(scope, b"transfer-encoding"):
            _check_media_type(scope, empty=True, json_types=self._json_types(scope))
            return b""
        if declared is not None and declared > self._max_body_bytes:
            if declared <= DISCARDED_BODIES * self._max_body_bytes:
                await self._discard(receive)
            raise self._too_large()
        _check_media_type(scope, empty=False, json_types=self._json_types(scope))
        body = bytearray()
        try:
            async with asyncio.timeout(self._body_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    body += message.get("body", b"")
                    if len(body) > self._max_body_bytes:
                        raise self._too_large()
                    if not message.get("more_body", False):
                        return bytes(body)
        except TimeoutError:
            raise RequestRejected("body_too_slow", "the body did not arrive in time") from None

    async def _discard(self, receive: Receive) -> None:
        """Let it arrive: who is still sending when we close hears a reset, and not our answer."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._body_seconds):
                while (await receive()).get("more_body", False):
                    pass

    def _json_types(self, scope: Scope) -> frozenset[bytes]:
        return self._special_types.get(scope["path"], _JSON)

    def _too_large(self) -> RequestRejected:
        return RequestRejected(
            "body_too_large", f"a body has at most {self._max_body_bytes} bytes here"
        )


class _Answer:
    """`send` that adds the security headers and knows whether an answer has begun."""

    def __init__(self, send: Send, headers: Mapping[bytes, bytes]) -> None:
        self._send, self._headers = send, dict(headers)
        self.started = False

    def leave_out(self, name: bytes) -> None:
        """Do not add this one."""
        del self._headers[name]

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            headers = list(message.get("headers", ()))
            present = {name.lower() for name, _ in headers}
            headers += [item for item in self._headers.items() if item[0] not in present]
            message = {**message, "headers": headers}
        await self._send(message)


def _in_the_clear(scope: Scope, asked: Authority) -> bool:
    """Whether a browser trusts the way to us too little to heed, or hush about, an opener policy.

    A name may be that of a proxy with a certificate; a bare address of the network is none.
    """
    address = asked.address
    return scope["scheme"] == "http" and address is not None and not address.is_loopback


def _values(scope: Scope, name: bytes) -> list[bytes]:
    return [value for key, value in scope["headers"] if key.lower() == name]


def _absolute_form(scope: Scope, target: bytes) -> Authority | None:
    """`http://host/path` as request target: take its authority, and leave only the path."""
    scheme, found, rest = target.partition(b"://")
    if not found or scheme.lower() not in (b"http", b"https"):
        return None
    authority, slash, path = rest.partition(b"/")
    scope["raw_path"] = slash + path or b"/"
    _, _, decoded = str(scope["path"]).partition("://")
    _, slash_text, path_text = decoded.partition("/")
    scope["path"] = slash_text + path_text or "/"
    return parse_authority(authority)


def _declared_length(scope: Scope) -> int | None:
    """What Content-Length says; 0 where there is neither it nor a transfer encoding."""
    values = _values(scope, b"content-length")
    if not values:
        return None if _values(scope, b"transfer-encoding") else 0
    if len(values) > 1 or not values[0].isdigit() or len(values[0]) > 18:
        raise RequestRejected("bad_request", "the Content-Length is not a number")
    return int(values[0])


def _check_media_type(scope: Scope, *, empty: bool, json_types: frozenset[bytes]) -> None:
    """A body is JSON. Forms are refused even when empty: another site can send those unasked."""
    if scope["method"] in _SAFE and empty:
        return
    types = _values(scope, b"content-type")
    if not types and empty:
        return
    essence = types[0].partition(b";")[0].strip().lower() if types else b""
    if len(types) > 1 or essence not in json_types:
        raise RequestRejected("unsupported_media_type", "a body is application/json here")


def _replay(body: bytes, receive: Receive) -> Receive:
    """Give the body that was read, then what comes after it."""
    given = False

    async def replayed() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replayed
