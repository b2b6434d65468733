"""What is generated from the wire models is what is committed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from server.protocol import command, http, keys, status
from server.protocol.base import WireModel
from server.protocol.schema import SCHEMA_FILE, rendered, schema

FOR_OPERATORS = {"Health", "Sessions", "WorkerDraining"}  # the page never asks for these
CLIENT = Path(__file__).resolve().parents[2] / "web_client"


def test_committed_schema_is_the_generated_one() -> None:
    assert SCHEMA_FILE.read_text(encoding="utf-8") == rendered(), "run 'make types'"


def test_every_wire_model_of_the_page_is_in_the_schema() -> None:
    models = {
        name
        for module in (command, http, keys, status)
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, WireModel) and value is not WireModel
    }
    assert models - FOR_OPERATORS <= set(schema()["$defs"])
    assert models >= FOR_OPERATORS


def test_what_the_server_writes_has_every_field_and_what_it_reads_may_leave_defaults_out() -> None:
    definitions = schema()["$defs"]
    assert "paused" in definitions["StateStatus"]["required"]
    assert "presses" not in definitions["Keys"]["required"]
    assert definitions["FrameReceipt"]["properties"]["receipt"] == {
        "type": "string",
        "pattern": "^[0-9]{1,20}$",
    }


def test_schema_is_plain_json_without_machine_paths() -> None:
    text = rendered()
    assert json.loads(text) == schema()
    assert str(CLIENT.parent) not in text


def test_committed_types_are_the_generated_ones() -> None:
    node = shutil.which("node")
    if node is None:
        found = subprocess.run(
            ["bash", "tools/node-path.sh"], cwd=CLIENT.parent, capture_output=True, text=True
        )
        node = os.path.join(found.stdout.strip(), "node")
    if not (CLIENT / "node_modules" / "json-schema-to-typescript").exists():
        pytest.fail("the page's tools are not installed: run 'make setup'")
    done = subprocess.run(
        [node, "scripts/types.mjs", "--check"],
        cwd=CLIENT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
