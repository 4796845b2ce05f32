"""The ``nvfp4`` benchmark: the planner's pools without torch, the formats' errors with it."""

from __future__ import annotations

import argparse
from importlib.util import find_spec

from benchmark import nvfp4
from coatcheck.gpu.nvfp4.planner import KvFormat


def test_the_pools_are_the_planner_s() -> None:
    found = nvfp4.pool(KvFormat.NVFP4, 5.84)

    assert (found["block_tokens"], found["page_bytes"], found["padding_bytes"]) == (5_568, 3_207_168, 0)


def test_the_report_says_what_it_did_not_measure() -> None:
    parser = argparse.ArgumentParser()
    nvfp4.add_arguments(parser)

    report = nvfp4.run(parser.parse_args(["--tokens", "64", "--queries", "2"]))

    here = find_spec("torch") is not None
    assert ("errors" in report.results) is here
    assert any("torch is not installed" in note for note in report.notes) is not here
