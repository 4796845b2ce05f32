"""Every kernel compiled for four generations of GPUs that are not there: in processes of their own, which do not interpret."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from typer.testing import CliRunner

from coatcheck.cli.main import app
from coatcheck.domain.errors import GpuRefused, GpuUnsupported
from coatcheck.gpu.kernels.ahead import compile_for
from coatcheck.gpu.kernels.catalogue import every_specimen

pytest.importorskip("triton")
TARGETS = {"sm_89", "sm_90a", "sm_100a", "sm_120a"}
ONE_OF_EACH = ("write, head size 256", "read, head size 256, 12", "quantise, rows of 5120", "scale-out")


def compiled(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    command = [sys.executable, "-c", "from coatcheck.cli import main; main()", "gpu", "compile", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=900, check=False)


def assert_all_are_sound(found: list[dict[str, Any]], kernels: int) -> None:
    assert {one["target"] for one in found} == TARGETS
    assert len(found) == kernels * len(TARGETS)
    for one in found:
        assert one["missing"] == [], one
        assert one["spilled_bytes"] == 0, one
        assert one["ptx_chars"] > 1_000
        assert one["cubin_bytes"] > 1_000


def test_each_kernel_becomes_machine_code_with_its_instructions_and_no_register_in_memory() -> None:
    done = compiled("--json", *(part for name in ONE_OF_EACH for part in ("--kernel", name)))

    assert done.returncode == 0, done.stderr
    assert_all_are_sound(json.loads(done.stdout), len(ONE_OF_EACH))


@pytest.mark.accept
def test_every_shape_of_every_kernel_does() -> None:
    done = compiled("--json")

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert_all_are_sound(found, len({one["kernel"] for one in found}))


@pytest.mark.parametrize(
    ("target", "said"), [("sm_80", "no FP8 E4M3 conversion"), ("sm_86", "no FP8 E4M3 conversion"), ("sm_70", "is not a target")]
)
def test_a_generation_that_cannot_run_them_is_refused_by_name(target: str, said: str) -> None:
    for one in every_specimen():
        with pytest.raises(GpuUnsupported) as refused:
            compile_for(one, target)

        assert refused.value.detail.startswith(target)
        assert said in refused.value.detail


@pytest.mark.accept
def test_the_compiler_itself_would_refuse_the_generation_that_is_refused_by_name() -> None:
    """So that the list of those that are too old says no more than is so."""
    code = (
        "from coatcheck.gpu.kernels import ahead, catalogue\n"
        "ahead.TARGETS, ahead.TOO_OLD = {**ahead.TARGETS, **ahead.TOO_OLD}, {}\n"
        "ahead.compile_for(next(one for one in catalogue.every_specimen() if 'write' in one.name), 'sm_80')"
    )
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=300, check=False)

    assert "GpuRefused" in done.stderr
    assert "not supported in this architecture" in done.stderr


def test_a_name_that_no_kernel_has_compiles_nothing_and_says_so() -> None:
    done = CliRunner().invoke(app, ["gpu", "compile", "--kernel", "no such kernel"])

    assert isinstance(done.exception, GpuRefused)
    assert "No kernel" in done.exception.detail


def test_a_process_that_interprets_kernels_says_that_it_cannot_compile_them() -> None:
    if "TRITON_INTERPRET" not in os.environ:
        pytest.skip("a GPU is here: this process does not interpret")
    with pytest.raises(GpuRefused, match="TRITON_INTERPRET"):
        compile_for(every_specimen()[0], "sm_90a")
