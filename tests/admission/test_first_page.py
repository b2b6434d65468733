"""The first page of the package is a program that runs."""

from __future__ import annotations

import doctest

import admission


def test_the_first_page_of_the_folder_runs():
    results = doctest.testmod(admission)
    assert results.attempted > 0
    assert results.failed == 0
