"""Every change of the modules that make scopes and filters is noticed by their own tests, but for the words of a message.

mutmut looks for ``src``: it is run in a copy that is laid out so, with the tests that hold these modules.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = ("domain/scopes", "identity/context", "identity/scopes", "index/filters")
TESTS = (
    "tests/identity/test_context.py",
    "tests/identity/test_scopes.py",
    "tests/index/test_contract_search.py",
    "tests/index/test_contract_writes.py",
    "tests/index/test_filters.py",
)
SETTINGS = f"""
[tool.mutmut]
source_paths = ["src"]
only_mutate = {[f"src/coatcheck/{module}.py" for module in MODULES]}
also_copy = ["migrations"]
pytest_add_cli_args_test_selection = {list(TESTS)}
pytest_add_cli_args = ["-p", "no:schemathesis", "-q", "-x"]

[tool.pytest.ini_options]
testpaths = ["tests"]
pythonpath = ["."]
asyncio_mode = "auto"
asyncio_default_fixture_loop_scope = "function"
addopts = "--import-mode=importlib -m 'not accept'"
markers = ["accept: a longer proof"]
"""
_SURVIVED = re.compile(r"^\s*(\S+): (survived|suspicious|timeout|no tests)$", re.MULTILINE)
_WORDS = re.compile(r"""raise \w+\((?:f?"[^"]*"|None)\)|f?"[^"]*"|None""")


@pytest.mark.accept
def test_T10_every_change_of_a_scope_or_a_filter_is_noticed(tmp_path: Path) -> None:
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "service" / "coatcheck", tmp_path / "src" / "coatcheck", ignore=ignored)
    for folder in ("tests", "migrations"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=ignored)
    (tmp_path / "pyproject.toml").write_text(SETTINGS, "utf-8")

    ran = _mutmut(tmp_path, "run", "--max-children", "2")
    results = _mutmut(tmp_path, "results")

    survived = {name: _change(_mutmut(tmp_path, "show", name)) for name, _ in _SURVIVED.findall(results)}
    print(ran.splitlines()[-1][-120:], survived)
    assert "Running mutation testing" in ran
    assert {name: change for name, change in survived.items() if not _is_of_words_alone(*change)} == {}


def _mutmut(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "mutmut", *arguments], cwd=folder, capture_output=True, encoding="utf-8", check=True, timeout=3_600
    )
    return done.stdout


def _change(shown: str) -> tuple[str, str]:
    """The lines that a mutant takes away and adds."""
    lines = [line for line in shown.splitlines() if not line.startswith(("---", "+++"))]
    gone = "\n".join(line[1:] for line in lines if line.startswith("-"))
    return gone, "\n".join(line[1:] for line in lines if line.startswith("+"))


def _is_of_words_alone(before: str, after: str) -> bool:
    """Whether an error says something else and nothing more."""
    return "raise " in before and _WORDS.sub("", before) == _WORDS.sub("", after)


def test_only_the_words_of_an_error_may_change() -> None:
    assert _is_of_words_alone('raise Forbidden("No.")', "raise Forbidden(None)")
    assert _is_of_words_alone('raise Forbidden(f"No {x}.")', 'raise Forbidden("XXNoXX")')
    assert not _is_of_words_alone("if scope.tenant_id == NIL:", "if scope.tenant_id != NIL:")
    assert not _is_of_words_alone('return Equals("tenant_id", x)', 'return Equals("XXtenant_idXX", x)')
