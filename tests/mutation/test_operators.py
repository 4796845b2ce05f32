"""The operators of our own make what they say: one that stopped would let everything through in silence."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import libcst as cst
import pytest
from mutmut.mutation.file_mutation import mutate_file_contents

from tests.mutation import operators

Operator = Callable[[Any], Iterable[cst.CSTNode]]


def made(operator: Operator, node: cst.CSTNode) -> list[str]:
    return [cst.Module(body=[]).code_for_node(mutant).strip() for mutant in operator(node)]


@pytest.mark.parametrize(
    ("statement", "mutants"),
    [("require(x)", ["pass"]), ("await lock(x)", ["pass"]), ('"words"', []), ("x", [])],
)
def test_a_call_alone_is_left_out(statement: str, mutants: list[str]) -> None:
    line = cst.ensure_type(cst.parse_statement(statement), cst.SimpleStatementLine)

    assert made(operators.without_the_call, line.body[0]) == mutants


def test_a_question_is_answered_either_way() -> None:
    question = cst.parse_statement("if x not in y:\n    raise NotFound\n")

    assert made(operators.without_the_question, question) == [
        "if False:\n    raise NotFound",
        "if True:\n    raise NotFound",
    ]


@pytest.mark.parametrize(
    ("expression", "mutants"),
    [
        ("a and b", ["(a)", "(b)"]),
        ("a or b", ["(a)", "(b)"]),
        ("a & b", ["(a)", "(b)"]),
        ("a - b", ["(a)", "(b)"]),
        ("a + b", []),
        ("a * b", []),
    ],
)
def test_a_condition_or_a_narrowing_loses_a_side(expression: str, mutants: list[str]) -> None:
    assert made(operators.without_one_side, cst.parse_expression(expression)) == mutants


def test_a_choice_among_many_takes_them_all() -> None:
    choice = cst.ensure_type(cst.parse_expression("[x for x in y if x.mine if x.live]"), cst.ListComp)

    assert made(operators.without_the_filter, choice.for_in) == ["for x in y if x.live", "for x in y if x.mine"]


def test_a_property_is_still_one_and_is_mutated_as_a_method_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()  # what mutmut looks for wherever it runs
    monkeypatch.chdir(tmp_path)
    source = "class A:\n    @property\n    def scope(self) -> int:\n        check(self)\n        return 7\n"

    changed = operators.without_properties(source)
    space: dict[str, Any] = {"check": lambda _: None}
    exec(changed, space)

    assert space["A"]().scope == 7
    assert mutate_file_contents("a.py", source).mutant_names == []
    assert len(mutate_file_contents("a.py", changed).mutant_names) >= 2


def test_a_function_that_is_left_alone_has_no_mutant_and_its_neighbours_have(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "src").mkdir()
    monkeypatch.chdir(tmp_path)
    paused = "class A:\n    async def pause(\n        self,\n    ) -> int:\n        return 1\n\n"
    source = f"{paused}    def pauses(self) -> int:\n        return 2\n"

    names = mutate_file_contents("a.py", operators.left_alone(source, ["pause"])).mutant_names

    assert names
    assert all("pauses" in name for name in names), names
