"""The real redactor, once for the session: its rules load once, from the user's cache where they are compiled."""

from __future__ import annotations

import pytest

from coatcheck.compaction.planner import Planner
from coatcheck.compaction.redaction.redactor import Redactor


@pytest.fixture(scope="session")
def redactor() -> Redactor:
    redactor = Redactor()
    redactor.warm()
    return redactor


@pytest.fixture(scope="session")
def planner(redactor: Redactor) -> Planner:
    """Without any model."""
    return Planner(redactor)
