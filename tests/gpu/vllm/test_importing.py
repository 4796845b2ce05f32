"""The finder that waits for a module's import, beside what else stands on the path of finders."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

from coatcheck.gpu.vllm.importing import AfterImport


class OfLongAgo:
    """What finders were before there were specs."""

    def find_module(self, name: str, path: object = None) -> None:
        """Finds nothing."""


@pytest.mark.filterwarnings("ignore:.*find_spec:ImportWarning")  # of Python 3.11, which says so before it passes over it
def test_a_finder_of_long_ago_that_finds_no_specs_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "waited_for.py").write_text("VALUE = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    seen: list[ModuleType] = []
    monkeypatch.setattr(sys, "meta_path", [OfLongAgo(), AfterImport({"waited_for"}, seen.append), *sys.meta_path])

    module = importlib.import_module("waited_for")

    sys.modules.pop("waited_for")
    assert seen == [module]
