"""An encoder of transformers whose forward is a graph's: it stands in the place of the encoder within a GLiClass."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import torch

from coatcheck.domain.errors import GpuRefused
from coatcheck.gpu.graphs.backend import GraphBackend
from coatcheck.gpu.graphs.buckets import Buckets
from coatcheck.gpu.graphs.pool import RunnerPool
from coatcheck.gpu.graphs.runner import Forward, GraphRunner

_NEEDS_MORE = frozenset({"output_hidden_states", "output_attentions", "inputs_embeds"})
_GIVEN = frozenset({"input_ids", "attention_mask", "return_dict"})


class GraphedEncoder(torch.nn.Module):  # type: ignore[misc]
    """Called as the encoder is, with token ids and a mask of two dimensions; answers with the last hidden states alone."""

    def __init__(self, encoder: Any, pool: RunnerPool) -> None:
        super().__init__()
        self.encoder = encoder
        self.config = encoder.config
        self._pool = pool
        # What an encoder does not name it does not read, such as the types of tokens in the family of T5.
        self._refused = (frozenset(inspect.signature(encoder.forward).parameters) | _NEEDS_MORE) - _GIVEN

    def get_input_embeddings(self) -> Any:
        return self.encoder.get_input_embeddings()

    def forward(
        self, input_ids: torch.Tensor | None = None, attention_mask: torch.Tensor | None = None, **asked: Any
    ) -> Any:  # fmt: skip
        """Raises GpuRefused where more is asked for than a graph gives: all layers, attentions, embeddings in place of ids."""
        from transformers.modeling_outputs import BaseModelOutput

        more = sorted(name for name in self._refused & asked.keys() if asked[name] is not None and asked[name] is not False)
        if more or input_ids is None:
            raise GpuRefused(f"A graphed encoder gives hidden states for token ids, and nothing for {', '.join(more) or 'none'}.")
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        return BaseModelOutput(last_hidden_state=self._pool.run(input_ids, mask))


def graphed(
    encoder: Any, buckets: Buckets, backends: Sequence[GraphBackend], *, pad_id: int, limit_s: float
) -> GraphedEncoder:  # fmt: skip
    """The encoder behind one runner for each of the backends. It must lie where it will run: graphs remember addresses."""
    dtype = encoder.get_input_embeddings().weight.dtype
    forward = forward_of(encoder)
    runners = [GraphRunner(forward, buckets, backend, dtype=dtype, pad_id=pad_id) for backend in backends]
    return GraphedEncoder(encoder, RunnerPool(runners, limit_s=limit_s))


def forward_of(encoder: Any) -> Forward:
    """With a mask of four dimensions, which transformers takes as it is."""
    return lambda ids, mask: encoder(input_ids=ids, attention_mask=mask)[0]
