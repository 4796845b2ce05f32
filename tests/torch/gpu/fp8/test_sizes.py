"""The article's model by its shapes alone, and the memory that quantising a checkpoint takes."""

from __future__ import annotations

import ctypes
import gc
import json
from pathlib import Path

import torch

from coatcheck.gpu.fp8.layout import EMBEDDINGS, EncoderShape, Header
from coatcheck.gpu.fp8.loading import load_quantised
from coatcheck.gpu.fp8.quantise import quantise
from coatcheck.gpu.fp8.writing import arranged, file_bytes

ARTICLE = {"BF16": 3_416_522_340, "FP8": 2_259_902_516}


def article_model() -> tuple[EncoderShape, dict[str, Header]]:
    """mT5-xl's encoder with a cross-attention scorer: 168 matrices, 80 other tensors, as the article counts them.

    The article states no shapes: the sizes are mT5-xl's, the scorer is that of its makers' multilingual models, the vocabulary is
    mT5's tokenizer with three tokens of gliclass. The size of its BF16 file says whether that is right.
    """
    from gliclass import GLiClassModel, GLiClassModelConfig
    from transformers import MT5Config

    encoder = MT5Config(vocab_size=250_103, d_model=2_048, d_kv=64, d_ff=5_120, num_layers=24, num_heads=32)
    config = GLiClassModelConfig(
        encoder_config=encoder, encoder_model="encoder", hidden_size=2_048, vocab_size=250_103, scorer_type="cross-attn",
        pooling_strategy="pass",
    )  # fmt: skip
    with torch.device("meta"):
        model = GLiClassModel(config)
    state = model.state_dict()
    headers = {name: Header("BF16", tuple(tensor.shape)) for name, tensor in state.items() if name != EMBEDDINGS[1]}
    return EncoderShape(24, 2_048, 2_048, 5_120, 32, 32, 250_103), headers


def test_the_article_s_two_file_sizes_follow_from_the_shapes() -> None:
    shape, headers = article_model()
    shape.check(headers)

    quantised = shape.quantised(headers)

    assert len(shape.matrices()) == 168
    assert len(headers) - 168 == 80
    found = {"BF16": file_bytes(headers), "FP8": file_bytes(quantised)}
    for kind, size in found.items():
        assert abs(size / ARTICLE[kind] - 1) < 0.005, (kind, size)
    # To the byte, so that the shapes are the article's. Its FP8 scales can only be two bytes wide: ours are four, 491,520 of them.
    assert found["BF16"] == ARTICLE["BF16"]
    assert abs(found["FP8"] - 2 * 491_520 - ARTICLE["FP8"]) < 1_024


LARGE = EncoderShape(blocks=1, hidden=2_048, inner=2_048, feed_forward=5_120, heads=32, buckets=32, vocabulary=100)
"""One block of mT5-xl's width with the least of all else."""


class Watched:
    """The highest resident memory within a ``with``, above what was resident before. A file's pages in its cache are none of it."""

    grown = 0

    def __enter__(self) -> Watched:
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)  # what is free already would be taken without being seen
        Path("/proc/self/clear_refs").write_text("5")  # what was the highest before counts no more
        self._before = self._resident("VmRSS")
        return self

    def __exit__(self, *_: object) -> None:
        self.grown = self._resident("VmHWM") - self._before

    def _resident(self, name: str) -> int:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(name)) * 1024


def test_neither_quantising_nor_loading_holds_a_copy_in_bf16(tmp_path: Path) -> None:
    save_large(tmp_path / "bf16")
    model = skeleton()

    with Watched() as quantising:
        quantise(tmp_path / "bf16", tmp_path / "fp8")
    with Watched() as loading:
        load_quantised(model, tmp_path / "fp8")

    bf16, fp8 = ((tmp_path / name).stat().st_size for name in ("bf16/model.safetensors", "fp8/fp8.safetensors"))
    assert bf16 > 96_000_000
    assert quantising.grown < bf16 * 0.4
    assert fp8 * 0.9 < loading.grown < bf16 * 0.75


def large_headers() -> dict[str, tuple[int, ...]]:
    headers: dict[str, tuple[int, ...]] = {**LARGE.matrices(), **LARGE.kept(), EMBEDDINGS[0]: (LARGE.vocabulary, LARGE.hidden)}
    for head in ("text_projector", "classes_projector"):
        for layer in ("linear_1", "linear_2"):
            headers |= {f"model.{head}.{layer}.weight": (16, 16), f"model.{head}.{layer}.bias": (16,)}
    return {**headers, "model.logit_scale": ()}


def save_large(folder: Path) -> None:
    """All zeros, and on the disk hardly anything: a file with a hole."""
    folder.mkdir()
    headers = {name: Header("BF16", size) for name, size in large_headers().items()}
    with (folder / "model.safetensors").open("wb") as file:
        file.write(arranged(headers)[0])
        file.truncate(file_bytes(headers))
    encoder = {"model_type": "mt5", "num_layers": 1, "d_model": 2_048, "d_kv": 64, "num_heads": 32, "d_ff": 5_120}
    (folder / "config.json").write_text(json.dumps({"vocab_size": LARGE.vocabulary, "encoder_config": encoder}))


def skeleton() -> torch.nn.Module:
    """Modules of these names that hold nothing."""
    root = torch.nn.Module()
    for name, size in {**large_headers(), EMBEDDINGS[1]: (LARGE.vocabulary, LARGE.hidden)}.items():
        *path, own = name.split(".")
        parent = root
        for number, step in enumerate(path):
            if not hasattr(parent, step):
                last = number == len(path) - 1
                is_matrix = last and name in LARGE.matrices()
                module = torch.nn.Linear(size[1], size[0], bias=False, device="meta") if is_matrix else torch.nn.Module()
                parent.add_module(step, module)
            parent = getattr(parent, step)
        if own not in dict(parent.named_parameters(recurse=False)):
            parent.register_parameter(own, torch.nn.Parameter(torch.empty(size, device="meta")))
    return root
