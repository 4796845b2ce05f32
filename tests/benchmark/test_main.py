"""The runner."""

from __future__ import annotations

import json
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from benchmark.__main__ import BENCHMARKS, main

QUICK = ("offload", "--passes", "2", "--tokens", "64", "--rounds", "1", "--forward-ms", "1")


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_name_leads_to_a_module_that_bears_it(name: str) -> None:
    module = import_module(f"benchmark.{name}")

    assert name == module.NAME
    assert callable(module.run)
    assert callable(module.add_arguments)


def test_recall_without_data_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        main(["recall"])

    assert raised.value.code == 2
    assert "--data" in capsys.readouterr().err


@pytest.mark.skipif(find_spec("matplotlib") is not None, reason="matplotlib is installed")
def test_a_picture_without_matplotlib_is_refused_before_anything_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["start", "--plot", str(tmp_path / "out.png")])

    assert code == 2
    assert "matplotlib" in capsys.readouterr().err


def test_json_goes_to_a_file_or_alone_to_standard_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([*QUICK, "--json", str(tmp_path / "out.json")])
    beside_a_file = capsys.readouterr()
    main([*QUICK, "--json"])
    alone = capsys.readouterr()

    assert "results" in json.loads((tmp_path / "out.json").read_text())
    assert json.loads(alone.out)["benchmark"] == "offload"
    assert "offload" in beside_a_file.out
    assert "offload" in alone.err
