"""What every body is made of: the two kinds of bodies, and the texts that other libraries refuse."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainValidator, Strict, WithJsonSchema
from pydantic_core import PydanticCustomError, PydanticKnownError


def _any_str(value: object) -> str:
    if not isinstance(value, str):
        raise PydanticKnownError("string_type")
    return value


AnyText = Annotated[str, PlainValidator(_any_str), WithJsonSchema({"type": "string"})]
"""A string of any code points, lone surrogates and NUL included."""


def _of_length(min_length: int, max_length: int) -> AfterValidator:
    def check(value: str) -> str:
        if len(value) < min_length:
            raise PydanticKnownError("string_too_short", {"min_length": min_length})
        if len(value) > max_length:
            raise PydanticKnownError("string_too_long", {"max_length": max_length})
        return value

    return AfterValidator(check)


Query = Annotated[
    str,
    PlainValidator(_any_str),
    _of_length(1, 4_000),
    WithJsonSchema({"type": "string", "minLength": 1, "maxLength": 4_000}),
]
"""What is asked for, in any code points: it may be pasted from wherever the text in question was broken."""
Focus = Annotated[str, PlainValidator(_any_str), _of_length(0, 300), WithJsonSchema({"type": "string", "maxLength": 300})]
"""What the handoff's lines should be about, in any code points."""


Whole = Annotated[int, Strict()]
Number = Annotated[float, Strict()]
Flag = Annotated[bool, Strict()]
"""In a request ``true`` is no number and "no" is no flag: what was meant is asked for, not guessed."""


def _in_utc(value: datetime) -> datetime:
    try:
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    except OverflowError:
        raise PydanticCustomError("datetime_range", "the time is outside the years 1 to 9999 in UTC") from None


Moment = Annotated[datetime, AfterValidator(_in_utc)]
"""A time in a request, with any offset; without one it is taken for UTC, as logs write it."""

_NO_CONTROLS = r"^[^\x00-\x1f\x7f-\x9f]+$"
SessionName = Annotated[str, Field(min_length=1, max_length=200, pattern=_NO_CONTROLS)]
"""A caller's own name for its session. It is shown as it is, so that one which looks like a secret is refused."""
Label = Annotated[str, Field(min_length=1, max_length=100, pattern=_NO_CONTROLS)]
"""An operator's name for a key or a tenant."""
FormatName = Literal["openai-chat", "openai-responses", "anthropic"]
RoleName = Literal["system", "developer", "user", "assistant", "tool"]


def written_uuid(reference: str) -> UUID | None:
    """The id, where a reference to a session is one, in the form that is written; what merely can be read as a UUID is a name."""
    try:
        named = UUID(reference)
    except ValueError:
        return None
    return named if str(named) == reference.lower() else None


class Request(BaseModel):
    """What a caller sends: an unknown field is refused."""

    model_config = ConfigDict(extra="forbid")


class Response(BaseModel):
    """What the service answers: a client ignores what a newer service adds."""

    model_config = ConfigDict(extra="ignore")


class WarningOut(Response):
    """Something the caller should know that is no error."""

    code: str
    detail: str
