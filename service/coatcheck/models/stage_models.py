"""Which model answers to the name that a setting has for one of the stages that shorten text, or why none does."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from coatcheck.domain.errors import StageUnavailable
from coatcheck.domain.ports import Router
from coatcheck.models import checkpoints
from coatcheck.models.registry import NONE, SWITCHED_OFF, Built, models_dir
from coatcheck.models.stage_workers import LazyModel

M = TypeVar("M")

LIBRARIES: Mapping[str, str] = MappingProxyType({"router": "gliclass"})
"""What reads each stage's checkpoints, of coatcheck[models]."""


def build_router(name: str, *, cache_dir: Path | None = None) -> Built[LazyModel[Router]]:
    """The router of this name, not loaded; none where it is not here, and why. Raises RefusedToStart for what is no name."""

    def load(folder: Path, revision: str) -> Router:
        from coatcheck.models.gliclass import GliclassRouter

        return GliclassRouter(folder, revision=revision)

    return _lazy("router", name, load, cache_dir)


def _lazy(stage: str, name: str, load: Callable[[Path, str], M], cache_dir: Path | None) -> Built[LazyModel[M]]:
    if name == NONE:
        return Built(None, SWITCHED_OFF)
    named = checkpoints.parse(f"COATCHECK_{stage.upper()}", name)
    if importlib.util.find_spec(LIBRARIES[stage]) is None:
        return Built(None, "coatcheck[models] is not installed")
    try:
        found = checkpoints.locate(named, cache_dir or models_dir())
        revision = found.revision
    except StageUnavailable as error:
        return Built(None, error.detail)
    return Built(LazyModel(revision, lambda: load(found.folder, revision)))


def build(stage: str, name: str, *, cache_dir: Path | None = None) -> Built[LazyModel[Any]]:
    """As the stage's own, by the stage's name."""
    return _BUILDERS[stage](name, cache_dir=cache_dir)


_BUILDERS: Mapping[str, Callable[..., Built[Any]]] = MappingProxyType({"router": build_router})
