"""Every condition of eligibility holds by itself: each is spoilt in a row that fulfils all others, and the row is found no more.

A digest of all dimensions, each dimension, the acl key and the time say the same thing several times; that is on purpose.
"""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from uuid import uuid4

import numpy as np
import pytest
import sqlalchemy as sa

from coatcheck.domain.response_cache import (
    CacheEntry,
    CacheScope,
    Dimension,
    Dimensions,
    Fingerprint,
    PromptPrint,
    Sharing,
    Stated,
    Ties,
)
from coatcheck.domain.scopes import Scope
from coatcheck.identity.cache_scopes import cache_scope
from coatcheck.identity.keyring import Keyring
from coatcheck.store import cache_purge, response_cache
from coatcheck.store.database import ReadTransaction, WorkerTransaction
from coatcheck.store.response_cache import Embedded
from tests.identity.test_context import context
from tests.tenants import EPOCH, Tenancy

NOW = EPOCH + timedelta(minutes=1)
DIGEST = "f" * 64
PROMPT = PromptPrint(Fingerprint("1" * 64), frame=Fingerprint("2" * 64), guard=Fingerprint("3" * 64), text="text")
VECTOR = Embedded("embedder-1", np.zeros(4, "<f4").tobytes())


def scope_of(scope: Scope, sharing: str = "principal") -> CacheScope:
    prints = Keyring(bytes(range(32))).cache_fingerprints(scope.tenant_id)
    who = context(tenant_id=scope.tenant_id, principal_id=scope.principal_id)
    made = cache_scope(who, prints, Sharing.parse(sharing), Stated({}, [], "m", "", [], {}), Ties(None, (), ()), "rules")
    assert isinstance(made, CacheScope)
    return made


async def kept(tenant: Tenancy, who: CacheScope, prompt: PromptPrint = PROMPT) -> CacheEntry:
    entry = CacheEntry(uuid4(), b'"an answer"', EPOCH, EPOCH + timedelta(hours=1))
    await tenant.database.write(who.within, lambda tx: response_cache.insert(tx, who, prompt, VECTOR, entry))
    return entry


async def found(tenant: Tenancy, who: CacheScope, entry: CacheEntry) -> list[bool]:
    """By each way that there is: by the prompt, by its id, for comparison, in the count."""

    async def work(tx: ReadTransaction) -> list[bool]:
        compared = await response_cache.comparable(tx, who, Fingerprint("2" * 64), "embedder-1", NOW, 10)
        return [
            await response_cache.find_exact(tx, who, PROMPT, NOW) is not None,
            await response_cache.find_by_id(tx, who, entry.entry_id, NOW) is not None,
            [one.entry_id for one in compared] == [entry.entry_id],
            await response_cache.count_eligible(tx, who, NOW, 10) == 1,
        ]

    return await tenant.database.read(who.within, work)


async def spoil(tenant: Tenancy, change: str) -> None:
    async def work(tx: WorkerTransaction) -> None:
        await tx.connection.execute(sa.text(f"UPDATE cache_entries SET {change}"))

    await tenant.database.work(tenant.scope, work)


SPOILT = {
    **{dimension.value: f"{dimension.value} = '{DIGEST}'" for dimension in Dimension},
    "scope": f"scope = '{DIGEST}'",
    "acl": "acl = ARRAY['public']",
    "acl, with more": "acl = acl || ARRAY['public']",
    "time": "expires_at = created_at",
    "a clock that was set back": "created_at = created_at + interval '121 s', expires_at = expires_at + interval '121 s'",
}


@pytest.mark.parametrize("change", SPOILT.values(), ids=SPOILT)
async def test_a_row_that_fails_one_condition_is_found_by_no_way(tenant: Tenancy, change: str) -> None:
    who = scope_of(await tenant.principal())
    entry = await kept(tenant, who)

    before = await found(tenant, who, entry)
    await spoil(tenant, change)

    assert before == [True] * 4
    assert await found(tenant, who, entry) == [False] * 4


@pytest.mark.parametrize("change", [f"frame = '{DIGEST}'", "embedder = 'embedder-2'", "embedding = NULL"])
async def test_what_was_asked_otherwise_is_not_compared(tenant: Tenancy, change: str) -> None:
    who = scope_of(await tenant.principal())
    entry = await kept(tenant, who)

    await spoil(tenant, change)

    assert await found(tenant, who, entry) == [True, True, False, True]


async def test_another_prompt_is_not_the_same_prompt(tenant: Tenancy) -> None:
    who = scope_of(await tenant.principal())
    entry = await kept(tenant, who, dataclasses.replace(PROMPT, exact=Fingerprint("9" * 64)))

    assert await found(tenant, who, entry) == [False, True, True, True]


async def test_of_ineligible_entries_only_the_askers_own_are_told_of(tenant: Tenancy) -> None:
    """And of those only what its credential reaches: a public entry of the same digest is none of a private scope's."""
    scope = await tenant.principal()
    private, public = scope_of(scope), scope_of(scope, "tenant")

    async def told(within: frozenset[object] | None) -> Dimensions | None:
        return await tenant.database.read(
            scope,
            lambda tx: response_cache.same_prompt(tx, private, PROMPT, NOW, within),  # type: ignore[arg-type]
        )

    await kept(tenant, public)
    assert await told(None) is None
    await kept(tenant, private)
    assert await told(None) == private.dimensions
    assert await told(frozenset({uuid4()})) is None
    await spoil(tenant, "expires_at = created_at")
    assert await told(None) is None


async def test_what_would_live_longer_than_any_answer_goes_with_what_is_too_old(tenant: Tenancy) -> None:
    """It was stored before the clock was set back: were it kept, it would be eligible once that time comes again."""
    who = scope_of(await tenant.principal())
    entry = await kept(tenant, who)
    longest = entry.expires_at - NOW

    async def gone() -> int:
        return await tenant.database.work(tenant.scope, lambda tx: cache_purge.expired(tx, NOW, longest))

    assert await gone() == 0
    await spoil(tenant, "created_at = created_at + interval '60 s', expires_at = expires_at + interval '60 s'")
    assert await gone() == 0
    await spoil(tenant, "created_at = created_at + interval '1 s', expires_at = expires_at + interval '1 s'")
    assert await gone() == 1


async def test_room_is_made_in_the_sharing_scope_that_is_full_and_in_no_other(tenant: Tenancy, other_tenant: Tenancy) -> None:
    alice, bob = scope_of(await tenant.principal()), scope_of(await tenant.principal())
    foreign = scope_of(await other_tenant.principal())
    for who, home in ((alice, tenant), (bob, tenant), (foreign, other_tenant)):
        for number in range(3):
            entry = await kept(home, who, dataclasses.replace(PROMPT, exact=Fingerprint(f"{number}" * 64)))

    await tenant.database.work(tenant.scope, lambda tx: cache_purge.make_room(tx, alice, PROMPT, entry.entry_id, 1))

    async def count(home: Tenancy, who: CacheScope) -> int:
        return await home.database.read(who.within, lambda tx: response_cache.count_eligible(tx, who, NOW, 10))

    assert (await count(tenant, alice), await count(tenant, bob), await count(other_tenant, foreign)) == (1, 3, 3)


async def test_a_purge_ends_at_the_tenant_and_at_the_writer(tenant: Tenancy, other_tenant: Tenancy) -> None:
    alice, bob = scope_of(await tenant.principal()), scope_of(await tenant.principal())
    foreign = scope_of(await other_tenant.principal())
    entries = [await kept(home, who) for who, home in ((alice, tenant), (bob, tenant), (foreign, other_tenant))]

    purged = [
        await tenant.database.work(tenant.scope, lambda tx: cache_purge.purge(tx, foreign.within.principal_id)),
        await tenant.database.work(tenant.scope, lambda tx: cache_purge.purge(tx, alice.within.principal_id)),
        await tenant.database.work(tenant.scope, lambda tx: cache_purge.purge(tx, None, source=[Fingerprint(DIGEST)])),
        await tenant.database.work(tenant.scope, lambda tx: cache_purge.purge(tx, None)),
    ]

    assert purged == [0, 1, 0, 1]
    assert await found(other_tenant, foreign, entries[2]) == [True] * 4
