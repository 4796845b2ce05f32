"""What takes entries out of the response cache: purges by name, erasures, age and number. The use case has authorised each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import sqlalchemy as sa

from coatcheck.domain.response_cache import CacheScope, Fingerprint, PromptPrint
from coatcheck.store.database import WorkerTransaction
from coatcheck.store.response_cache import CLOCKS_APART

_PURGE = sa.text("""
    DELETE FROM cache_entries
     WHERE tenant_id = :tenant
       AND (CAST(:principal AS uuid) IS NULL OR principal_id = :principal)
       AND (CAST(:conversation AS text[]) IS NULL OR entry_id IN (
           SELECT entry_id FROM cache_ties WHERE tenant_id = :tenant AND tag = ANY (:conversation)))
       AND (CAST(:source AS text[]) IS NULL OR entry_id IN (
           SELECT entry_id FROM cache_ties WHERE tenant_id = :tenant AND tag = ANY (:source)))
""")

_OF_SESSION = sa.text("""
    DELETE FROM cache_entries
     WHERE tenant_id = :tenant
       AND (session_id = :session
            OR entry_id IN (SELECT entry_id FROM cache_ties WHERE tenant_id = :tenant AND tag = ANY (CAST(:tags AS text[]))))
""")

_OUTDATED = sa.text("DELETE FROM cache_entries WHERE tenant_id = :tenant AND schema <> :schema")

_EXPIRED = sa.text("""
    DELETE FROM cache_entries
     WHERE tenant_id = :tenant AND entry_id = ANY (ARRAY(
           SELECT entry_id FROM cache_entries WHERE tenant_id = :tenant AND (expires_at <= :now OR expires_at > :latest)
            ORDER BY expires_at LIMIT :limit))
""")

_OLDER = sa.text("""
    DELETE FROM cache_entries
     WHERE tenant_id = :tenant AND scope = :scope AND prompt = :prompt
       AND (created_at, entry_id) < (SELECT created_at, entry_id FROM cache_entries WHERE tenant_id = :tenant AND entry_id = :entry)
""")

_BEYOND = sa.text("""
    DELETE FROM cache_entries
     WHERE tenant_id = :tenant AND entry_id = ANY (ARRAY(
           SELECT entry_id FROM cache_entries WHERE tenant_id = :tenant AND sharing = :sharing
            ORDER BY created_at DESC, entry_id DESC OFFSET :keep))
""")

# Nothing goes where all of it together would not be enough.
_OLDEST = sa.text("""
    DELETE FROM cache_entries
     WHERE tenant_id = :tenant AND entry_id IN (
           SELECT entry_id
             FROM (SELECT entry_id,
                          sum(octet_length(answer)) OVER (ORDER BY created_at, entry_id) - octet_length(answer) AS older_bytes,
                          sum(octet_length(answer)) OVER () AS all_bytes
                     FROM cache_entries WHERE tenant_id = :tenant) aged
            WHERE older_bytes < :size AND all_bytes >= :size)
""")

_ANSWER_BYTES = sa.text(
    "SELECT CAST(coalesce(sum(octet_length(answer)), 0) AS bigint) FROM cache_entries WHERE tenant_id = :tenant"
)

_STATS = sa.text("""
    SELECT count(*) AS entries, coalesce(sum(octet_length(answer)), 0) AS answer_bytes, min(created_at) AS oldest
      FROM cache_entries
     WHERE tenant_id = :tenant AND expires_at > :now AND (CAST(:principal AS uuid) IS NULL OR principal_id = :principal)
       AND (CAST(:within AS uuid[]) IS NULL OR session_id = ANY (:within))
""")

EXPIRED_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class CacheStats:
    """What a principal's, or a tenant's, entries come to."""

    entries: int
    answer_bytes: int
    oldest: datetime | None


async def purge(
    tx: WorkerTransaction,
    principal_id: UUID | None,
    conversation: Sequence[Fingerprint] | None = None,
    source: Sequence[Fingerprint] | None = None,
) -> int:
    """Entries of one writer (None: of everybody) that have one of these tags of a conversation, and one of these of a source.

    Returns how many went.
    """
    parameters = {
        "tenant": tx.scope.tenant_id,
        "principal": principal_id,
        "conversation": None if conversation is None else list(conversation),
        "source": None if source is None else list(source),
    }
    return int((await tx.connection.execute(_PURGE, parameters)).rowcount)


async def forget_session(tx: WorkerTransaction, session_id: UUID, tags: Sequence[Fingerprint]) -> int:
    """Whoever's entries belong to the session, or rest on what the tags name: what is erased goes with what was made of it."""
    parameters = {"tenant": tx.scope.tenant_id, "session": session_id, "tags": list(tags)}
    return int((await tx.connection.execute(_OF_SESSION, parameters)).rowcount)


async def outdated(tx: WorkerTransaction, schema: Fingerprint) -> int:
    """What was kept under other rules than today's: it is eligible for nobody, and may hold what today's would have found."""
    return int((await tx.connection.execute(_OUTDATED, {"tenant": tx.scope.tenant_id, "schema": schema})).rowcount)


async def expired(tx: WorkerTransaction, now: datetime, longest: timedelta) -> int:
    """The oldest of the expired entries, a thousand at most; those too that would live for longer than any entry is to."""
    parameters = {"tenant": tx.scope.tenant_id, "now": now, "latest": now + longest + CLOCKS_APART, "limit": EXPIRED_AT_ONCE}
    return int((await tx.connection.execute(_EXPIRED, parameters)).rowcount)


async def make_room(tx: WorkerTransaction, scope: CacheScope, prompt: PromptPrint, entry_id: UUID, keep: int) -> None:
    """After a new entry: the ones that it replaces, and the sharing scope's oldest beyond ``keep``."""
    tenant = tx.scope.tenant_id
    await tx.connection.execute(_OLDER, {"tenant": tenant, "scope": scope.digest, "prompt": prompt.exact, "entry": entry_id})
    await tx.connection.execute(_BEYOND, {"tenant": tenant, "sharing": scope.dimensions.sharing, "keep": keep})


async def oldest(tx: WorkerTransaction, size: int) -> int:
    """The tenant's oldest answers that come to at least so many bytes; none where there are not as many. Returns how many went."""
    return int((await tx.connection.execute(_OLDEST, {"tenant": tx.scope.tenant_id, "size": size})).rowcount)


async def answer_bytes(tx: WorkerTransaction) -> int:
    """Of all the tenant's answers."""
    return int((await tx.connection.execute(_ANSWER_BYTES, {"tenant": tx.scope.tenant_id})).scalar_one())


async def stats(tx: WorkerTransaction, principal_id: UUID | None, within: frozenset[UUID] | None, now: datetime) -> CacheStats:
    """Of one writer's living entries, or of the tenant's; only of the sessions ``within``, when given."""
    sessions = None if within is None else list(within)
    parameters = {"tenant": tx.scope.tenant_id, "principal": principal_id, "within": sessions, "now": now}
    row = (await tx.connection.execute(_STATS, parameters)).one()
    return CacheStats(row.entries, int(row.answer_bytes), row.oldest)
