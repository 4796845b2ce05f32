"""Alice's answer is Alice's: the story of "Prevent Context Leakage" through the real request boundary (acceptance row 2, T20)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from coatcheck.identity.operations import EVERYTHING
from coatcheck.identity.scopes import tenant_scope
from coatcheck.store import teams
from tests.apps import Caller, client, new_principal
from tests.caching import PROMPT, circumstances, lookup, store, why
from tests.isolation.town import Person, Town
from tests.windows import window

MARKER = "marker-" + "a11ce" * 3
OTHERS = ("bob", "carol", "operator", "dave")
PARAPHRASE = "Please summarize the renewal terms."


async def cache_metrics(person: Person) -> dict[str, float]:
    text = (await person.http.get("/metrics")).text
    return {
        sample.labels["outcome"]: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "coatcheck_cache_lookups_total"
    }


async def test_alice_gets_her_answer_again_with_its_provenance(town: Town) -> None:
    kept = await store(town.alice.http, {"text": f"Ninety days. {MARKER}"}, session="again")

    found = await lookup(town.alice.http, session="again")

    assert kept["stored"]
    assert (found["outcome"], found["answer"]) == ("hit-exact", {"text": f"Ninety days. {MARKER}"})
    assert found["provenance"]["entry_id"] == kept["entry_id"]
    assert (found["provenance"]["match"], found["provenance"]["similarity"]) == ("exact", 1.0)
    assert found["provenance"]["sharing"] == "principal"
    assert 0 <= found["provenance"]["age_s"] < 60


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("prompt", [PROMPT, PARAPHRASE])
async def test_T20_nobody_else_gets_it_by_the_same_prompt_nor_by_a_paraphrase(town: Town, name: str, prompt: str) -> None:
    """Not because theirs is unlike: because there is nothing that they may reuse, and nothing was compared."""
    await store(town.alice.http, MARKER, semantic=True)
    before = await cache_metrics(town.bob)

    found = await lookup(town.everybody[name].http, prompt=prompt, semantic=True)
    after = await cache_metrics(town.bob)

    assert why(found) == "ineligible:scope"
    assert (found["eligible"], found["answer"], found["provenance"]) == (0, None, None)
    assert MARKER not in str(found)
    assert after["ineligible:scope"] == before.get("ineligible:scope", 0) + 1
    assert (await lookup(town.alice.http))["outcome"] == "hit-exact"


async def test_T22_what_alice_has_changes_no_word_of_what_bob_is_told(town: Town) -> None:
    cold = await lookup(town.bob.http, session="told")
    await store(town.alice.http, MARKER, session="told")

    warm = await lookup(town.bob.http, session="told")

    assert warm == cold


CHANGES: dict[str, dict[str, object]] = {
    "sources": {"sources": [{"id": "contract-17", "revision": "4"}]},
    "sources (one less)": {"sources": []},
    "sources (another)": {"sources": [{"id": "contract-18", "revision": "3"}]},
    "model": {"model": "small-2"},
    "tools": {"tools": [{"name": "search", "parameters": {"type": "string"}}]},
    "tools (none)": {"tools": []},
    "instructions": {"instructions": "Answer from the contract alone!"},
    "instructions (none)": {"instructions": ""},
    "settings": {"settings": {"temperature": 0.1}},
    "settings (none)": {"settings": {}},
    "conversation (revision)": {"conversation_revision": "8"},
    "conversation (another)": {"session": "other-renewals"},
    "conversation (none)": {"session": ""},
}


@pytest.mark.parametrize("change", CHANGES)
async def test_a_changed_dimension_makes_it_ineligible_and_is_named(town: Town, change: str) -> None:
    await store(town.alice.http, MARKER)

    found = await lookup(town.alice.http, **CHANGES[change])
    unchanged = await lookup(town.alice.http)

    assert why(found) == f"ineligible:{change.partition(' ')[0]}"
    assert found["answer"] is None
    assert unchanged["outcome"] == "hit-exact"


async def _new_member(town: Town) -> None:
    await new_principal(town.app, town.alice.tenant_id)


async def _left_and_joined_again(town: Town, person: Person) -> None:
    scope, member = tenant_scope(person.tenant_id), person.principal_id
    await town.app.parts.database.work(scope, lambda tx: teams.leave(tx, member, town.team_id))
    await town.app.parts.database.work(scope, lambda tx: teams.join(tx, member, town.team_id, datetime.now(UTC)))


async def _revoked_key(town: Town, person: Person) -> None:
    asked = {"name": "short-lived", "principal_id": str(person.principal_id), "operations": ["read"]}
    made = await town.operator.http.post("/v1/admin/keys", json=asked)
    await town.operator.http.delete(f"/v1/admin/keys/{made.json()['key_id']}")


async def _deactivated_and_active_again(town: Town, person: Person) -> None:
    for status in ("inactive", "active"):
        done = await town.operator.http.patch(f"/v1/admin/principals/{person.principal_id}", json={"status": status})
        assert done.status_code == 200, done.text


OF_SOMEBODY = [_left_and_joined_again, _revoked_key, _deactivated_and_active_again]


@pytest.mark.parametrize("change", OF_SOMEBODY)
async def test_any_change_of_her_own_permissions_makes_it_ineligible_at_once(
    town: Town, change: Callable[[Town, Person], Awaitable[None]]
) -> None:
    """Though all her rights are as they were: what the answer was made with is another revision of them."""
    await store(town.alice.http, MARKER)

    await change(town, town.alice)
    found = await lookup(town.alice.http)

    assert why(found) == "ineligible:permission"
    assert MARKER not in str(found)


@pytest.mark.parametrize("change", OF_SOMEBODY)
async def test_a_change_of_anothers_permissions_leaves_her_answers_hers(
    town: Town, change: Callable[[Town, Person], Awaitable[None]]
) -> None:
    await store(town.alice.http, MARKER)

    await change(town, town.carol)
    await _new_member(town)

    assert (await lookup(town.alice.http))["answer"] == MARKER


@pytest.mark.parametrize("change", OF_SOMEBODY)
async def test_what_is_shared_is_made_anew_after_a_change_of_anybodys_permissions(
    town: Town, change: Callable[[Town, Person], Awaitable[None]]
) -> None:
    shared = {"session": "", "sources": [], "sharing": "tenant", "prompt": f"shared {change.__name__}"}
    publisher = await new_principal(town.app, town.alice.tenant_id, EVERYTHING)
    async with client(town.app, publisher) as http:
        await store(http, MARKER, **shared)
    assert (await lookup(town.alice.http, **shared))["answer"] == MARKER

    await change(town, town.carol)

    assert why(await lookup(town.alice.http, **shared)) == "ineligible:permission"


async def test_permissions_that_change_while_an_answer_is_made_make_it_nobodys(town: Town) -> None:
    """The answer was generated with rights that are not those of the scope it would now be stored under."""
    scope = (await lookup(town.alice.http, session="meanwhile"))["scope"]
    await _revoked_key(town, town.alice)

    kept = await town.alice.http.post(
        "/v1/cache/store", json={**circumstances(session="meanwhile"), "answer": MARKER, "scope": scope}
    )

    assert kept.json() == {"stored": False, "reason": "scope-changed", "entry_id": None, "expires_at": None}
    assert (await lookup(town.alice.http, session="meanwhile"))["answer"] is None


async def test_T20_bob_cannot_store_under_a_scope_of_alices(town: Town) -> None:
    """Poisoning: a scope that leaked is worth nothing in other hands."""
    scope = (await lookup(town.alice.http, session="poison"))["scope"]

    for name in OTHERS:
        kept = await town.everybody[name].http.post(
            "/v1/cache/store", json={**circumstances(session="poison"), "answer": "poison", "scope": scope}
        )
        assert (kept.json()["stored"], kept.json()["reason"]) == (False, "scope-changed")

    assert (await lookup(town.alice.http, session="poison"))["answer"] is None


@pytest.mark.parametrize("field", ["tenant_id", "principal_id", "owner_id", "user", "acl", "permission_revision"])
async def test_a_forged_identity_in_the_body_is_refused(town: Town, field: str) -> None:
    await store(town.alice.http, MARKER)

    for path in ("lookup", "store"):
        body = {**circumstances(), field: str(town.alice.principal_id), **({"answer": "a"} if path == "store" else {})}
        refused = await town.bob.http.post(f"/v1/cache/{path}", json=body)
        assert refused.status_code == 422
        assert MARKER not in refused.text


@pytest.mark.parametrize("header", ["X-Tenant-Id", "X-Principal-Id", "X-User"])
async def test_a_forged_identity_in_a_header_changes_nothing(town: Town, header: str) -> None:
    await store(town.alice.http, MARKER)

    found = await town.bob.http.post("/v1/cache/lookup", json=circumstances(), headers={header: str(town.alice.principal_id)})

    assert why(found.json()) == "ineligible:scope"


async def test_concurrent_requests_of_everybody_stay_with_their_own(town: Town) -> None:
    people = list(town.everybody.values())
    for person in people:
        await store(person.http, f"of {person.name}", session="crowd")

    asked = [person for _ in range(5) for person in people]
    found = await asyncio.gather(*(lookup(person.http, session="crowd") for person in asked))

    assert [one["answer"] for one in found] == [f"of {person.name}" for person in asked]


async def test_T17_stores_and_lookups_at_the_same_time_never_mix(town: Town) -> None:
    async def turns(person: Person) -> set[Any]:
        seen = set()
        for turn in range(6):
            await store(person.http, f"{person.name} {turn}", session="mixed", conversation_revision=str(turn))
            seen.add((await lookup(person.http, session="mixed", conversation_revision=str(turn)))["answer"])
        return seen

    people = list(town.everybody.values())
    seen = await asyncio.gather(*(turns(person) for person in people))

    assert seen == [{f"{person.name} {turn}" for turn in range(6)} for person in people]


async def test_a_session_kept_here_brings_its_real_revision(town: Town) -> None:
    """What the client states of it does not change; what the session holds does."""
    made = await town.alice.compact("real")
    await store(town.alice.http, MARKER, session=made["session_id"])
    by_name = await lookup(town.alice.http, session="real")
    await town.alice.compact("real", window(mark="another window"))

    found = await lookup(town.alice.http, session=made["session_id"])

    assert by_name["outcome"] == "hit-exact"
    assert why(found) == "ineligible:conversation"


async def test_a_source_kept_here_brings_its_real_revision(town: Town) -> None:
    made = await town.alice.compact("a source")
    sources = [{"id": made["session_id"], "revision": "1"}]
    await store(town.alice.http, MARKER, sources=sources)
    fresh = await lookup(town.alice.http, sources=sources)
    await town.alice.compact("a source", window(mark="more of the source"))

    found = await lookup(town.alice.http, sources=sources)

    assert fresh["outcome"] == "hit-exact"
    assert why(found) == "ineligible:sources"


async def test_a_session_whose_readers_change_has_another_revision(town: Town) -> None:
    made = await town.alice.compact("narrowed", visibility="public")
    session = made["session_id"]
    await store(town.bob.http, MARKER, session=session)
    before = await lookup(town.bob.http, session=session)

    await town.alice.http.patch(f"/v1/sessions/{session}", json={"visibility": "personal"})
    after = await town.bob.http.post("/v1/cache/lookup", json=circumstances(session=session))

    assert before["outcome"] == "hit-exact"
    assert after.status_code == 404
    assert MARKER not in after.text


async def test_a_key_kept_to_a_session_neither_sees_nor_stores_outside_of_it(town: Town) -> None:
    made = await town.alice.compact("kept to")
    narrow = await new_principal(town.app, town.alice.tenant_id, sessions=frozenset({made["session_id"]}))
    async with client(town.app, narrow) as http:
        outside = [await lookup(http, session=name) for name in ("", "some conversation")]
        shared = await http.post("/v1/cache/lookup", json=circumstances(session="", sharing="tenant"))

    assert [why(one) for one in outside] == ["bypassed:conversation"] * 2
    assert shared.status_code == 403


async def test_what_a_wider_credential_stored_is_none_for_a_narrower_one_nor_the_reverse(town: Town) -> None:
    made = await town.operator.compact("narrowing")
    session = made["session_id"]
    key = (await town.operator.http.post("/v1/admin/keys", json={"name": "n", "sessions": [session]})).json()["key"]
    narrow = Caller(town.operator.tenant_id, town.operator.principal_id, key)
    await store(town.operator.http, MARKER, session=session)

    async with client(town.app, narrow) as http:
        wider = await lookup(http, session=session)
        await store(http, "of the narrow key", session=session)
        own = await lookup(http, session=session)
    unchanged = await lookup(town.operator.http, session=session)

    assert why(wider) == "ineligible:permission"
    assert (own["answer"], unchanged["answer"]) == ("of the narrow key", MARKER)


async def test_T11_the_same_request_in_another_tenant_is_another_request(town: Town) -> None:
    """Same names, same texts, same revisions: each tenant's own digests, and each its own answer (T19)."""
    ours, theirs = await store(town.alice.http, "ours", session="same"), await store(town.dave.http, "theirs", session="same")

    found = [await lookup(person.http, session="same") for person in (town.alice, town.dave)]

    assert ours["stored"]
    assert theirs["stored"]
    assert [one["answer"] for one in found] == ["ours", "theirs"]
    assert found[0]["scope"] != found[1]["scope"]
