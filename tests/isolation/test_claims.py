"""What a request says of itself gives nothing: a tenant, a principal or a cursor that is named is no credential."""

from __future__ import annotations

import dataclasses
import json
from typing import Any
from uuid import UUID

import httpx
import pytest

from coatcheck.identity.credentials import bearer_api_key
from coatcheck.memory.jobs import MAX_JOBS
from tests import apps
from tests.api.operations import UNKNOWN
from tests.contract.working import job
from tests.isolation.claiming import claiming
from tests.isolation.town import Person, Town, left_by
from tests.windows import request, window


async def seen(person: Person, headers: dict[str, str], query: str = "") -> list[Any]:
    """What the lists and a recall show, without what names the one request."""
    answers = [
        await person.http.get(f"/v1/sessions?page_size=200{query}", headers=headers),
        await person.http.post(f"/v1/recall?page_size=1{query}", json={"query": "claims health", "top_k": 50}, headers=headers),
        await person.http.get(f"/v1/admin/keys?page_size=200{query}", headers=headers),
    ]
    return [(answer.status_code, answer.json()) for answer in answers]


async def test_T05_a_tenant_in_a_header_a_cookie_or_a_query_changes_nothing(town: Town) -> None:
    ids = await left_by(town.alice, "claims")
    await left_by(town.dave, "claims")
    query = f"&tenant_id={town.alice.tenant_id}&tenant={town.alice.tenant_id}&principal_id={town.alice.principal_id}&acl=public"

    plain, named = await seen(town.dave, {}), await seen(town.dave, claiming(town.alice.tenant_id, town.alice.principal_id), query)

    assert named == plain
    assert [status for status, _ in plain] == [200, 200, 200]
    for path in (f"/v1/sessions/{ids.session}", f"/v1/manifests/{ids.manifest}", f"/v1/segments/{ids.sha256}"):
        own = path.startswith("/v1/segments")  # the same words: the same hash, in a session of Dave's own
        answer = await town.dave.http.get(
            f"{path}?tenant_id={town.alice.tenant_id}", headers=claiming(town.alice.tenant_id, town.alice.principal_id)
        )
        assert answer.status_code == (200 if own else 404)
        assert not own or answer.json()["session_id"] != str(ids.session)


@pytest.mark.parametrize("name", ["tenant_id", "tenant", "principal_id", "owner_id", "acl", "writers", "scope", "role"])
async def test_T05_a_tenant_or_a_right_in_a_body_is_refused(town: Town, name: str) -> None:
    ids = await left_by(town.dave, f"body-{name}")
    claimed = {name: str(town.alice.tenant_id)}
    in_window = {**request("s", window()), "window": {"messages": window(), **claimed}}

    answers = [
        await town.dave.http.post("/v1/compactions", json={**request("s"), **claimed}),
        await town.dave.http.post("/v1/compactions", json=in_window),
        await town.dave.http.post("/v1/recall", json={"query": "x", **claimed}),
        await town.dave.http.patch(f"/v1/sessions/{ids.session}", json=claimed),
    ]

    assert [answer.status_code for answer in answers] == [422] * 4


async def test_T05_a_key_proves_its_own_tenant_and_no_other(town: Town) -> None:
    """A key reads ``ck_<tenant>_<key id>_<secret>``: its first two parts are claims that the third has to prove."""
    alices, daves = _parsed(town.alice), _parsed(town.dave)
    forged = [
        dataclasses.replace(daves, tenant_id=alices.tenant_id),
        dataclasses.replace(daves, tenant_id=alices.tenant_id, key_id=alices.key_id),
        dataclasses.replace(daves, key_id=alices.key_id),
        dataclasses.replace(alices, tenant_id=daves.tenant_id),
        dataclasses.replace(alices, key_id=_parsed(town.bob).key_id),
        dataclasses.replace(alices, tenant_id=UUID(int=0)),
    ]

    answers = [
        await town.dave.http.get("/v1/sessions", headers={"Authorization": f"Bearer {key.text}"}) for key in forged
    ] + [
        await town.dave.http.get("/v1/sessions", headers=headers)
        for headers in (
            {"Authorization": ""},
            {"Authorization": f"Bearer {town.alice.tenant_id}"},
            {"Authorization": f"Basic {town.alice.caller.key}"},
        )
    ]  # fmt: skip

    assert {answer.status_code for answer in answers} == {401}
    assert len({json.dumps({**answer.json(), "instance": ""}) for answer in answers}) == 1


async def test_two_credentials_are_none(town: Town) -> None:
    both = [("Authorization", f"Bearer {town.dave.caller.key}"), ("Authorization", f"Bearer {town.alice.caller.key}")]
    transport = town.dave.http._transport
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as http:
        assert (await http.get("/v1/sessions", headers=both)).status_code == 401


async def test_a_page_token_serves_its_caller_its_list_and_nothing_else(town: Town) -> None:
    for mark in ("page-one", "page-two"):
        ids = await left_by(town.alice, mark)
        await left_by(town.bob, mark)
    token = (await town.alice.http.get("/v1/sessions?page_size=1")).json()["next_page_token"]
    of_entries = (await town.alice.http.get(f"/v1/manifests/{ids.manifest}/entries?page_size=1")).json()["next_page_token"]

    answers = [
        await town.alice.http.get(f"/v1/sessions?page_token={token}"),
        await town.bob.http.get(f"/v1/sessions?page_token={token}"),
        await town.dave.http.get(f"/v1/sessions?page_token={token}"),
        await town.alice.http.get(f"/v1/sessions?page_token={of_entries}"),
        await town.alice.http.get(f"/v1/manifests/{ids.manifest}/entries?page_token={token}"),
        await town.dave.http.get(f"/v1/manifests/{ids.manifest}/entries?page_token={of_entries}"),
        await town.alice.http.get(f"/v1/sessions?page_token={token[:-2]}xx"),
    ]

    assert [answer.status_code for answer in answers] == [200, 422, 422, 422, 422, 422, 422]


async def test_a_revoked_key_is_refused_with_the_next_request(town: Town) -> None:
    made = (await town.operator.http.post("/v1/admin/keys", json={"name": "short-lived"})).json()
    headers = {"Authorization": f"Bearer {made['key']}"}
    assert (await town.operator.http.get("/v1/sessions", headers=headers)).status_code == 200

    assert (await town.operator.http.delete(f"/v1/admin/keys/{made['key_id']}")).status_code == 204

    assert (await town.operator.http.get("/v1/sessions", headers=headers)).status_code == 401
    assert (await town.operator.http.post("/mcp", json={}, headers=headers)).status_code == 401


async def test_an_expired_key_is_refused(town: Town) -> None:
    expired = await apps.expired_key(town.app, town.operator.caller)

    assert (await town.operator.http.get("/v1/sessions", headers=expired.headers)).status_code == 401


async def test_a_key_grants_neither_operations_nor_sessions_that_its_maker_lacks(town: Town) -> None:
    ids = await left_by(town.operator, "narrow")
    narrow = await town.operator.http.post(
        "/v1/admin/keys", json={"name": "narrow", "operations": ["keys", "read", "recall"], "sessions": [str(ids.session)]}
    )
    headers = {"Authorization": f"Bearer {narrow.json()['key']}"}

    async def make(**asked: object) -> int:
        return (await town.operator.http.post("/v1/admin/keys", json={"name": "k", **asked}, headers=headers)).status_code

    assert await make(operations=["read"]) == 201
    assert await make(operations=["erase"]) == 403
    assert await make(operations=["read"], sessions=[str(ids.manifest)]) == 403
    assert await make(operations=["read"], principal_id=str(town.bob.principal_id)) == 403


async def test_no_key_is_made_for_a_principal_of_another_tenant(town: Town) -> None:
    foreign, unknown = [
        (await town.operator.http.post("/v1/admin/keys", json={"name": "k", "principal_id": str(principal_id)})).json()
        for principal_id in (town.dave.principal_id, UNKNOWN)
    ]

    assert {**foreign, "instance": ""} == {**unknown, "instance": ""}
    assert foreign["status"] == 422


def _parsed(person: Person) -> Any:
    return bearer_api_key(f"Bearer {person.caller.key}")


async def test_no_number_of_jobs_of_another_pushes_out_mine(town: Town) -> None:
    mine = (await town.operator.http.post("/v1/admin/scan", json={"index": False})).json()["job_id"]

    for _ in range(MAX_JOBS + 1):
        await job(town.dave.http, "scan", index=False)

    assert (await town.operator.http.get(f"/v1/admin/scan/{mine}")).status_code == 200
