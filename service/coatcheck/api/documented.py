"""What the OpenAPI document says beside FastAPI's own knowledge: bodies that we read ourselves, and the problems of a route."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from coatcheck.api import headers
from coatcheck.domain.errors import (
    CoatcheckError,
    Draining,
    Forbidden,
    InvalidRequest,
    IssuerUnavailable,
    MalformedJson,
    Overloaded,
    RateLimited,
    RequestTimeout,
    StoreUnavailable,
    TooLarge,
    Unauthenticated,
)

Responses = dict[int | str, dict[str, Any]]
Extra = dict[str, Any]

PROBLEM_CONTENT = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
_EVERYWHERE: tuple[type[CoatcheckError], ...] = (
    MalformedJson,
    Unauthenticated,
    Forbidden,
    RequestTimeout,
    TooLarge,
    InvalidRequest,
    RateLimited,
    CoatcheckError,
    Overloaded,
    Draining,
    StoreUnavailable,
    IssuerUnavailable,
)


def problems(*errors: type[CoatcheckError]) -> Responses:
    """The problem responses of a route: what every route can answer, and these."""
    by_status: dict[int, list[type[CoatcheckError]]] = {}
    for error in dict.fromkeys((*_EVERYWHERE, *errors)):
        by_status.setdefault(error.status, []).append(error)
    return {
        status: {
            "description": " ".join(f"`{one.slug}`: {one().title}." for one in group),
            "content": PROBLEM_CONTENT,
            **({"headers": _RETRY_AFTER} if any(one.retryable for one in group) else {}),
        }
        for status, group in sorted(by_status.items())
    }


def takes(model: type[BaseModel], *, required: bool = True, with_key: bool = False) -> Extra:
    """The documentation of a JSON body that ``body_of(model)`` reads."""
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    extra: Extra = {"requestBody": {"required": required, "content": {"application/json": {"schema": schema}}}}
    return {**extra, "parameters": [IDEMPOTENCY_KEY]} if with_key else extra


def takes_lines() -> Extra:
    """The documentation of a body that is a stream of JSON lines."""
    schema = {"type": "string", "format": "binary"}
    return {"requestBody": {"required": True, "content": {"application/x-ndjson": {"schema": schema}}}}


def told(others: Responses) -> Responses:
    """The responses of a probe: an object that may change with every release, in each of them."""
    content = {"application/json": {"schema": {"type": "object"}}}
    return {status: {**response, "content": content} for status, response in ({200: {"description": "Told."}} | others).items()}


PUBLIC: Extra = {"security": []}
"""A route that asks for no credential."""
VERBOSE: Extra = {
    **PUBLIC,
    "parameters": [{"name": "verbose", "in": "query", "required": False, "allowEmptyValue": True, "schema": {"type": "string"}}],
}

_RETRY_AFTER = {
    "Retry-After": {"description": "Seconds after which the same request helps, where it does.", "schema": {"type": "integer"}}
}
IDEMPOTENCY_KEY = {
    "name": headers.IDEMPOTENCY_KEY.title(),
    "in": "header",
    "required": False,
    "description": "A structured field's string or a bare value, 1 to 255 visible ASCII characters. Without one, a keyed "
    "digest of the request is the key.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 512},
}
"""The longest quoted form of 255 characters, each escaped, is 512 long."""
DEADLINE = {
    "name": headers.DEADLINE.title(),
    "in": "header",
    "required": False,
    "description": "Seconds this request may take. More than 0; the service's default and maximum are settings.",
    "schema": {"type": "number", "exclusiveMinimum": 0, "default": 30},
}
