"""The demo's transcript and its questions, read from the package.

Two secrets are planted in it. The file holds markers in their place, and the secrets lie here in pieces, so that no file
holds anything that has a secret's shape. They open nothing.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import datetime
from importlib import resources
from typing import Any

TRANSCRIPT = "transcript.jsonl"
SECRETS = {
    "{{secret:deploy-token}}": ("gh", "p_", "R4tq9ZbW2", "mXk7LcVd8Ns", "T1yHf5GjP0eQ3u6A"),
    "{{secret:database-password}}": ("vQ8", "-Tz4", "mR", "2xLp", "9Wd7", "kS"),
}
_PLACEHOLDER = re.compile(r"\[REDACTED:[a-z0-9-]+:[0-9a-f]{16}\]")


@dataclass(frozen=True, slots=True)
class Question:
    """What the demo asks, and the line that must come back exactly."""

    query: str
    exact_line: str


@dataclass(frozen=True, slots=True)
class Story:
    """The transcript as an agent holds it, secrets in place."""

    messages: tuple[Any, ...]
    times: tuple[datetime, ...]


QUESTIONS = (
    Question(
        "Which address and port does the carrier sandbox listen on since the move?",
        "carrier-sandbox.stg-eu-2 moved to 10.41.7.23:9443, TLS only; 10.41.3.8:8443 is switched off since 06:30 UTC.",
    ),
    Question(
        "What is the retry budget for carrier calls, and why was it corrected?",
        "Correction: the retry budget for carrier calls is 2 attempts, not 3; every attempt over two is billed to us.",
    ),
    Question(
        "Какой порог алерта поставили для очереди печати?",
        "Порог алерта для очереди печати — 250 мс по p95 за 10 минут, ниже не ставим.",
    ),
)


def load() -> Story:
    """Reads the transcript: one line a message, ``{"at": time, "message": {...}}``."""
    text = resources.files(__package__).joinpath(TRANSCRIPT).read_text("utf-8")
    for marker, pieces in SECRETS.items():
        text = text.replace(marker, "".join(pieces))
    lines = [json.loads(line) for line in text.split("\n") if line]
    return Story(
        tuple(line["message"] for line in lines),
        tuple(datetime.fromisoformat(line["at"]) for line in lines),
    )


def holds_secret(text: str) -> bool:
    """Whether one of the planted secrets stands in the text."""
    return any("".join(pieces) in text for pieces in SECRETS.values())


def equals_redacted(original: Any, rebuilt: Any) -> bool:
    """Whether ``rebuilt`` is ``original`` to the byte, with one placeholder for each planted secret and nothing else changed."""
    secrets = re.compile("|".join(re.escape("".join(pieces)) for pieces in SECRETS.values()))
    expected, found = _canonical(original), _canonical(rebuilt)
    return secrets.split(expected) == _PLACEHOLDER.split(found)


def _canonical(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
