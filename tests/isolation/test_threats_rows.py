"""Threats to rows: what is shared by accident, what a worker trusts, what another's request takes over (docs/threats.md)."""

from __future__ import annotations

from uuid import UUID

import pytest

from coatcheck.domain.outbox import OutboxKind
from coatcheck.domain.passages import PointIds, point_id
from coatcheck.domain.scopes import TenantScope
from coatcheck.identity.keyring import Keyring
from coatcheck.store import outbox
from tests.index.asking import everything
from tests.isolation.source import calls, modules, reads
from tests.isolation.town import Town, left_by
from tests.windows import request, window

KEY = {"Idempotency-Key": "everybodys-key"}


async def test_T12_the_same_everything_in_two_tenants_shares_no_point(town: Town) -> None:
    """An import keeps the ids that it finds free: session, run, text and passage are the same in both, and the tenant is not."""
    mine = await town.alice.compact("same points", window(mark="points"))
    lines = (await town.alice.http.get(f"/v1/sessions/{mine['session_id']}/export")).content

    assert (await town.dave.http.post("/v1/import", content=lines)).json()["manifests"] == 1

    stored = [p for p in await everything(town.app.parts.index) if str(p.session_id) == mine["session_id"]]
    alices, daves = ([p for p in stored if p.tenant_id == person.tenant_id] for person in (town.alice, town.dave))
    assert sorted(p.exact_sha256 for p in alices) == sorted(p.exact_sha256 for p in daves) != []
    assert {p.point_id for p in alices}.isdisjoint(p.point_id for p in daves)
    same = (UUID(int=3), "ab" * 32, 0)
    ids = {PointIds(UUID(int=tenant), 1).of(*same) for tenant in (1, 2)} | {point_id(UUID(int=3), *same, 1)}
    assert len(ids) == 3


@pytest.mark.parametrize("kind", [OutboxKind.ERASE, OutboxKind.SWEEP, OutboxKind.ACL, OutboxKind.UPSERT])
async def test_T18_a_worker_given_another_tenants_ids_does_nothing_to_them(town: Town, kind: OutboxKind) -> None:
    """An outbox row is entered under its own tenant's rights, whatever it names."""
    ids = await left_by(town.alice, f"worker-{kind}")
    app, mine = town.app, TenantScope(town.dave.tenant_id)
    generation, before = app.parts.generation.number, await everything(app.parts.index)
    manifest_id = ids.manifest if kind in (OutboxKind.ERASE, OutboxKind.UPSERT) else None

    await app.parts.database.work(
        mine, lambda tx: outbox.enqueue(tx, app.parts.new_id(), kind, ids.session, manifest_id=manifest_id)
    )
    await app.use_cases.reconciler.drain_tenant(town.dave.tenant_id)

    theirs = TenantScope(town.alice.tenant_id)
    assert await app.parts.index.count(theirs, ids.session, generation) > 0
    assert await app.parts.index.count(mine, ids.session, generation) == 0
    assert {p.point_id for p in before} <= {p.point_id for p in await everything(app.parts.index)}
    assert (await town.alice.http.get(f"/v1/manifests/{ids.manifest}/window")).json()["messages"] == window(mark=f"worker-{kind}")
    assert any("worker" in hit["text"] for hit in await town.alice.recall(f"worker-{kind} health", str(ids.session)))
    assert (await town.dave.http.get(f"/v1/manifests/{ids.manifest}")).status_code == 404


@pytest.mark.parametrize("visibility", ["conversation", "public"])
async def test_T19_a_request_sent_again_by_another_is_its_own(town: Town, visibility: str) -> None:
    """The key and the body of somebody else's request give a fresh answer, in this tenant and in another.

    Also where the other may read what the first one stored: row security does not keep it from being taken for a replay.
    """
    name = f"replayed {visibility}"
    body = request(name, window(mark=name), visibility=visibility)
    first = await town.alice.http.post("/v1/compactions", json=body, headers=KEY)

    replays = [await person.http.post("/v1/compactions", json=body, headers=KEY) for person in (town.bob, town.dave)]
    again = await town.alice.http.post("/v1/compactions", json=body, headers=KEY)

    ids = [(answer.json()["session_id"], answer.json()["manifest_id"]) for answer in (first, *replays)]
    assert [answer.status_code for answer in (first, *replays, again)] == [201, 201, 201, 200]
    assert len(set(ids)) == len({manifest for _, manifest in ids}) == 3
    assert again.json()["manifest_id"] == first.json()["manifest_id"]
    assert all(first.json()["manifest_id"] not in answer.text for answer in replays)


def test_T21_what_a_model_server_may_know_of_a_tenant_is_a_salt_of_its_own() -> None:
    """Same salt, shared prefix cache: so no two tenants have one, and none can be told from the id."""
    keyring, other_root = Keyring(b"\x01" * 32), Keyring(b"\x02" * 32)
    tenants = [UUID(int=number) for number in range(1, 50)]

    salts = [keyring.cache_salt(tenant) for tenant in tenants]

    assert len(set(salts)) == len(tenants)
    assert salts == [keyring.cache_salt(tenant) for tenant in tenants]
    assert not any(tenant.hex in salt or str(tenant) in salt for tenant, salt in zip(tenants, salts, strict=True))
    assert set(salts).isdisjoint(other_root.cache_salt(tenant) for tenant in tenants)


def test_T22_nothing_that_was_computed_for_one_request_is_kept_for_the_next() -> None:
    """Caches of functions hold what was shipped, or words of a language, and nothing of a tenant: their modules are listed."""
    remembering = {name for module in modules() for name in calls(module, "lru_cache", "cache")}
    remembering |= {name for module in modules() for name in reads(module, "functools.cache")}

    assert remembering <= {
        "compaction.claim_words",  # the stem of one word
        "compaction.lexicon",  # the automaton of the shipped phrases
        "compaction.policy_document",  # the shipped policy
        "compaction.redaction.bundled",  # a rule's own pattern, compiled
        "compaction.redaction.names",  # whether a name means a secret
        "compaction.redaction.shapes",  # how random a word looks
        "compaction.weights",  # the automaton of the shipped words of errors
        "gpu.fp8.contract",  # what torch says of one shape of weights
        "gpu.vllm.sparse_types",  # what a model server calls the layers of its model
        "index.points",  # one id, read from its own text
        "index.tokens",  # the stem of one word
        "models.hashing",  # the place of one word in a test's vector
    }
