"""Asks a TURN server for a relay over TLS, as somebody without credentials; prints its answer.

`python -m tests.docker.allocate ADDRESS NAME CERTIFICATES`
"""

from __future__ import annotations

import socket
import ssl
import sys

from aioice import stun

UDP = 0x11000000


def ask(address: str, name: str, certificates: str) -> str:
    """The error code and the realm of the answer."""
    request = stun.Message(stun.Method.ALLOCATE, stun.Class.REQUEST)
    request.attributes["REQUESTED-TRANSPORT"] = UDP
    context = ssl.create_default_context(cafile=certificates)
    with (
        socket.create_connection((address, 443), timeout=10) as plain,
        context.wrap_socket(plain, server_hostname=name) as connection,
    ):
        connection.sendall(bytes(request))
        answer = stun.parse_message(connection.recv(2048))
    assert answer.message_class == stun.Class.ERROR, answer
    return f"{answer.attributes['ERROR-CODE'][0]} {answer.attributes['REALM']}"


if __name__ == "__main__":
    print(ask(*sys.argv[1:]))
