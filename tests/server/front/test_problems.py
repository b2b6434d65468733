from __future__ import annotations

import inspect
import json
import math
import re

import pytest

import admission.residency
import admission.session
import server.protocol.worker
from admission.session import Cause, EndReason, IllegalTransition, State
from server.front import errors, guard, problems
from server.front.problems import harmless, problem_of, problem_of_invalid, status_of

# Broken rules between our own parts: no request can cause them, so they are faults of ours.
OURS = {"AdmissionError", "DuplicateSession", "DuplicateWorker"}
MADE = {
    "AdminKeyRequired": lambda kind: kind(True),
    "UnknownWorld": lambda kind: kind(["tiny"]),
    "UnknownStartPoint": lambda kind: kind("tiny", ["gate"]),
    "UnsupportedByWorld": lambda kind: kind("tiny", "prompt"),
    "SessionEnded": lambda kind: kind("abc", EndReason.IDLE),
    "WorkerRefused": lambda kind: kind("bad_offer", "no video line", "sdp", "abc"),
    "RequestRejected": lambda kind: kind("host_required", "no Host"),
    "UnknownSession": lambda kind: kind(),
    "SecretRequired": lambda kind: kind(),
    "ApiKeyRequired": lambda kind: kind(),
    "IllegalTransition": lambda kind: kind(State.CLOSED, Cause.CLAIMED),
}


def public_exceptions():
    for module in (errors, admission.residency, admission.session, server.protocol.worker):
        for name, kind in inspect.getmembers(module, inspect.isclass):
            if issubclass(kind, Exception) and kind.__module__ == module.__name__:
                yield pytest.param(kind, id=name)


@pytest.mark.parametrize("kind", list(public_exceptions()))
def test_every_public_exception_has_an_answer(kind) -> None:
    error = MADE.get(kind.__name__, lambda k: k("something"))(kind)
    problem, headers = problem_of(error)
    assert (problem.status == 500) is (kind.__name__ in OURS)
    assert problem.status == status_of(error)
    assert problem.code
    assert problem.title
    json.dumps(json.loads(problem.model_dump_json()), allow_nan=False)
    if problem.status == 503:
        assert int(headers["Retry-After"]) >= 1
    if problem.status == 401:
        assert headers["WWW-Authenticate"] == "Bearer"


def test_codes_are_told_apart_by_class() -> None:
    codes = [
        kind.code
        for _, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, errors.FrontError) and "code" in vars(kind)
    ]
    assert len(codes) == len(set(codes))


@pytest.mark.parametrize(
    ("code", "status"),
    [("bad_offer", 422), ("playing_elsewhere", 409), ("unsupported_by_world", 422), ("new", 502)],
)
def test_a_refusal_of_the_worker_keeps_its_code_and_words(code, status) -> None:
    problem, _ = problem_of(errors.WorkerRefused(code, "because", "sdp", "abc"))
    assert (problem.code, problem.status, problem.detail) == (code, status, "because")
    assert (problem.field, problem.session_id) == ("sdp", "abc")


def test_every_rule_of_the_guard_has_a_status() -> None:
    used = set(re.findall(r'RequestRejected\(\s*"(\w+)"', inspect.getsource(guard)))
    assert used == set(problems.REJECTED)


def test_an_error_of_nobody_is_internal_and_tells_nothing() -> None:
    problem, _ = problem_of(KeyError("secret detail"))
    assert problem.status == 500
    assert "secret" not in problem.model_dump_json()


def test_what_was_sent_is_made_harmless() -> None:
    fault = {"loc": ("body", "\ud800" * 500, "\x00"), "msg": "bad \ud800", "type": "x"}
    problem = problem_of_invalid([fault])
    encoded = problem.model_dump_json().encode()
    assert b"\x00" not in encoded
    assert len(encoded) < 2000
    assert harmless("a\ud800b\n") == r"a\ud800b\x0a"


def test_values_of_the_request_are_never_repeated() -> None:
    fault = {"loc": ("body", "x"), "msg": "bad", "type": "x", "input": math.nan, "ctx": {"e": 1}}
    assert "NaN" not in problem_of_invalid([fault]).model_dump_json()


def test_illegal_transition_is_a_conflict() -> None:
    assert status_of(IllegalTransition(State.CLOSED, Cause.CLAIMED)) == 409
