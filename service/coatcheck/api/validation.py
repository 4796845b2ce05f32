"""From pydantic's errors to ours: a JSON pointer and a sentence of our own each, never a value or a name that was sent.

A pointer is into the body; for a parameter it begins with /path, /query or /header.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from coatcheck.domain.canonical import pointer
from coatcheck.domain.errors import FieldError, InvalidRequest

MAX_ERRORS = 20

_SENTENCES = {
    "missing": "is required",
    "extra_forbidden": "holds a field that the contract does not know",
    "string_unicode": "must be text without lone surrogates",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "string_type": "must be a string",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "timezone_naive": "must be a time with its offset",
}
_FAMILIES = {
    "uuid": "must be a UUID",
    "datetime": "must be a time as RFC 3339 writes it",
    "timezone": "must be a time with its offset",
    "int": "must be a whole number",
    "float": "must be a number",
}
_BOUNDS = {
    "greater_than_equal": ("must be at least {}", "ge"),
    "greater_than": ("must be more than {}", "gt"),
    "less_than_equal": ("must be at most {}", "le"),
    "less_than": ("must be less than {}", "lt"),
    "string_too_short": ("must have at least {} characters", "min_length"),
    "string_too_long": ("must have at most {} characters", "max_length"),
    "too_short": ("must have at least {} items", "min_length"),
    "too_long": ("must have at most {} items", "max_length"),
    "string_pattern_mismatch": ("must match {}", "pattern"),
    "literal_error": ("must be one of {}", "expected"),
    "enum": ("must be one of {}", "expected"),
}


def invalid_body(model: type[BaseModel], errors: Sequence[Mapping[str, Any]]) -> InvalidRequest:
    """The error for a body that does not fit its wire model. A field that is made up has those that exist listed."""
    return _invalid([_field_error(error, tuple(error["loc"]), model) for error in errors[:MAX_ERRORS]])


def invalid_parameters(errors: Sequence[Mapping[str, Any]]) -> InvalidRequest:
    """The error for path, query and header parameters, whose place FastAPI puts first."""
    return _invalid([_field_error(error, tuple(error["loc"])) for error in errors[:MAX_ERRORS]])


def _invalid(errors: list[FieldError]) -> InvalidRequest:
    first = errors[0]
    return InvalidRequest(f"{first.pointer or 'The body'} {first.detail}.", errors=errors)


def _field_error(error: Mapping[str, Any], place: tuple[str | int, ...], model: type[BaseModel] | None = None) -> FieldError:
    kind = str(error["type"])
    sentence = _sentence(kind, error.get("ctx") or {})
    if kind == "extra_forbidden":  # the last step is a name that the caller made up
        place = place[:-1]
        sentence += _known_fields(model, place)
    return FieldError(pointer(place), sentence)


def _known_fields(model: type[BaseModel] | None, place: tuple[str | int, ...]) -> str:
    """The names of the model at that place; nothing where it is not a plain field of a field."""
    for step in place:
        field = model.model_fields.get(str(step)) if model is not None else None
        inner = field.annotation if field is not None else None
        model = inner if isinstance(inner, type) and issubclass(inner, BaseModel) else None
    return f"; it knows {', '.join(field.alias or name for name, field in model.model_fields.items())}" if model is not None else ""


def _sentence(kind: str, bounds: Mapping[str, Any]) -> str:
    if kind in _SENTENCES:
        return _SENTENCES[kind]
    if kind in _BOUNDS:
        sentence, bound = _BOUNDS[kind]
        return sentence.format(bounds.get(bound))
    return _FAMILIES.get(kind.partition("_")[0], "does not fit the contract")
