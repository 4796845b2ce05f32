"""The response cache's rows: found by scope, exactly or for comparison, and added. Eligibility is all of every statement here.

The row's acl and its conversation are row security's; that every dimension is equal is asked for by the scope's digest *and* by
each dimension, so that neither a digest nor a caller's word ever stands for access.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from coatcheck.domain.response_cache import CacheEntry, CacheScope, Dimension, Dimensions, Fingerprint, PromptPrint
from coatcheck.store import binary
from coatcheck.store.database import ReadTransaction, WriteTransaction

_DIMENSIONS = ", ".join(dimension.value for dimension in Dimension)
_EACH_EQUAL = " AND ".join(f"{dimension.value} = %({dimension.value})s" for dimension in Dimension)
_LIVING = "expires_at > %(now)s AND created_at <= %(latest)s"
_ELIGIBLE = f"tenant_id = %(tenant)s AND scope = %(scope)s AND acl = ARRAY[%(acl_key)s] AND {_LIVING} AND {_EACH_EQUAL}"
CLOCKS_APART = timedelta(seconds=60)
"""How much later than now another process's clock may have it. What was made later yet was made before the clock was set back."""

_EXACT = f"""
    SELECT entry_id, answer, created_at, expires_at FROM cache_entries
     WHERE {_ELIGIBLE} AND prompt = %(prompt)s
     ORDER BY created_at DESC, entry_id DESC LIMIT 1
"""

_BY_ID = f"SELECT entry_id, answer, created_at, expires_at FROM cache_entries WHERE {_ELIGIBLE} AND entry_id = %(entry)s"

_COMPARABLE = f"""
    SELECT entry_id, guard, embedding FROM cache_entries
     WHERE {_ELIGIBLE} AND frame = %(frame)s AND embedder = %(embedder)s AND embedding IS NOT NULL
     ORDER BY created_at DESC, entry_id DESC LIMIT %(limit)s
"""

_COUNT_ELIGIBLE = f"SELECT count(*) FROM (SELECT FROM cache_entries WHERE {_ELIGIBLE} LIMIT %(limit)s) AS eligible"

_SAME_PROMPT = f"""
    SELECT {_DIMENSIONS} FROM cache_entries
     WHERE tenant_id = :tenant AND prompt = :prompt AND acl = ARRAY[:acl_key] AND expires_at > :now
       AND (CAST(:within AS uuid[]) IS NULL OR session_id = ANY (:within))
     ORDER BY created_at DESC, entry_id DESC LIMIT 1
"""

_SAME_PROMPT_TEXT = sa.text(_SAME_PROMPT)

_INSERT = sa.text(f"""
    INSERT INTO cache_entries (tenant_id, entry_id, principal_id, acl, session_id, scope, {_DIMENSIONS}, prompt, frame, guard,
                               embedder, embedding, answer, created_at, expires_at)
    VALUES (:tenant, :entry, :principal, ARRAY[:acl_key], :session, :scope,
            {", ".join(f":{dimension.value}" for dimension in Dimension)}, :prompt, :frame, :guard,
            :embedder, :embedding, :answer, :created_at, :expires_at)
""")

_INSERT_TIES = sa.text("""
    INSERT INTO cache_ties (tenant_id, tag, entry_id)
    SELECT :tenant, tag, :entry FROM unnest(CAST(:tags AS text[])) AS tie(tag)
""")


@dataclass(frozen=True, slots=True)
class Comparable:
    """An eligible entry that may be compared by meaning."""

    entry_id: UUID
    guard: str
    embedding: bytes


@dataclass(frozen=True, slots=True)
class Embedded:
    """A prompt's vector, as 32-bit floats in the machine's order, and what made it."""

    embedder: str
    embedding: bytes


async def find_exact(tx: ReadTransaction, scope: CacheScope, prompt: PromptPrint, now: datetime) -> CacheEntry | None:
    """The newest eligible entry for this very prompt."""
    return _entry(await binary.fetch(tx.connection, _EXACT, {**_of(scope, now), "prompt": prompt.exact}))


async def find_by_id(tx: ReadTransaction, scope: CacheScope, entry_id: UUID, now: datetime) -> CacheEntry | None:
    """The entry, when it is still there and eligible."""
    return _entry(await binary.fetch(tx.connection, _BY_ID, {**_of(scope, now), "entry": entry_id}))


async def comparable(
    tx: ReadTransaction, scope: CacheScope, frame: Fingerprint, embedder: str, now: datetime, limit: int
) -> list[Comparable]:
    """The newest eligible entries whose prompts had the same frame and were embedded alike."""
    parameters = {**_of(scope, now), "frame": frame, "embedder": embedder, "limit": limit}
    return [Comparable(*row) for row in await binary.fetch(tx.connection, _COMPARABLE, parameters)]


async def count_eligible(tx: ReadTransaction, scope: CacheScope, now: datetime, limit: int) -> int:
    """How many entries the scope may reuse, ``limit`` at most."""
    [[count]] = await binary.fetch(tx.connection, _COUNT_ELIGIBLE, {**_of(scope, now), "limit": limit})
    return int(count)


async def same_prompt(
    tx: ReadTransaction, scope: CacheScope, prompt: PromptPrint, now: datetime, within: frozenset[UUID] | None
) -> Dimensions | None:
    """Under which dimensions the caller's own sharing scope has this prompt; only of the sessions ``within``, when given."""
    parameters = {
        "tenant": tx.scope.tenant_id,
        "prompt": prompt.exact,
        "acl_key": scope.acl_key,
        "now": now,
        "within": None if within is None else list(within),
    }
    row = (await tx.connection.execute(_SAME_PROMPT_TEXT, parameters)).one_or_none()
    return None if row is None else Dimensions(**row._mapping)


async def insert(
    tx: WriteTransaction, scope: CacheScope, prompt: PromptPrint, embedded: Embedded | None, entry: CacheEntry
) -> None:
    """Adds an answer with its ties. An older one of the same scope and prompt is found no more, and is left to ``cache_purge``."""
    await tx.connection.execute(
        _INSERT,
        {
            **_of(scope, entry.created_at),
            "tenant": tx.scope.tenant_id,
            "entry": entry.entry_id,
            "principal": tx.scope.principal_id,
            "session": scope.ties.session_id,
            "prompt": prompt.exact,
            "frame": prompt.frame if embedded else None,
            "guard": prompt.guard if embedded else None,
            "embedder": embedded.embedder if embedded else None,
            "embedding": embedded.embedding if embedded else None,
            "answer": entry.answer,
            "created_at": entry.created_at,
            "expires_at": entry.expires_at,
        },
    )
    tags = sorted(set(scope.ties.tags))
    await tx.connection.execute(_INSERT_TIES, {"tenant": tx.scope.tenant_id, "entry": entry.entry_id, "tags": tags})


def _of(scope: CacheScope, now: datetime) -> dict[str, Any]:
    return {
        "tenant": scope.within.tenant_id,
        "scope": scope.digest,
        "acl_key": scope.acl_key,
        "now": now,
        "latest": now + CLOCKS_APART,
        **scope.dimensions.as_json(),
    }


def _entry(rows: list[tuple[Any, ...]]) -> CacheEntry | None:
    return CacheEntry(*rows[0]) if rows else None
