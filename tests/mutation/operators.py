"""mutmut with operators of our own: it also takes a check away, drops a condition or a narrowing, and looks into properties.

What widens a scope is most of all what is missing. mutmut of itself turns conditions round, which any right answer shows; it never
leaves one out, and it passes decorated functions by. Run as ``python -m tests.mutation.operators run`` where mutmut would be.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import libcst as cst
from libcst import matchers as m

_PROPERTY = re.compile(r"^( +)@property\n +def (\w+)\(self\)", re.MULTILINE)
TRUE, FALSE = cst.Name("True"), cst.Name("False")


def without_properties(source: str) -> str:
    """The same module, each property's function without its decorator: mutmut takes none that is decorated."""
    return _PROPERTY.sub(r"\1\2 = property(lambda self: self._value_of_\2())\n\n\1def _value_of_\2(self)", source)


def left_alone(source: str, functions: Iterable[str]) -> str:
    """The same module, in which mutmut passes these functions by."""
    for name in functions:
        signature = rf"^( *(?:async )?def {name}\([\s\S]*?\)(?: -> .*)?:)$"
        source = re.sub(signature, r"\1  # pragma: no mutate block", source, flags=re.MULTILINE)
    return source


def without_the_call(node: cst.Expr) -> Iterable[cst.BaseSmallStatement]:
    """A statement that only calls (``require(...)``, ``await sessions.lock(...)``) is left out."""
    if m.matches(node.value, m.Call() | m.Await(expression=m.Call())):
        yield cst.Pass()


def without_the_question(node: cst.If) -> Iterable[cst.If]:
    """An ``if`` that never holds, and one that always does."""
    yield node.with_changes(test=FALSE)
    yield node.with_changes(test=TRUE)


def without_one_side(node: cst.BooleanOperation | cst.BinaryOperation) -> Iterable[cst.BaseExpression]:
    """``a and b``, ``a or b``, ``a & b``, ``a | b``, ``a - b`` of one side alone."""
    if isinstance(node, cst.BooleanOperation) or isinstance(node.operator, cst.BitAnd | cst.BitOr | cst.Subtract):
        for side in (node.left, node.right):
            yield side.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def without_the_filter(node: cst.CompFor) -> Iterable[cst.CompFor]:
    """``for x in y if z`` of every x."""
    for place in range(len(node.ifs)):
        yield node.with_changes(ifs=[*node.ifs[:place], *node.ifs[place + 1 :]])


def add_operators() -> None:
    """To the list that mutmut goes through for every node."""
    from mutmut.mutation import mutators

    operators = mutators.mutation_operators
    assert isinstance(operators, list)
    operators += [
        (cst.Expr, without_the_call),
        (cst.If, without_the_question),
        (cst.BooleanOperation, without_one_side),
        (cst.BinaryOperation, without_one_side),
        (cst.CompFor, without_the_filter),
    ]


if __name__ == "__main__":
    from mutmut.__main__ import cli

    add_operators()
    cli()
