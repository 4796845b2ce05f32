"""Kinds of identifiers in a line are counted, and a line that has too few of them is given up early without a wrong answer."""

from __future__ import annotations

import pytest

from coatcheck.compaction.evidence import identifiers

LINES = {
    "nothing to look up": 0,
    "see src/main.py": 2,
    "took 350 ms": 1,
    "took 350-ms": 0,
    "GET https://host.example/v2/items?x=1": 3,
    "mail bob@host.example": 1,
    "connect to 10.41.7.23:9443, version 2.11.4 of 2026-11-18": 4,
    "commit 9f3c2ab17de4": 1,
    "порт 8080 слушает": 1,
    "JOB-7741 failed on host-3:8443": 2,
    "used 85% of 16 GB": 1,
}


@pytest.mark.parametrize(("line", "count"), LINES.items())
def test_the_kinds_in_a_line_are_counted(line: str, count: int) -> None:
    assert identifiers(line) == count


@pytest.mark.parametrize(("line", "count"), LINES.items())
def test_a_line_with_enough_of_them_is_counted_to_its_end_and_one_with_less_stays_below(line: str, count: int) -> None:
    for least in range(count + 1):
        assert identifiers(line, least) == count
    for least in range(count + 1, 16):
        assert identifiers(line, least) < least
