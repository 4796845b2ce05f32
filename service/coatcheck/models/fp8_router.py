"""The FP8 router: a quantised GLiClass on the GPU where there is one, else on the CPU, by the reference of the GPU's kernels.

How texts and labels are read is ``gliclass``'s, whatever the model runs on: nothing is ever cut off.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import structlog

from coatcheck.domain.errors import GpuUnsupported
from coatcheck.domain.ports import Router
from coatcheck.gpu.router import REFERENCE, Placement, gpu, graph
from coatcheck.gpu.router import load as load_classifier
from coatcheck.models import gliclass_loading, torch_runtime
from coatcheck.models.fallback import FallbackRouter
from coatcheck.models.gliclass import GliclassRouter
from coatcheck.models.gliclass_loading import Loaded

log = structlog.get_logger(__name__)


def fp8_router(
    folder: Path, *, revision: str, buckets: Sequence[int] | None = None, place: Placement | None = None
) -> Router:  # fmt: skip
    """The router of a quantised checkpoint, loaded. ``place`` is the GPU's without one, and the CPU's where there is no GPU.

    On a GPU it has the same checkpoint on the CPU behind it. Raises StageUnavailable.
    """
    try:
        place = place or gpu(folder)
    except GpuUnsupported as error:
        log.info("router on the CPU", reason=error.detail)
        return on(REFERENCE, folder, revision, buckets)
    chosen = place
    return FallbackRouter(
        lambda: on(chosen, folder, revision, buckets), lambda: on(REFERENCE, folder, revision, buckets), revision=revision
    )


def on(place: Placement, folder: Path, revision: str, buckets: Sequence[int] | None = None) -> GliclassRouter:
    def load(folder: Path) -> Loaded:
        loaded = gliclass_loading.load(folder, lambda folder, _: load_classifier(folder, place))
        with torch_runtime.loading():  # torch captures one graph at a time in a process
            graph(loaded.model, place, buckets=buckets, most_tokens=loaded.max_tokens, pad_id=loaded.tokenizer.pad_token_id)
        return loaded

    return GliclassRouter(folder, revision=revision, load=load)
