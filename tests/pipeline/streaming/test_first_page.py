"""What the folder says about itself is true."""

from __future__ import annotations

import doctest
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import pipeline.streaming as package

MODULES = ["", ".plan", ".metrics", ".spec", ".actors", ".orchestrator"]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name):
    module = importlib.import_module(package.__name__ + name)
    assert doctest.testmod(module).failed == 0


def test_there_are_examples():
    assert doctest.testmod(package).attempted >= 5


def test_everything_that_is_exported_exists_and_is_sorted():
    assert all(hasattr(package, name) for name in package.__all__)
    assert sorted(package.__all__) == package.__all__


def test_the_reading_order_names_every_file():
    folder = Path(package.__file__).parent
    for file in folder.glob("*.py"):
        assert file.name == "__init__.py" or file.name in package.__doc__, file.name


def test_the_scheduler_loads_without_torch_and_numpy():
    code = (
        "import sys, pipeline.streaming; print([m for m in ('torch', 'numpy') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
