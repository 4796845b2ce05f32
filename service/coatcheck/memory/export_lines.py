"""The lines of an export: a session, its runs, and an end that says how many there were and what they hashed to.

Version 1 had no end: nothing shows whether such an export is whole.
"""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from coatcheck.domain.canonical import parse
from coatcheck.domain.errors import InvalidRequest, MalformedJson
from coatcheck_client.wire import Moment, SessionName

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
VERSION: Literal[2] = 2


class SessionLine(BaseModel):
    """The first line of a session's export."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["session"] = "session"
    version: Literal[1, 2] = VERSION
    session_id: UUID
    name: SessionName
    visibility: str
    created_at: Moment


class RunLine(BaseModel):
    """One run of the session that the last session line named."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["run"] = "run"
    manifest_id: UUID
    parent_manifest_id: UUID | None
    format: Literal["openai-chat", "openai-responses", "anthropic"]
    created_at: Moment
    max_handoff_chars: int = Field(ge=600, le=4_000)
    times: list[Moment | None]
    system: Any = None
    messages: list[Any]
    window_sha256: Sha256
    handoff_sha256: Sha256
    segment_sha256s: list[Sha256]


class EndLine(BaseModel):
    """The last line of an export that is whole: how many runs came, and the SHA-256 over all lines before it, ends included."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["end"] = "end"
    runs: int = Field(ge=0)
    sha256: Sha256


class CutOffLine(BaseModel):
    """The last line of an export that is not whole. An import refuses it."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["error"] = "error"
    problem: str
    detail: str


class Lines:
    """One session's lines as they pass, out or in: what the end has to say of them."""

    def __init__(self) -> None:
        self._sha256 = hashlib.sha256()
        self._runs = 0

    def add(self, raw: bytes, *, is_run: bool) -> None:
        """``raw`` without its end."""
        self._sha256.update(raw + b"\n")
        self._runs += is_run

    def end(self) -> EndLine:
        return EndLine(runs=self._runs, sha256=self._sha256.hexdigest())


_KINDS: dict[str, type[SessionLine | RunLine | EndLine]] = {"session": SessionLine, "run": RunLine, "end": EndLine}


def read(raw: bytes, number: int) -> SessionLine | RunLine | EndLine:
    """Raises MalformedJson; InvalidRequest for what is no line of an export, and for the one that says that it was cut off."""
    try:
        value = parse(raw)
    except MalformedJson as error:
        raise MalformedJson(f"Line {number}: {error.detail}") from error
    kind = value.get("type") if isinstance(value, dict) else None
    if kind == "error":
        raise InvalidRequest(f"Line {number} says that the export was cut off: it is not whole.")
    try:
        if isinstance(kind, str) and kind in _KINDS:
            return _KINDS[kind].model_validate(value)
    except ValidationError as error:
        raise InvalidRequest(f"Line {number} is no {kind} of an export of version {VERSION}, nor of an earlier one.") from error
    raise InvalidRequest(f"Line {number} is neither a session, nor a run, nor an end of version {VERSION}.")


def write(model: SessionLine | RunLine | EndLine | CutOffLine) -> bytes:
    """Without its end."""
    plain = model.model_dump(mode="json", exclude={"system", "messages"})
    if isinstance(model, RunLine):
        plain |= {"system": model.system, "messages": model.messages}
    return json.dumps(plain, separators=(",", ":")).encode()
