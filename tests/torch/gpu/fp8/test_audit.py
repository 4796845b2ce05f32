"""The audit of a quantised checkpoint: sound as it was written, and every planted difference named."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from coatcheck.cli.main import app
from coatcheck.domain.errors import GpuRefused
from coatcheck.gpu.fp8.audit import audit
from coatcheck.gpu.fp8.layout import RECORD_FILE, WEIGHTS_FILE
from coatcheck.gpu.fp8.quantise import quantise
from tests.torch.gpu.fp8.checkpoints import ATTENTION, rewritten, tensors_of

NORM = "model.encoder_model.encoder.final_layer_norm.weight"


def test_a_checkpoint_of_24_blocks_is_sound(deep: Path, deep_fp8: Path) -> None:
    done = audit(deep, deep_fp8)

    assert done.findings == ()
    assert done.quantised == 168
    assert done.kept == len(tensors_of(deep / "model.safetensors")) - 168 == 80
    assert done.quantised_bytes == (deep_fp8 / WEIGHTS_FILE).stat().st_size
    # Three bits of mantissa round numbers that are spread evenly by 2.6 % (root mean square).
    assert 0.02 < done.largest_error < 0.035


def _nudge(name: str) -> Callable[[dict[str, torch.Tensor]], None]:
    def change(tensors: dict[str, torch.Tensor]) -> None:
        tensors[name].view(torch.uint8).view(-1)[5] ^= 1

    return change


CHANGES: dict[str, tuple[Callable[[dict[str, torch.Tensor]], object], str]] = {
    "a kept tensor": (_nudge(NORM), f"{NORM}.{{,3}}is not byte-equal"),
    "a code": (_nudge(f"{ATTENTION}.q.weight"), f"{ATTENTION}.q.weight.*not what its source"),
    "a scale": (_nudge(f"{ATTENTION}.q.weight_scale"), f"{ATTENTION}.q.weight.*not what its source"),
    "a tensor missing": (lambda tensors: tensors.pop(NORM), f"{NORM}.*missing"),
    "a tensor more": (lambda tensors: tensors.update({"more": torch.zeros(2)}), "more.*not known"),
    "another type": (lambda tensors: tensors.update({NORM: tensors[NORM].float()}), f"{NORM}.*F32"),
}


@pytest.mark.parametrize("case", CHANGES)
def test_what_was_changed_is_named(shallow: Path, tmp_path: Path, case: str) -> None:
    from safetensors.torch import save_file

    change, said = CHANGES[case]
    quantise(shallow, tmp_path / "fp8")
    tensors = tensors_of(tmp_path / "fp8" / WEIGHTS_FILE)
    change(tensors)
    save_file(tensors, tmp_path / "fp8" / WEIGHTS_FILE, {"format": "pt"})

    findings = " ".join(audit(shallow, tmp_path / "fp8").findings)

    assert f"{WEIGHTS_FILE!r} is not what was written" in findings
    assert re.search(said, findings)


def test_a_source_that_is_another_one_by_now_is_named(shallow: Path, tmp_path: Path) -> None:
    quantise(shallow, tmp_path / "fp8")
    rewritten(shallow, _nudge(NORM))

    findings = audit(shallow, tmp_path / "fp8").findings

    assert any("model.safetensors" in one and "another one than" in one for one in findings)
    assert any(NORM in one and "byte-equal" in one for one in findings)


def test_a_record_that_says_something_else_of_a_tensor_is_named(shallow: Path, tmp_path: Path) -> None:
    quantise(shallow, tmp_path / "fp8")
    path = tmp_path / "fp8" / RECORD_FILE
    written = json.loads(path.read_text())
    written["tensors"][NORM]["sha256"] = "0" * 64
    path.write_text(json.dumps(written))

    assert audit(shallow, tmp_path / "fp8").findings == (f"The tensor {NORM!r} has another hash in the record.",)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 2}', '{"format": 1, "upstream": null}', "[" * 100_000])
def test_what_is_no_record_is_refused(shallow: Path, tmp_path: Path, text: str) -> None:
    quantise(shallow, tmp_path / "fp8")
    (tmp_path / "fp8" / RECORD_FILE).write_text(text)

    with pytest.raises(GpuRefused, match=r"record|format"):
        audit(shallow, tmp_path / "fp8")


def test_the_commands_quantise_and_audit_and_a_finding_is_the_exit_code_1(shallow: Path, tmp_path: Path) -> None:
    target = str(tmp_path / "fp8")

    made = CliRunner().invoke(app, ["gpu", "quantize", str(shallow), target, "--json"])
    sound = CliRunner().invoke(app, ["gpu", "audit", str(shallow), target, "--json"])
    (tmp_path / "fp8" / "config.json").write_text("{}")
    unsound = CliRunner().invoke(app, ["gpu", "audit", str(shallow), target])

    assert (made.exit_code, json.loads(made.stdout)["quantised"]) == (0, 14)
    assert (sound.exit_code, json.loads(sound.stdout)["sound"]) == (0, True)
    assert unsound.exit_code == 1
    assert "'config.json' is not what was written" in unsound.stdout
