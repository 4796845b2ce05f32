"""What a client asks of the response cache. Each function is a flow; ``client.py`` runs them.

found = client.cache_lookup(prompt, **circumstances)
if found.answer is None:
    answer = generate()
    client.cache_store(prompt, answer, scope=found.scope, **circumstances)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict, Unpack
from uuid import UUID

from coatcheck_client.errors import ServiceUnreachable, TryLater
from coatcheck_client.flows import Flow, Send, json_body, read, without_nulls
from coatcheck_client.operations import JSON
from coatcheck_client.wire import CacheLookupOut, CachePurgeOut, CacheStatsOut, CacheStoreOut

ANSWER_LIMIT_S = 5.0
"""Longer than this nobody waits for a cache."""


class Circumstances(TypedDict, total=False):
    """Under what an answer is produced. What is left out is unknown, and bypasses the cache; an empty value says: none."""

    session: str | UUID
    conversation_revision: str
    sources: Sequence[Mapping[str, str]]
    model: str
    instructions: str | Sequence[Any]
    tools: Sequence[Any]
    settings: Mapping[str, Any]
    sharing: str
    semantic: bool


def cache_lookup(prompt: str | Sequence[Any], **circumstances: Unpack[Circumstances]) -> Flow[CacheLookupOut]:
    """Asks for an answer that may be reused. Hand ``scope`` of the result back with the answer that is generated instead.

    A service that is out, overloaded or over its limits is bypassed at once. A refusal is raised: it concerns the credential.
    """
    try:
        return (yield from read(_once("lookup", _body(prompt, circumstances)), CacheLookupOut))
    except (ServiceUnreachable, TryLater):
        return CacheLookupOut(outcome="bypassed", reason="unavailable")


def cache_store(
    prompt: str | Sequence[Any],
    answer: Any,
    *,
    scope: str | None,
    ttl_s: float | None = None,
    **circumstances: Unpack[Circumstances],
) -> Flow[CacheStoreOut]:
    """Keeps an answer under the scope that its look-up named. Without a scope nothing is kept, and nothing sent."""
    if scope is None:
        return CacheStoreOut(stored=False, reason="scope")
    body = _body(prompt, circumstances) | {"answer": answer} | without_nulls(scope=scope, ttl_s=ttl_s)
    try:
        return (yield from read(_once("store", body), CacheStoreOut))
    except (ServiceUnreachable, TryLater):
        return CacheStoreOut(stored=False, reason="unavailable")


def cache_purge(
    *,
    whose: Literal["own", "principal", "tenant"] = "own",
    principal_id: UUID | str | None = None,
    session: str | UUID | None = None,
    source: str | None = None,
) -> Flow[CachePurgeOut]:
    """Takes out what all of the given names; with none of them, everything of the caller's own (or, to an operator, of others)."""
    body = without_nulls(whose=whose, principal_id=principal_id, session=session, source=source)
    return (yield from read(Send("POST", "/v1/cache/purge", json_body(body), headers=JSON), CachePurgeOut))


def cache_stats(*, whose: Literal["own", "tenant"] = "own") -> Flow[CacheStatsOut]:
    """What the caller's own answers, or to an operator the tenant's, come to."""
    return (yield from read(Send("GET", "/v1/cache", params={"whose": whose}), CacheStatsOut))


def _once(what: str, body: dict[str, object]) -> Send:
    return Send("POST", f"/v1/cache/{what}", json_body(body), headers=JSON, read_timeout_s=ANSWER_LIMIT_S, is_repeated=False)


def _body(prompt: str | Sequence[Any], circumstances: Circumstances) -> dict[str, object]:
    return {"prompt": prompt if isinstance(prompt, str) else list(prompt), **without_nulls(**circumstances)}
