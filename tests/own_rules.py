"""An operator's file of redaction rules; one for all tests, since each other one is compiled for many seconds."""

from __future__ import annotations

from pathlib import Path

RULES = r"""rules:
  - id: mine.staff-number
    name: the number on a badge, or in a list of badges
    pattern: '\b(badge-[0-9]{6}|[0-9]{9})\b'
    min_entropy: 0.0
    confidence: medium
"""


def write(folder: Path) -> Path:
    """The file, in a folder."""
    path = folder / "mine.yml"
    path.write_text(RULES, "utf-8")
    return path
