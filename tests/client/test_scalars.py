"""Numbers and flags of requests are what JSON calls so: nothing is read into another kind."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

import coatcheck_client.wire  # noqa: F401  (every model of a request is known once this is read)
from coatcheck_client.wire.base import Request

_OTHERS: dict[type, tuple[object, ...]] = {bool: ("no", "false", 0, 1), int: (True, "5", 5.5), float: (True, "5")}


def kinds(annotation: object) -> Iterator[type]:
    """The scalars that an annotation allows."""
    if isinstance(annotation, type) and annotation in _OTHERS:
        yield annotation
    for inner in typing.get_args(annotation):
        yield from kinds(inner)


def scalars() -> Iterator[tuple[str, Any, type]]:
    pending: list[type[Request]] = [Request]
    while pending:
        model = pending.pop()
        pending += model.__subclasses__()
        hints = typing.get_type_hints(model, include_extras=True)
        yield from ((f"{model.__name__}.{name}", hints[name], kind) for name in model.model_fields for kind in kinds(hints[name]))


def test_every_kind_of_scalar_is_looked_at() -> None:
    assert {kind for _, _, kind in scalars()} == set(_OTHERS)
    assert len(list(scalars())) >= 15


@pytest.mark.parametrize(("annotation", "kind"), [pytest.param(one, kind, id=name) for name, one, kind in scalars()])
def test_a_number_or_a_flag_is_read_from_nothing_else(annotation: Any, kind: type) -> None:
    adapter = TypeAdapter[object](annotation)

    for other in _OTHERS[kind]:
        with pytest.raises(ValidationError):
            adapter.validate_python(other)
