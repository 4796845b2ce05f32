"""``fp8``: a GLiClass router in BF16 and quantised to W8A8, on the same examples in pairs: answers, times, memory.

Without ``--model`` it makes a small one (``fp8_model``), so that the figures say what quantising does to that one and no other. It
runs on the CPU through the reference, whose times say nothing of a GPU.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmark import fp8_model
from benchmark.fp8_model import Example
from benchmark.report import Report, Table, rounded
from benchmark.stats import interleaved_seconds, quantile
from coatcheck.domain.canonical import JsonObject

if TYPE_CHECKING:
    import torch

NAME = "fp8"
_NEEDED = ("torch", "safetensors", "transformers", "gliclass")
_BATCHES = (1, 2, 4, 8, 16, 32)
_BINS = 10
_CPU_NOTE = (
    "All of it ran on a CPU, FP8 through its reference in plain torch, which decodes every weight in every call: no figure here "
    "was measured on a GPU, and no time says anything of one."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", type=Path, help="a BF16 GLiClass checkpoint with an mT5 encoder; a small one is made without it")
    parser.add_argument("--data", type=Path, help="with --model: JSON lines of text and label, every label a candidate")
    parser.add_argument("--examples", type=int, default=600, help="made ones (default %(default)s)")
    parser.add_argument("--blocks", type=int, default=4, help="of the made model (default %(default)s)")
    parser.add_argument("--hidden", type=int, default=64, help="of the made model (default %(default)s)")
    parser.add_argument("--steps", type=int, default=240, help="it is trained for (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=20, help="timed requests of each kind and batch (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1)


def run(options: argparse.Namespace) -> Report:
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        return Report(NAME, {}, {}, notes=(f"Nothing was measured: {', '.join(missing)} not installed (make setup-models).",))
    if (options.model is None) != (options.data is None):
        return Report(NAME, {}, {}, notes=("Nothing was measured: --model and --data go together.",))
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as folder:
        if options.model is None:
            source, given = Path(folder) / "bf16", fp8_model.examples(options.examples, options.seed)
            fp8_model.make(source, blocks=options.blocks, hidden=options.hidden, steps=options.steps, seed=options.seed)
        else:
            source, given = options.model, _read(options.data)
        return _measured(source, Path(folder) / "fp8", given, options)


def _measured(source: Path, target: Path, given: list[Example], options: argparse.Namespace) -> Report:
    from transformers import AutoTokenizer

    from coatcheck.gpu.fp8.audit import audit
    from coatcheck.gpu.fp8.quantise import quantise

    quantise(source, target)
    audited = audit(source, target)
    models = {"bf16": _bf16(source), "fp8": _fp8(target)}
    tokenizer = AutoTokenizer.from_pretrained(source, local_files_only=True)
    labels = list(dict.fromkeys(one.label for one in given))

    asks = {kind: partial(_asked, model, tokenizer, labels) for kind, model in models.items()}
    logits = {kind: _all_logits(ask, given) for kind, ask in asks.items()}
    quality = {kind: _quality(found, given, labels) for kind, found in logits.items()}
    distance = _distance(logits["bf16"], logits["fp8"])
    operations = {kind: _operations(partial(ask, [given[0].text])) for kind, ask in asks.items()}
    times = _times(asks, given, options.rounds)
    sizes = {"bf16": audited.source_bytes, "fp8": audited.quantised_bytes}
    memory = {kind: _tensor_bytes(model) for kind, model in models.items()}
    results: JsonObject = {
        "quality": {kind: rounded(found) for kind, found in quality.items()},
        "distance": rounded(distance, 5),
        "milliseconds": {str(batch): {kind: rounded(one, 3) for kind, one in found.items()} for batch, found in times.items()},
        "weights_bytes": dict(sizes),
        "tensor_bytes": dict(memory),
        "operations_per_request": dict(operations),
        "quantised_matrices": audited.quantised,
        "findings_of_the_audit": list(audited.findings),
    }
    made: JsonObject = {"blocks": options.blocks, "hidden": options.hidden, "steps": options.steps}
    settings: JsonObject = {"rounds": options.rounds, "labels": list(labels), "made_model": made if options.model is None else None}
    tables = (
        _quality_table(quality, distance),
        Table(
            "A request on this CPU, milliseconds",
            ("batch", "bf16 p50", "bf16 p95", "fp8 p50", "fp8 p95"),
            tuple((batch, *(found[kind][share] for kind in models for share in ("p50", "p95"))) for batch, found in times.items()),
        ),
        Table(
            "Size",
            ("", "weights on disk", "tensors in memory", "operations a request"),
            tuple((kind, sizes[kind], memory[kind], operations[kind]) for kind in models),
        ),
    )
    corpus: JsonObject = {"examples": len(given), "seed": options.seed}
    small = "A model that was trained for seconds on made sentences: what FP8 costs another one has to be measured on that one."
    notes = (_CPU_NOTE,) if options.model is not None else (_CPU_NOTE, small)
    return Report(NAME, results, settings, corpus, {}, tables, None, notes)


def _read(path: Path) -> list[Example]:
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [Example(str(line["text"]), str(line["label"])) for line in lines]


def _bf16(folder: Path) -> Any:
    import torch
    from gliclass import GLiClassModel, GLiClassModelConfig

    config = GLiClassModelConfig.from_pretrained(folder, local_files_only=True)
    config.encoder_model_name = str(folder)
    return GLiClassModel.from_pretrained(folder, config=config, local_files_only=True, dtype=torch.bfloat16).eval()


def _fp8(folder: Path) -> Any:
    from coatcheck.gpu.fp8.loading import empty_model, load_quantised

    model = empty_model(folder)
    load_quantised(model, folder)
    return model


def _asked(model: Any, tokenizer: Any, labels: list[str], texts: list[str]) -> torch.Tensor:
    import torch

    read = tokenizer(fp8_model.prompts(texts, labels), padding="longest", return_tensors="pt")
    with torch.inference_mode():
        answer = model(read["input_ids"], attention_mask=read["attention_mask"], max_num_classes=len(labels))
    logits: torch.Tensor = answer.logits.float()
    return logits


def _all_logits(ask: Callable[[list[str]], torch.Tensor], given: list[Example], batch: int = 16) -> torch.Tensor:
    """In the same batches for both models: what is read beside a text changes its padding."""
    import torch

    texts = [one.text for one in given]
    return torch.cat([ask(texts[start : start + batch]) for start in range(0, len(texts), batch)])


def _quality(logits: torch.Tensor, given: list[Example], labels: list[str]) -> dict[str, float]:
    """Macro-F1, accuracy, and the expected calibration error of the winner's probability in ten bins."""
    import torch

    shares = torch.softmax(logits.double(), dim=1)
    confidence, won = shares.max(dim=1)
    wanted = torch.tensor([labels.index(one.label) for one in given])
    right = (won == wanted).double()
    scores = []
    for label in range(len(labels)):
        hits = float(((won == label) & (wanted == label)).sum())
        named = float((won == label).sum() + (wanted == label).sum())
        scores.append(2 * hits / named if named else 0.0)
    bins = (confidence * _BINS).clamp(max=_BINS - 1).long()
    error = sum(
        float((bins == one).double().mean() * (right[bins == one].mean() - confidence[bins == one].mean()).abs())
        for one in set(bins.tolist())
    )
    return {"macro_f1": sum(scores) / len(scores), "accuracy": float(right.mean()), "calibration_error": error}


def _distance(bf16: torch.Tensor, fp8: torch.Tensor) -> dict[str, float]:
    """Between the two models' answers to the same request."""
    import torch

    one, other = torch.log_softmax(bf16.double(), dim=1), torch.log_softmax(fp8.double(), dim=1)
    return {
        "agreement": float((bf16.argmax(dim=1) == fp8.argmax(dim=1)).double().mean()),
        "mean_logit": float((bf16 - fp8).abs().mean()),
        "largest_logit": float((bf16 - fp8).abs().max()),
        "largest_share": float((one.exp() - other.exp()).abs().max()),
        "mean_kl": float((one.exp() * (one - other)).sum(dim=1).mean()),
    }


def _times(
    asks: Mapping[str, Callable[[list[str]], object]], given: list[Example], rounds: int
) -> dict[int, dict[str, dict[str, float]]]:
    """Tokenising included, both kinds in turns."""
    found = {}
    for batch in _BATCHES:
        texts = [given[number % len(given)].text for number in range(batch)]
        sides: dict[str, Callable[[], object]] = {kind: partial(ask, texts) for kind, ask in asks.items()}
        interleaved_seconds(sides, 2)
        seconds = interleaved_seconds(sides, rounds)
        found[batch] = {
            kind: {"p50": quantile(taken, 0.5) * 1_000, "p95": quantile(taken, 0.95) * 1_000} for kind, taken in seconds.items()
        }
    return found


def _operations(ask: Callable[[], object]) -> int:
    """That torch dispatches for one request; on a GPU most of them are a kernel."""
    from torch.utils._python_dispatch import TorchDispatchMode

    count = 0

    class Counting(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            nonlocal count
            count += 1
            return function(*args, **(kwargs or {}))

    with Counting():
        ask()
    return count


def _tensor_bytes(model: Any) -> int:
    """Of parameters and buffers, each once."""
    held = {one.data_ptr(): one.nbytes for one in (*model.parameters(), *model.buffers())}
    return sum(held.values())


def _quality_table(quality: dict[str, dict[str, float]], distance: dict[str, float]) -> Table:
    rows = [(kind, found["macro_f1"], found["accuracy"], f"{found['calibration_error']:.4f}") for kind, found in quality.items()]
    title = (
        f"The same examples: top answer agrees in {distance['agreement']:.2%}; logits differ by {distance['mean_logit']:.4f} "
        f"(largest {distance['largest_logit']:.3f}), shares by {distance['largest_share']:.4f} at most"
    )
    return Table(title, ("", "macro-F1", "accuracy", "calibration error"), tuple(rows))
