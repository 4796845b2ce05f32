"""Attention types: an explicit override for a runtime that does not know a checkpoint's name for its attention."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from coatcheck.domain.errors import GpuRefused

SPARSE, FULL, LINEAR = "qwen_sparse_attention", "full_attention", "linear_attention"
NOT_PROVEN = (
    "It lets the runtime read the configuration. It does not prove that the two compute the same: compare the outputs of both "
    "before trusting one."
)

log = logging.getLogger(__name__)
"""The standard library's: this runs in model servers, which have no structlog."""


@dataclass(frozen=True, slots=True)
class Override:
    """The layers' types after it, and which layers it changed."""

    layer_types: tuple[str, ...]
    changed: tuple[int, ...]
    not_proven: str = NOT_PROVEN


def sparse_as_full(layer_types: Sequence[str]) -> Override:
    """Calls sparse attention full attention, and says so in the log. Nothing calls this by itself: whoever wants it asks for it.

    Raises GpuRefused for a type that is none of the three, and where there is nothing to change.
    """
    unknown = sorted(set(layer_types) - {SPARSE, FULL, LINEAR})
    if unknown:
        raise GpuRefused(f"Attention of the types {unknown}: known are {SPARSE}, {FULL} and {LINEAR}.")
    changed = tuple(layer for layer, kind in enumerate(layer_types) if kind == SPARSE)
    if not changed:
        raise GpuRefused(f"No layer is of the type {SPARSE}: there is nothing to override.")
    log.warning("attention types overridden: %s called %s in %d layers. %s", SPARSE, FULL, len(changed), NOT_PROVEN)
    return Override(tuple(FULL if kind == SPARSE else kind for kind in layer_types), changed)
