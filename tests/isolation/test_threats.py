"""Every threat of docs/threats.md has a test that bears its id, or says why it does not apply."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
IDS = [f"T{number}" for number in range(1, 40)]
_ROW = re.compile(r"\| (T\d+) \| (.+?) \| (.+?) \|")
_NAME = re.compile(r"test_T(\d\d)_")


def listed() -> dict[str, str]:
    """What the table says of each id: where it is tested, or why not."""
    rows = [_ROW.fullmatch(line) for line in (ROOT / "docs" / "threats.md").read_text("utf-8").splitlines()]
    found = [(row[1], row[3]) for row in rows if row]
    assert len(found) == len({name for name, _ in found})
    return dict(found)


def with_a_test() -> dict[str, set[str]]:
    """The files that hold a test of each id."""
    found = defaultdict(set)
    for path in (ROOT / "tests").rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (named := _NAME.match(node.name)):
                found[f"T{int(named[1])}"].add(path.relative_to(ROOT / "tests").as_posix())
    return dict(found)


def test_every_threat_is_listed_and_has_its_test_or_its_reason() -> None:
    said, have = listed(), with_a_test()

    assert list(said) == IDS
    for threat, where in said.items():
        if where.startswith("Does not apply: "):
            assert len(where) > 60, f"{threat}: say why"
            assert threat not in have, f"{threat} has a test: name its file"
        else:
            assert set(re.findall(r"`([\w/]+\.py)`", where)) == have.get(threat, set()), (
                f"{threat}: docs/threats.md names other files than those that hold test_T{int(threat[1:]):02}_..."
            )
    assert set(have) <= set(IDS)
