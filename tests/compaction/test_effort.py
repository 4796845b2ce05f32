"""A text that was made to be slow takes so much processor time and no more, and nothing of it is kept."""

from __future__ import annotations

import time

import pytest

from coatcheck.compaction import effort
from coatcheck.compaction.planner import Planner
from coatcheck.compaction.redaction import Redactor
from coatcheck.domain.canonical import JsonValue
from coatcheck.domain.errors import RedactionTooCostly
from tests.compaction.making import request
from tests.compaction.redaction.fakes import KEYS

SLOW = "Set-Cookie: a=b; "
"""Ten microseconds a character."""


def test_T34_a_window_made_to_be_slow_is_refused_within_its_bound(redactor: Redactor, monkeypatch: pytest.MonkeyPatch) -> None:
    messages: list[JsonValue] = [{"role": "user", "content": SLOW * 20_000 + str(number)} for number in range(6)]
    redactor.warm()
    monkeypatch.setattr(effort, "LIMIT_S", 0.5)
    began = time.thread_time()

    with pytest.raises(RedactionTooCostly) as refused:
        Planner(redactor).plan(request(messages))

    assert time.thread_time() - began < 5
    assert (refused.value.status, refused.value.retryable) == (413, False)


def test_a_text_alone_is_bounded_as_well(redactor: Redactor, monkeypatch: pytest.MonkeyPatch) -> None:
    redactor.warm()
    monkeypatch.setattr(effort, "LIMIT_S", 0.2)

    with pytest.raises(RedactionTooCostly):
        redactor.redact_text(SLOW * 50_000, KEYS)


def test_an_inner_bound_is_no_way_around_the_outer_one() -> None:
    with effort.bounded(-1), effort.bounded(60), pytest.raises(RedactionTooCostly):
        effort.check()


def test_a_wait_costs_nothing() -> None:
    with effort.bounded(0.2):
        time.sleep(0.3)
        effort.check()


def test_beyond_a_bound_there_is_none() -> None:
    with effort.bounded(0):
        pass

    effort.check()
