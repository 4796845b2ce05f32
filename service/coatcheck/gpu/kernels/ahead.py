"""Compiles triton's kernels ahead of time, for GPUs that need not be there: PTX, machine code, and what it asks of a GPU.

A kernel is compiled as a launch would: integers that divide by 16 are marked so, pointers too. It must run in a process that
does not interpret kernels (TRITON_INTERPRET), where there is nothing to compile.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coatcheck.domain.errors import GpuRefused, GpuUnsupported

TARGETS = {"sm_89": 89, "sm_90a": 90, "sm_100a": 100, "sm_120a": 120}
"""The generations that these kernels are for: Ada, Hopper, Blackwell of data centres and of workstations. By triton's number."""
ROUNDED_DIVISIONS = r"\A(?![\s\S]*div\.(?:full|approx))"
"""A pattern for ``expected``: no division in the code is an approximate one. The interpreter rounds both alike, and cannot tell."""
TOO_OLD = {"sm_80": 80, "sm_86": 86}
"""Those that have no conversion to FP8 E4M3."""


@dataclass(frozen=True, slots=True)
class Specimen:
    """One kernel with the arguments that it is compiled for, and what must stand in its code."""

    name: str
    kernel: Any
    """A function under ``triton.jit``."""
    signature: Mapping[str, str]
    """Type of each argument that is no constant, by name: ``*bf16``, ``i32``, ``fp32``. Pointers are aligned to 16 bytes."""
    constants: Mapping[str, float | int]
    expected: Mapping[str, str]
    """What it is, and the pattern that it has in PTX."""
    warps: int = 4
    stages: int = 1
    divisible: tuple[str, ...] = ()
    """Integers that divide by 16."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """What came of a specimen for one target."""

    name: str
    target: str
    ptx: str
    cubin: bytes
    registers: int
    spilled_bytes: int
    """A thread stores this much of its registers in memory, since it has no more of them."""
    missing: tuple[str, ...]
    """Of what was expected, what does not stand in the PTX."""


def compile_for(specimen: Specimen, target: str) -> Compiled:
    """Raises GpuUnsupported for a generation that cannot run the kernel, GpuRefused where its compiler will not take it."""
    if target in TOO_OLD:
        raise GpuUnsupported(f"{target} has no FP8 E4M3 conversion, which {specimen.name} needs: it takes sm_89 or newer.")
    if target not in TARGETS:
        raise GpuUnsupported(f"{target} is not a target: {', '.join(TARGETS)}.")

    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    from triton.runtime.interpreter import InterpretedFunction

    if isinstance(specimen.kernel, InterpretedFunction):
        raise GpuRefused("This process interprets kernels (TRITON_INTERPRET): it cannot compile them.")
    names = specimen.kernel.arg_names
    kinds = {name: specimen.signature.get(name, "constexpr") for name in names}
    aligned = [name for name in names if kinds[name].startswith("*") or name in specimen.divisible]
    options = {"num_warps": specimen.warps, "num_stages": specimen.stages, "enable_fp_fusion": True}
    attributes = {(names.index(name),): [["tt.divisibility", 16]] for name in aligned}
    source = ASTSource(specimen.kernel, signature=kinds, constexprs=dict(specimen.constants), attrs=attributes)
    try:
        made = triton.compile(source, target=GPUTarget("cuda", TARGETS[target], 32), options=options)
    except Exception as error:  # the compiler's own errors have no common base but this
        raise GpuRefused(f"{specimen.name} does not compile for {target}: {error}") from error
    ptx, cubin = str(made.asm["ptx"]), bytes(made.asm["cubin"])
    registers, spilled_bytes = _resources(ptx, target)
    missing = tuple(what for what, pattern in specimen.expected.items() if not re.search(pattern, ptx))
    return Compiled(specimen.name, target, ptx, cubin, registers, spilled_bytes, missing)


def architecture(compiled: Compiled) -> str:
    """What the PTX itself says it is for: ``sm_90a``."""
    found = re.search(r"^\.target (\w+)", compiled.ptx, re.MULTILINE)
    return found.group(1) if found else ""


def _resources(ptx: str, target: str) -> tuple[int, int]:
    """Registers a thread and bytes that it spills, as the assembler of triton's own package counts them."""
    from triton.backends.nvidia.compiler import get_ptxas

    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "kernel.ptx"
        source.write_text(ptx, encoding="utf-8")
        options = ["-v", "--regAllocOptLevel=2", f"--gpu-name={target}"]  # as triton sets them
        command = [get_ptxas(TARGETS[target]).path, *options, str(source), "-o", str(source.with_suffix(".cubin"))]
        said = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    text = said.stdout + said.stderr
    registers, spilled = re.search(r"Used (\d+) registers", text), re.search(r"(\d+) bytes spill stores", text)
    if registers is None or spilled is None:
        raise GpuRefused(f"The assembler said nothing of registers: {text}")
    return int(registers.group(1)), int(spilled.group(1))
