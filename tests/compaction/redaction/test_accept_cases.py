"""The bars, measured on cases from outside this repository: COATCHECK_TEST_CASES names their folder."""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

from coatcheck.compaction.redaction import Redactor
from tests.compaction.redaction.fakes import KEYS, left_of

pytestmark = pytest.mark.accept
MESSAGE_CHARS = 4_096


@pytest.fixture(scope="module")
def cases() -> ModuleType:
    path = os.environ.get("COATCHECK_TEST_CASES")
    if not path:
        pytest.skip("COATCHECK_TEST_CASES names no folder of cases")
    spec = importlib.util.spec_from_file_location("redaction_cases", Path(path) / "redaction" / "redact_cases.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_at_least_115_of_120_secrets_are_covered(redactor: Redactor, cases: ModuleType) -> None:
    missed = _missed(redactor, cases.positives())

    assert len(missed) <= 5, missed


def test_no_negative_is_changed(redactor: Redactor, cases: ModuleType) -> None:
    changed = [case.kind for case in cases.negatives() if redactor.redact_text(case.text, KEYS).text != case.text]

    assert changed == []


def test_at_least_24_of_28_evasions_are_covered(redactor: Redactor, cases: ModuleType) -> None:
    missed = _missed(redactor, cases.evasions())

    assert len(missed) <= 4, missed


def test_every_case_is_settled_by_one_pass(redactor: Redactor, cases: ModuleType) -> None:
    for case in (*cases.positives(), *cases.negatives(), *cases.evasions()):
        once = redactor.redact_text(case.text, KEYS).text

        assert redactor.redact_text(once, KEYS).text == once


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_messages_of_4_kb_pass_at_15_mb_a_second(redactor: Redactor, cases: ModuleType) -> None:
    corpus = cases.corpus(3)
    messages = [corpus[at : at + MESSAGE_CHARS] for at in range(0, len(corpus), MESSAGE_CHARS)]
    size = sum(len(message.encode()) for message in messages)

    best_s = min(_processor_seconds(redactor, messages) for _ in range(9))

    assert size / best_s / 1e6 >= 15


def _missed(redactor: Redactor, of: list[object]) -> list[str]:
    missed = []
    for case in of:
        redacted = redactor.redact_text(case.text, KEYS).text  # type: ignore[attr-defined]
        if any(left_of(secret, redacted) >= 6 for secret in case.secrets):  # type: ignore[attr-defined]
            missed.append(case.kind)  # type: ignore[attr-defined]
    return missed


def _processor_seconds(redactor: Redactor, messages: list[str]) -> float:
    began = time.thread_time()
    for message in messages:
        redactor.redact_text(message, KEYS)
    return time.thread_time() - began
