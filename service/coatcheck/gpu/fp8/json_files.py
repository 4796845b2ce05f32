"""Reads the JSON files of a checkpoint's folder, which may be anybody's: ordinary files alone, and never more than a bound."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def read_json(path: Path, most_bytes: int) -> Any:
    """Raises OSError for what is no ordinary file: a pipe keeps its reader waiting for ever. Also ValueError, RecursionError."""
    if not path.is_file():
        raise OSError(f"{path} is no file.")
    with path.open("rb") as file:
        return json.loads(file.read(most_bytes))
