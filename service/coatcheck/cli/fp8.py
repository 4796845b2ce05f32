"""``coatcheck gpu quantize`` and ``audit``: a GLiClass checkpoint in FP8, made and held against its source.

The command has the name that such commands have; everything else is spelled as this house spells.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from coatcheck.cli import output
from coatcheck.cli.output import AsJson

Source = Annotated[Path, typer.Argument(help="The folder of a BF16 GLiClass checkpoint with an mT5 encoder.")]


def quantise(
    source: Source,
    target: Annotated[Path, typer.Argument(help="A folder that does not exist yet.")],
    upstream: Annotated[
        str | None, typer.Option(help="Where the source came from, as NAME@COMMIT; a folder of the hub's cache says it itself.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Quantise the encoder's projections of a GLiClass checkpoint to FP8 (E4M3, a scale per output channel).

    All else is copied byte for byte. Needs memory for a piece of a tensor, and coatcheck[gpu]; no GPU.
    """
    _require_libraries()
    from coatcheck.gpu.fp8.layout import WEIGHTS_FILE
    from coatcheck.gpu.fp8.quantise import quantise as made_of

    with output.progress("quantising") as advance:
        made = made_of(source, target, upstream=upstream, on_tensor=lambda done, _: advance(done))
    weights = made.files[WEIGHTS_FILE]
    quantised = sum(one.source_sha256 is None for one in made.tensors.values())
    kept = len(made.tensors) - 2 * quantised
    found = {
        "target": target, "upstream": made.upstream, "quantised": quantised, "kept": kept, "weights_bytes": weights.size_bytes,
        "weights_sha256": weights.sha256, "left_out": list(made.left_out),
    }  # fmt: skip
    lines = [
        f"{quantised:,} matrices in FP8, {output.counted(kept, 'tensor')} as before: "
        f"{weights.size_bytes:,} bytes in {target / WEIGHTS_FILE}.",
        f"Made from {made.upstream}."
        if made.upstream
        else "Which revision it was made from was not said (--upstream NAME@COMMIT).",
    ]
    if made.left_out:
        lines.append(f"Not copied: {', '.join(made.left_out)}.")
    output.show(found, as_json, *lines)


def audit(
    source: Source,
    quantised: Annotated[Path, typer.Argument(help="The folder that `gpu quantize` made of it.")],
    as_json: AsJson = False,
) -> None:
    """Hold a quantised checkpoint against its source, to the byte. Exits with 1 where it is not what it says."""
    _require_libraries()
    from coatcheck.gpu.fp8.audit import audit as audited

    done = audited(source, quantised)
    found = {
        "sound": not done.findings, "upstream": done.upstream, "quantised": done.quantised, "kept": done.kept,
        "source_bytes": done.source_bytes, "quantised_bytes": done.quantised_bytes, "reduction": round(done.reduction, 4),
        "largest_error": round(done.largest_error, 5), "findings": list(done.findings),
    }  # fmt: skip
    said = f"Made from {done.upstream}." if done.upstream else "Which revision it was made from was not said."
    sizes = f"{done.source_bytes:,} bytes became {done.quantised_bytes:,}: {done.reduction:.2%} less."
    kept = "are byte-equal to their source" if not done.findings else "were compared"
    counts = f"{done.quantised} matrices in FP8, {done.kept} tensors {kept}."
    error = f"Rounding took {done.largest_error:.2%} of the weights at most (root mean square, by matrix)."
    output.show(found, as_json, *done.findings, counts, sizes, error, said)
    if done.findings:
        raise typer.Exit(1)


def _require_libraries() -> None:
    import importlib.util

    from coatcheck.domain.errors import GpuUnsupported

    for name in ("torch", "safetensors"):
        if importlib.util.find_spec(name) is None:
            raise GpuUnsupported(f"{name} is not installed (coatcheck[gpu]).")
