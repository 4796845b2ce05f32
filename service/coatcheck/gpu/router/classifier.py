"""A GLiClass with the weights of a quantised checkpoint, and with graphs in the place of its encoder's forward."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from coatcheck.domain.errors import GpuUnfit
from coatcheck.gpu.fp8.loading import empty_model, load_quantised
from coatcheck.gpu.graphs import Buckets
from coatcheck.gpu.graphs.encoder import graphed
from coatcheck.gpu.router.placement import Placement

WAIT_S = 5.0
"""For a runner, where all serve others: a request takes tens of milliseconds."""
_NEEDS_LAYERS = ("squeeze_layers", "layer_wise", "use_segment_embeddings")


def load(folder: Path, place: Placement) -> Any:
    """The GLiClass model of a quantised checkpoint, where it will run. Raises GpuRefused, GpuUnsupported."""
    model = empty_model(folder)
    load_quantised(model, folder, device=place.device, backend=place.fp8)
    return model


def graph(model: Any, place: Placement, *, buckets: Sequence[int] | None, most_tokens: int, pad_id: int) -> None:
    """Captures the encoder for each bucket and puts the graphs in its place; nothing where the place has none.

    Raises GpuUnfit for a bucket above what the model reads, and for a model that reads more of its encoder than its last layer;
    GpuRefused for what cannot be captured.
    """
    if place.graphs is None:
        return
    needs = [name for name in _NEEDS_LAYERS if getattr(model.config, name, False)]
    if needs or getattr(model.config, "encoder_layer_id", -1) != -1:
        raise GpuUnfit(
            f"A graphed encoder gives its last layer alone; this model reads more ({', '.join(needs) or 'another layer'})."
        )
    shapes = Buckets.of(buckets, most_tokens=most_tokens)
    backends = [place.graphs() for _ in range(place.runners)]
    model.model.encoder_model = graphed(model.model.encoder_model, shapes, backends, pad_id=pad_id, limit_s=WAIT_S)
