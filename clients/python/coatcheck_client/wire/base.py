"""What every body is made of: the two kinds of bodies, and the texts that other libraries refuse."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, WithJsonSchema


def _any_str(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("a string is needed")
    return value


AnyText = Annotated[str, PlainValidator(_any_str), WithJsonSchema({"type": "string"})]
"""A string of any code points, lone surrogates and NUL included."""

SessionName = Annotated[str, Field(min_length=1, max_length=200)]
FormatName = Literal["openai-chat", "openai-responses", "anthropic"]
RoleName = Literal["system", "developer", "user", "assistant", "tool"]


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
