"""``coatcheck gpu``: what the accelerated runtime has, and what it will need."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from coatcheck.cli import output
from coatcheck.cli.output import AsJson

MOST_GIB = 1024.0**3
"""An exbibyte: what is above it, infinity too, is a slip."""
MOST_CONFIG_BYTES = 16 * 1024 * 1024

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
    from coatcheck.domain.errors import GpuRefused
    from coatcheck.gpu.kernels.ahead import TARGETS, architecture, compile_for
    from coatcheck.gpu.kernels.catalogue import every_specimen

    chosen = [one for one in every_specimen() if not kernel or any(part in one.name for part in kernel)]
    if not chosen:
        raise GpuRefused("No kernel has that in its name.")
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


@gpu.command(name="plan")
def gpu_plan(
    config: Annotated[Path | None, typer.Option(help="A model's config.json, in the place of what says its layers below.")] = None,
    kind: Annotated[list[str] | None, typer.Option("--format", help="bf16, fp8 or nvfp4; all of them without one.")] = None,
    full_layers: Annotated[int, typer.Option(help="Layers with full attention.")] = 12,
    kv_heads: Annotated[int, typer.Option(help="Key-value heads of each.")] = 2,
    head_size: Annotated[int, typer.Option(help="Elements of a key or value vector.")] = 256,
    linear_layers: Annotated[int, typer.Option(min=0, help="Layers with linear attention; 0 for none.")] = 36,
    state_bytes: Annotated[int, typer.Option(help="Recurrent state of each, in bytes.")] = 3_207_168,
    block_tokens: Annotated[int | None, typer.Option(help="Try this page, in tokens; the smallest that fits without it.")] = None,
    memory_gib: Annotated[float, typer.Option(min=0.0, max=MOST_GIB, help="Memory for the cache.")] = 5.85,
    max_length: Annotated[int, typer.Option(min=1, help="Tokens of the longest sequence.")] = 169_984,
    as_json: AsJson = False,
) -> None:
    """Plan the pages of a hybrid model's KV cache: tokens, bytes, pool and prefix hits, by format.

    Without options: the model of the article on NVFP4 caches. A page that a layer cannot use is refused.
    """
    from coatcheck.domain.errors import GpuRefused
    from coatcheck.gpu.nvfp4.model_config import planned
    from coatcheck.gpu.nvfp4.planner import GIB, KvFormat, StateLayers, full_attention, plan

    try:
        formats = [KvFormat(name.lower()) for name in kind or KvFormat]
    except ValueError as error:
        raise GpuRefused(f"A format is one of {', '.join(KvFormat)}.") from error
    if config is None:
        states = [StateLayers("linear attention", linear_layers, state_bytes)] if linear_layers else []
        layers = [full_attention("full attention", full_layers, kv_heads, head_size, one) for one in formats]
        plans = [plan([one], states, block_tokens) for one in layers]
    else:
        written = _json_of(config)
        plans = [planned(written, one, block_tokens) for one in formats]
    pools = [made.pool_tokens(int(memory_gib * GIB), max_length) for made in plans]
    found = [
        {
            "format": one.value, "bytes_per_token": made.tokens[0].bytes_per_token, "block_tokens": made.block_tokens[0],
            "page_bytes": made.page_bytes, "padding_bytes": made.padding_bytes, "tokens_per_gib": made.tokens_per_gib,
            "pool_tokens": pool, "times_first": round(pool / pools[0], 2) if pools[0] else None,
            "shortest_prefix_hit": made.shortest_prefix_hit,
        }
        for one, made, pool in zip(formats, plans, pools, strict=True)
    ]  # fmt: skip
    output.show_table(found, as_json, tuple(found[0]), ([*row.values()] for row in found))
    if not as_json:
        output.say("A prefix is found in whole blocks: prompts that share fewer tokens than shortest_prefix_hit find nothing.")


@gpu.command(name="budget")
def gpu_budget(
    device_gib: Annotated[float, typer.Option(min=0.0, max=MOST_GIB, help="Memory of the device.")],
    weights_gib: Annotated[float, typer.Option(min=0.0, max=MOST_GIB, help="Weights that stay on the device.")],
    cache_per_token: Annotated[int, typer.Option(min=1, help="Bytes of cache for each token, all layers together.")],
    max_length: Annotated[int, typer.Option(help="Tokens of the longest sequence.")],
    max_sequences: Annotated[int, typer.Option(help="Sequences at once.")],
    state_bytes: Annotated[int, typer.Option(min=0, help="Recurrent state of a sequence, all layers together.")] = 0,
    workspaces_gib: Annotated[float, typer.Option(min=0.0, max=MOST_GIB, help="Scratch memory of the kernels.")] = 0.0,
    graphs_gib: Annotated[float, typer.Option(min=0.0, max=MOST_GIB, help="Captured graphs.")] = 0.0,
    others_gib: Annotated[float, typer.Option(min=0.0, max=MOST_GIB, help="What others hold of the device.")] = 0.0,
    utilisation: Annotated[float, typer.Option(help="The share that the runtime may cut up.")] = 0.92,
    as_json: AsJson = False,
) -> None:
    """Say before a launch whether its longest sequence and its sequences at once fit. Exits with 1 where they do not."""
    from coatcheck.gpu.budget import GIB, Device, Launch, ModelNeeds, budget

    weights, workspaces, graphs = (int(size * GIB) for size in (weights_gib, workspaces_gib, graphs_gib))
    made = budget(
        ModelNeeds(weights, workspaces, graphs, cache_per_token, state_bytes),
        Device(int(device_gib * GIB), int(others_gib * GIB)),
        Launch(max_length, max_sequences, utilisation),
    )
    found = {
        "fits": made.fits, "pool_bytes": made.pool, "pool_needed_bytes": made.pool_needed, "longest_tokens": made.longest,
        "sequences_of_full_length": made.sequences_of_full_length, "outside_bytes": made.outside,
        "outside_needed_bytes": made.outside_needed,
        "findings": [{"problem": one.problem.value, "detail": one.detail} for one in made.findings],
    }  # fmt: skip
    fits = f"It fits. The pool holds {made.longest:,} tokens, and {made.sequences_of_full_length} sequences of full length at once."
    output.show(found, as_json, *([one.detail for one in made.findings] or [fits]))
    if not made.fits:
        raise typer.Exit(1)


@gpu.command(name="plugin")
def gpu_plugin(
    load: Annotated[bool, typer.Option("--load", help="Import what the plugin waits for, which takes seconds.")] = False,
    as_json: AsJson = False,
) -> None:
    """Say what the vLLM plugin finds to change beside this Python. Exits with 1 where no vLLM is installed.

    Where vLLM is installed without this command's own needs: python -m coatcheck.gpu.vllm
    """
    from coatcheck.gpu.vllm.asking import as_values, asked

    report = asked(load=load)
    places = [(part, place) for part in report.parts for place in part.places]
    lines = [f"{part.name}: {place.module}: {place.state} ({place.detail})" for part, place in places]
    output.show(as_values(report), as_json, f"vLLM: {report.vllm or 'not installed'}", *lines)
    if report.vllm is None:
        raise typer.Exit(1)


def _json_of(path: Path) -> object:
    import json

    from coatcheck.domain.errors import GpuRefused

    try:
        with path.open("rb") as file:  # a pipe too, but no more of it than a configuration has
            found: object = json.loads(file.read(MOST_CONFIG_BYTES))
    except (OSError, ValueError, RecursionError) as error:
        raise GpuRefused(f"{path} cannot be read as JSON.") from error
    return found
