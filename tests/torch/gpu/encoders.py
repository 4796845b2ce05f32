"""A small mT5 GLiClass, and its encoder behind graphs, for the tests of graphs and of the router."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from coatcheck.gpu.graphs import Buckets, GraphRunner
from coatcheck.gpu.graphs.backend import Captured, GraphBackend
from coatcheck.gpu.graphs.cuda import CudaGraphs
from coatcheck.gpu.graphs.encoder import forward_of
from coatcheck.gpu.graphs.recording import RecordingGraphs
from coatcheck.gpu.graphs.runner import additive
from tests.torch import tiny

LABELS = ("facts and figures", "small talk")
WORDS = "the port is 8443 thanks a lot , how nice : river follows garden"


def mt5(tokenizer: Any, *, blocks: int = 2) -> Any:
    """All its sides are multiples of 16, as FP8 products want them."""
    from transformers import MT5Config

    return MT5Config(
        vocab_size=len(tokenizer), d_model=32, d_kv=16, d_ff=64, num_layers=blocks, num_heads=2, decoder_start_token_id=0
    )  # fmt: skip


def gliclass(folder: Path, **config: Any) -> tuple[Any, Any]:
    """The model and its tokenizer, with relative positions that matter."""
    tokenizer = tiny.bert_tokenizer([WORDS, *LABELS], tiny.GLICLASS)
    model, _ = tiny.gliclass(folder, [], [], encoder=mt5(tokenizer), tokenizer=tokenizer, **config)
    with torch.no_grad():
        attention_of(model.model.encoder_model).relative_attention_bias.weight.normal_(0, 2)
    return model.eval(), tokenizer


def attention_of(encoder: Any) -> Any:
    """The layer that computes the relative positions for all of them."""
    return encoder.encoder.block[0].layer[0].SelfAttention


def backend_on(device: str) -> GraphBackend:
    return CudaGraphs(device) if device == "cuda" else RecordingGraphs()


class Gate:
    """A backend whose next replay can be held, or made to fail."""

    def __init__(self, inner: GraphBackend) -> None:
        self._inner = inner
        self.device = inner.device
        self._held: threading.Event | None = None
        self.reached = threading.Event()
        self.fails_with: BaseException | None = None

    def capture(self, region: Callable[[], torch.Tensor]) -> Captured:
        return _Gated(self._inner.capture(region), self)

    def serving(self) -> AbstractContextManager[None]:
        return self._inner.serving()

    @contextmanager
    def holding(self) -> Iterator[None]:
        """The first replay from here on stands still until the block ends."""
        held = self._held = threading.Event()
        self.reached.clear()
        try:
            yield
        finally:
            held.set()

    def pass_through(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            self.reached.set()
            assert held.wait(30)
        failure, self.fails_with = self.fails_with, None
        if failure is not None:
            raise failure


@dataclass(frozen=True)
class _Gated:
    inner: Captured
    gate: Gate

    @property
    def output(self) -> torch.Tensor:
        return self.inner.output

    def replay(self) -> None:
        self.gate.pass_through()
        self.inner.replay()


@dataclass
class Bench:
    """An encoder, what runs it, and what is expected of that."""

    encoder: Any
    device: str
    buckets: Buckets
    runner_class: type[GraphRunner] = GraphRunner
    calls: int = 0
    gate: Gate = field(init=False)
    runner: GraphRunner = field(init=False)

    def __post_init__(self) -> None:
        self.gate = Gate(backend_on(self.device))
        self.runner = self.runner_class(self._forward, self.buckets, self.gate, dtype=torch.float32, pad_id=0)

    def _forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return forward_of(self.encoder)(ids, mask)

    def batch(self, *lengths: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
        """Random token ids, each row of its own length, and their mask."""
        chance = torch.Generator().manual_seed(seed + sum(lengths))
        words = int(self.encoder.config.vocab_size)
        ids = torch.randint(1, words, (len(lengths), max(lengths)), generator=chance)
        mask = (torch.arange(max(lengths))[None, :] < torch.tensor(lengths)[:, None]).long()
        return (ids * mask).to(self.device), mask.to(self.device)

    def padded_eager(self, ids: torch.Tensor, mask: torch.Tensor, tokens: int, rows: int | None = None) -> torch.Tensor:
        """What the encoder gives without any graph for the batch padded to this size, at the places of the batch."""
        more = (0, tokens - ids.shape[1], 0, (rows or len(ids)) - len(ids))
        wide_ids, wide_mask = (torch.nn.functional.pad(given, more) for given in (ids, mask))
        wide_mask[len(ids) :] = 1
        with torch.no_grad():
            return forward_of(self.encoder)(wide_ids, additive(wide_mask, torch.float32))[: len(ids), : ids.shape[1]]

    def same(self, found: torch.Tensor, expected: torch.Tensor) -> bool:
        """To the bit on a CPU, where the very same operations ran."""
        if self.device == "cpu":
            return bool(torch.equal(found, expected))
        return bool(torch.allclose(found, expected, atol=1e-5))
