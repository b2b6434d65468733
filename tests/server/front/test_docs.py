"""What a client may meet is written down."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from admission.session import END_STATE
from server.front import errors, problems
from server.front.app import create_app
from server.protocol.worker import WorkerGone
from server.settings import Settings
from server.transports import base

PAGE = (Path(__file__).parents[3] / "docs" / "protocol" / "http.md").read_text()
ABSTRACT = {"front_error"}


def codes() -> set[str]:
    classes = [kind for _, kind in inspect.getmembers(errors, inspect.isclass)]
    own = {kind.code for kind in classes if isinstance(getattr(kind, "code", None), str)}
    return (
        (own - ABSTRACT)
        | problems.REFUSED.keys()
        | problems.REJECTED.keys()
        | {"internal_error", "invalid_request", "not_found", "method_not_allowed", WorkerGone.code}
    )


@pytest.mark.parametrize("code", sorted(codes()))
def test_every_code_is_in_the_table_of_problems(code) -> None:
    assert re.search(rf"^\|[^|]*`{code}`[^|]*\| \d\d\d \|", PAGE, re.MULTILINE)


@pytest.mark.parametrize(("reason", "state"), END_STATE.items())
def test_every_reason_is_in_the_table_of_ends(reason, state) -> None:
    assert f"| `{reason}` | {state} |" in PAGE


def test_every_route_is_in_the_table_of_routes() -> None:
    paths = create_app(Settings(), []).openapi()["paths"]
    for path, methods in paths.items():
        named = re.sub(r"\{\w*?(world|name)?(?:_?id)?\}", lambda m: f"{{{m[1] or 'id'}}}", path)
        for method in methods:
            assert f"`{method.upper()} {named}`" in PAGE


@pytest.mark.parametrize(
    "kind",
    [
        kind
        for _, kind in inspect.getmembers(base, inspect.isclass)
        if issubclass(kind, base.TransportError)
    ],
)
def test_every_refusal_of_a_transport_has_a_status(kind) -> None:
    assert kind.code in problems.REFUSED
