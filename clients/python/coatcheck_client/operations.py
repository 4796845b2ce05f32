"""What a client asks of memory: compaction, recall, reading, sessions. Each function is a flow; ``client.py`` runs them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote
from uuid import UUID

import httpx

from coatcheck_client.errors import CannotBeSent, Erased
from coatcheck_client.exporting import require_whole
from coatcheck_client.flows import Flow, Send, every_page, json_body, read, request, without_nulls
from coatcheck_client.wire import (
    CompactionResponse,
    EntryOut,
    EntryPage,
    ImportResponse,
    ManifestOut,
    RecallResponse,
    RoleName,
    SegmentOut,
    SessionOut,
    SessionPage,
    WindowOut,
    written_uuid,
)

JSON = {"Content-Type": "application/json"}
NDJSON = {"Content-Type": "application/x-ndjson"}
DEFAULT_DEADLINE_S = 30.0
DEADLINE_SLACK_S = 30.0
"""How much longer than the deadline the client waits for the answer to arrive."""

MCP_TIMEOUT_S = 600.0


def compact(
    messages: Sequence[Any],
    *,
    session: str,
    format: Literal["openai-chat", "openai-responses", "anthropic", "auto"] = "auto",
    system: Any = None,
    times: Sequence[datetime | None] | None = None,
    visibility: str | None = None,
    parent_manifest_id: UUID | str | None = None,
    max_handoff_chars: int | None = None,
    focus: str | None = None,
    idempotency_key: str | None = None,
    deadline_s: float = DEFAULT_DEADLINE_S,
) -> Flow[CompactionResponse]:
    """Hands a window in and returns its handoff. Remove the window only after this has returned.

    Without an ``idempotency_key`` the same window, sent again, gives the same handoff. ``deadline_s`` is for each attempt: the
    pauses between attempts come on top (``RetryPolicy``), by default at most 90 s in all.
    """
    body = without_nulls(
        session=session,
        window=without_nulls(format=format, messages=list(messages), system=system, times=None if times is None else list(times)),
        visibility=visibility,
        parent_manifest_id=parent_manifest_id,
        max_handoff_chars=max_handoff_chars,
        focus=focus,
    )
    headers = JSON | {"Coatcheck-Deadline": str(math.ceil(deadline_s))}
    if idempotency_key is not None:
        headers["Idempotency-Key"] = f'"{idempotency_key}"'
    step = Send("POST", "/v1/compactions", json_body(body), headers=headers, read_timeout_s=deadline_s + DEADLINE_SLACK_S)
    return (yield from read(step, CompactionResponse))


def recall(
    query: str,
    *,
    session: str | UUID | None = None,
    top_k: int = 5,
    max_chars: int | None = None,
    representation: Literal["exact", "reduced"] | None = None,
    roles: Sequence[RoleName] | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    rerank: Literal["auto", "on", "off"] | None = None,
) -> Flow[RecallResponse]:
    """Asks for exact texts by meaning. ``session`` is a name or an id; null searches all that the caller may read."""
    body = without_nulls(
        query=query,
        session=session,
        top_k=top_k,
        max_chars=max_chars,
        representation=representation,
        roles=None if roles is None else list(roles),
        since=since,
        until=until,
        rerank=rerank,
    )
    return (yield from read(Send("POST", "/v1/recall", json_body(body), headers=JSON), RecallResponse))


def manifest(manifest_id: UUID | str) -> Flow[ManifestOut]:
    """One run: its counts, its handoff, its parent."""
    return (yield from read(Send("GET", f"/v1/manifests/{_step(manifest_id)}"), ManifestOut))


def entry_page(
    manifest_id: UUID | str, *, page_size: int | None = None, page_token: str | None = None, text: bool = False
) -> Flow[EntryPage]:
    """One page of a window's entries, in their order."""
    params = _params(page_size=page_size, page_token=page_token, text="true" if text else None)
    return (yield from read(Send("GET", f"/v1/manifests/{_step(manifest_id)}/entries", params=params), EntryPage))


def entries(manifest_id: UUID | str, *, text: bool = False) -> Flow[list[EntryOut]]:
    """All entries of a window, page after page."""
    return (yield from every_page(lambda token: entry_page(manifest_id, page_token=token, text=text), lambda page: page.entries))


def window(manifest_id: UUID | str) -> Flow[WindowOut]:
    """The redacted window, rebuilt in the format it came in."""
    return (yield from read(Send("GET", f"/v1/manifests/{_step(manifest_id)}/window"), WindowOut))


def erase_manifest(manifest_id: UUID | str) -> Flow[None]:
    """Erases one run and all that only it needs. Erasing what is erased already is no error."""
    yield from _erase(f"/v1/manifests/{_step(manifest_id)}")


def segment(sha256: str) -> Flow[SegmentOut]:
    """One exact text by its hash, or by 12 or more leading digits of it."""
    return (yield from read(Send("GET", f"/v1/segments/{_step(sha256)}"), SegmentOut))


def session_page(*, page_size: int | None = None, page_token: str | None = None, name: str | None = None) -> Flow[SessionPage]:
    """One page of the sessions that the caller may read; with a name the caller's own session of that name, or none."""
    params = _params(page_size=page_size, page_token=page_token, name=name)
    return (yield from read(Send("GET", "/v1/sessions", params=params), SessionPage))


def sessions() -> Flow[list[SessionOut]]:
    """All sessions that the caller may read, page after page."""
    return (yield from every_page(lambda token: session_page(page_token=token), lambda page: page.sessions))


def session(name_or_id: UUID | str) -> Flow[SessionOut]:
    """One session by its id, or the caller's own by its name. Raises NotFound."""
    session_id = written_uuid(str(name_or_id))
    if session_id is None:
        for candidate in (yield from session_page(name=str(name_or_id))).sessions:
            if candidate.name == name_or_id:  # a service that does not know the parameter names others too
                return candidate
        # Asked for by a name that is no id, the service answers in its own words that there is nothing here.
        session_id = UUID(int=0)
    return (yield from read(Send("GET", f"/v1/sessions/{session_id}"), SessionOut))


def change_session(
    session_id: UUID | str, *, visibility: str | None = None, participants: Sequence[UUID | str] | None = None
) -> Flow[SessionOut]:
    """Changes who may read a session, and who takes part in it."""
    body = without_nulls(visibility=visibility, participants=None if participants is None else [str(p) for p in participants])
    return (yield from read(Send("PATCH", f"/v1/sessions/{_step(session_id)}", json_body(body), headers=JSON), SessionOut))


def erase_session(session_id: UUID | str) -> Flow[None]:
    """Erases a session and everything derived from it. Erasing what is erased already is no error."""
    yield from _erase(f"/v1/sessions/{_step(session_id)}")


def export_session(session_id: UUID | str) -> Flow[httpx.Response]:
    """The open response whose body is the export; the clients' ``export`` hands out its bytes."""
    return (yield from request(Send("GET", f"/v1/sessions/{_step(session_id)}/export", stream=True)))


def import_file(path: Path | str) -> Flow[ImportResponse]:
    """Takes an export in, streamed from its file. Raises ExportCutOff for one that lacks its end."""
    require_whole(Path(path))
    return (yield from read(Send("POST", "/v1/import", headers=NDJSON, upload=Path(path), read_timeout_s=600), ImportResponse))


def readiness() -> Flow[dict[str, Any]]:
    """What ``/readyz?verbose`` says, whether ready or not."""
    response = yield Send("GET", "/readyz", params={"verbose": "true"})
    if response is None:
        raise RuntimeError("a step that sends was answered with no response")
    body = response.json()
    return body if isinstance(body, dict) else {"status": response.status_code}


def mcp_message(message: bytes, protocol_version: str | None = None) -> Flow[bytes]:
    """One JSON-RPC message to the service's MCP door, and its answer; empty for a notification."""
    headers = JSON | {"Accept": "application/json, text/event-stream"}
    if protocol_version is not None:
        headers["MCP-Protocol-Version"] = protocol_version
    response = yield from request(Send("POST", "/mcp", message, headers=headers, read_timeout_s=MCP_TIMEOUT_S))
    return response.content


def is_alive() -> Flow[bool]:
    """Whether the service answers and can make progress."""
    response = yield Send("GET", "/livez", read_timeout_s=5)
    return response is not None and response.is_success


def _erase(path: str) -> Flow[None]:
    try:
        yield from request(Send("DELETE", path))
    except Erased:
        # A first attempt answered "erase-pending" and completed by itself before this one.
        return


def _step(value: UUID | str) -> str:
    if str(value) in (".", ".."):
        raise CannotBeSent("a dot or two are no id: in an address they mean another place")
    try:
        return quote(str(value), safe="")
    except UnicodeEncodeError as error:
        raise CannotBeSent(f"the request cannot be written: {error.reason}") from error


def _params(**values: object) -> dict[str, str]:
    return {name: str(value) for name, value in values.items() if value is not None}
