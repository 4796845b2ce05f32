"""``coatcheck gpu``: what the accelerated runtime has, and what it will need."""

from __future__ import annotations

from typing import Annotated

import typer

from coatcheck.cli import output
from coatcheck.cli.output import AsJson

gpu = typer.Typer(help="The accelerated runtime: what it has and what it will need.", no_args_is_help=True, rich_markup_mode=None)


@gpu.command(name="status")
def gpu_status(as_json: AsJson = False) -> None:
    """Say what the accelerated runtime lacks on this machine. Exits with 1 where something is missing."""
    from coatcheck.cli import checks

    missing = checks.missing_for_gpu()
    found = "The accelerated runtime has what it needs."
    output.show({"available": not missing, "missing": missing}, as_json, *([f"Missing: {line}" for line in missing] or [found]))
    if missing:
        raise typer.Exit(1)


@gpu.command(name="compile")
def gpu_compile(
    target: Annotated[list[str] | None, typer.Option(help="A GPU generation, as sm_90a; all of them without one.")] = None,
    kernel: Annotated[list[str] | None, typer.Option(help="Only kernels whose name contains this.")] = None,
    as_json: AsJson = False,
) -> None:
    """Compile the kernels ahead of time. Needs triton and no GPU.

    Exits with 1 where code lacks an instruction that it was written for, or keeps registers in memory.
    """
    from coatcheck.gpu.kernels.ahead import TARGETS, architecture, compile_for
    from coatcheck.gpu.kernels.catalogue import every_specimen

    chosen = [one for one in every_specimen() if not kernel or any(part in one.name for part in kernel)]
    done = [compile_for(one, generation) for one in chosen for generation in target or TARGETS]
    found = [
        {
            "kernel": one.name, "target": architecture(one), "ptx_chars": len(one.ptx), "cubin_bytes": len(one.cubin),
            "registers": one.registers, "spilled_bytes": one.spilled_bytes, "missing": list(one.missing),
        }
        for one in done
    ]  # fmt: skip
    columns = ("kernel", "target", "cubin_bytes", "registers", "spilled_bytes", "missing")
    rows = (
        [", ".join(one.missing) if name == "missing" else row[name] for name in columns]
        for one, row in zip(done, found, strict=True)
    )
    output.show_table(found, as_json, columns, rows)
    if any(one.missing or one.spilled_bytes for one in done):
        raise typer.Exit(1)
