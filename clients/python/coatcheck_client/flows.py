"""The core of both clients: an operation is a *flow*, a generator that asks for requests and pauses and returns a result.

The fronts in ``client.py`` only carry out the steps, one blocking, one awaiting; what is sent, when it is sent again and how
an answer is read is written once, here and in the modules of operations.
"""

from __future__ import annotations

import email.utils
import json
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn, Protocol, TypeVar
from uuid import UUID

import httpx
from pydantic import BaseModel, ValidationError

from coatcheck_client.errors import ClientError, ServiceUnreachable, UnexpectedAnswer, problem_error
from coatcheck_client.wire import Problem

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Send:
    """A step: send this and give back the response; its body is read already unless ``stream`` is set and it succeeded."""

    method: str
    path: str
    body: bytes | None = None
    params: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    upload: Path | None = None
    """A file that is streamed as the body."""
    stream: bool = False
    read_timeout_s: float | None = None
    is_repeated: bool = True
    """False where whoever asks has something better to do than to wait."""


@dataclass(frozen=True, slots=True)
class Pause:
    """A step: wait."""

    seconds: float


Step = Send | Pause
Flow = Generator[Step, httpx.Response | None, T]


class Page(Protocol):
    """A page of a list."""

    @property
    def next_page_token(self) -> str | None: ...


P = TypeVar("P", bound=Page)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often, and for how long in all, a request is sent again when its problem says that this helps.

    A pause is what the service names (Retry-After), else 1, 2, 4, 8 and 16 s by default. ``total_wait_s`` bounds the pauses of one
    request together; the attempts' own time, such as ``deadline_s`` for each, is not counted in it.
    """

    attempts: int = 6
    total_wait_s: float = 90.0
    default_wait_s: float = 1.0
    """Where the service names no time; doubled each time."""
    told: Callable[[Problem, float], None] | None = None
    """Told of each pause before it begins: why, and for how many seconds."""


def json_body(value: object) -> bytes:
    """ASCII-escaped JSON, so that lone surrogates and NUL arrive. Raises ClientError on what is not JSON."""
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":"), default=_plain).encode("ascii")
    except (TypeError, ValueError, RecursionError) as error:
        raise ClientError(f"the request cannot be written as JSON: {error}") from error


def without_nulls(**values: object) -> dict[str, object]:
    """The given fields, less those that are null, whose default the service knows."""
    return {name: value for name, value in values.items() if value is not None}


def request(step: Send) -> Flow[httpx.Response]:
    """One request and its successful response. Raises ProblemError, UnexpectedAnswer."""
    response = yield step
    if response is None:
        raise RuntimeError("a step that sends was answered with no response")
    if not response.is_success:
        _raise_problem(response)
    return response


def read(step: Send, model: type[M]) -> Flow[M]:
    """One request and its body as a wire model."""
    response = yield from request(step)
    return as_model(response, model)


def every_page(page_at: Callable[[str | None], Flow[P]], items_of: Callable[[P], list[T]]) -> Flow[list[T]]:
    """All items of a list, page after page."""
    found: list[T] = []
    token: str | None = None
    while True:
        page = yield from page_at(token)
        found += items_of(page)
        token = page.next_page_token
        if token is None:
            return found


def at_page(token: str | None) -> dict[str, str]:
    """The parameter that asks for a page; none asks for the first."""
    return {"page_token": token} if token else {}


def as_model(response: httpx.Response, model: type[M]) -> M:
    """A response's body as a wire model; unknown fields are left out. Raises UnexpectedAnswer."""
    try:
        return model.model_validate(_json_of(response))
    except ValidationError as error:
        places = ", ".join(sorted({".".join(map(str, e["loc"])) or "body" for e in error.errors()})[:5])
        raise UnexpectedAnswer(f"{response.request.method} {response.request.url.path}: unexpected {places}") from error


def with_retries(flow: Flow[T], policy: RetryPolicy) -> Flow[T]:
    """The flow, each of whose requests is sent again while its problem says that the same request helps.

    A service that does not answer is the flow's to know of: one that has no use for it lets the error pass.
    """
    try:
        step = next(flow)
        while True:
            try:
                response = (yield from _attempts(step, policy)) if isinstance(step, Send) and step.is_repeated else (yield step)
            except ServiceUnreachable as error:
                step = flow.throw(error)
            else:
                step = flow.send(response)
    except StopIteration as stop:
        result: T = stop.value
        return result


def _attempts(step: Send, policy: RetryPolicy) -> Flow[httpx.Response]:
    waited_s = 0.0
    wait_s = policy.default_wait_s
    for attempt in range(1, policy.attempts + 1):
        response = yield step
        if response is None:
            raise RuntimeError("a step that sends was answered with no response")
        problem = None if response.is_success else _problem_of(response)
        if problem is None or not problem.retryable or attempt == policy.attempts:
            return response
        pause_s = retry_after_s(response) or wait_s
        if waited_s + pause_s > policy.total_wait_s:
            return response
        if policy.told is not None:
            policy.told(problem, pause_s)
        yield Pause(pause_s)
        waited_s += pause_s
        wait_s *= 2
    raise ValueError("a retry policy allows at least one attempt")


def retry_after_s(response: httpx.Response) -> float | None:
    """The seconds that ``Retry-After`` names, as a number or as a date; null where it is missing or unreadable."""
    header = response.headers.get("retry-after", "").strip()
    if not header:
        return None
    if header.isdigit():
        return float(header)
    try:
        at = email.utils.parsedate_to_datetime(header)
    except ValueError:
        return None
    return max(0.0, (at - datetime.now(UTC)).total_seconds())


def _raise_problem(response: httpx.Response) -> NoReturn:
    problem = _problem_of(response)
    if problem is None:
        raise UnexpectedAnswer(
            f"{response.request.method} {response.request.url.path}: status {response.status_code} without a problem document"
        )
    raise problem_error(problem, retry_after_s(response))


def _problem_of(response: httpx.Response) -> Problem | None:
    if not response.headers.get("content-type", "").startswith("application/problem+json"):
        return None
    try:
        return Problem.model_validate(_json_of(response))
    except (ValidationError, UnexpectedAnswer):
        return None


def _json_of(response: httpx.Response) -> Any:
    try:
        return json.loads(response.content)
    except (ValueError, RecursionError) as error:
        raise UnexpectedAnswer(f"{response.request.method} {response.request.url.path}: the answer is no JSON") from error


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    raise TypeError(f"{type(value).__name__} is not JSON")
