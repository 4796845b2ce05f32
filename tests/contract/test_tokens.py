"""Signed tokens over the routes, with a real issuer beside: who is let in, as whom, and what never widens anything."""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import jwt
import pytest
import pytest_asyncio

from coatcheck.app.compose import App
from coatcheck.identity.operations import MEMBER, OPERATOR
from coatcheck.identity.scopes import tenant_scope
from coatcheck.store import delegations, principals
from coatcheck.store.database import WorkerTransaction
from tests import apps, rpc
from tests.apps import Caller
from tests.identity.issuing import AUDIENCE, ISSUER, claims, key_set, private_key, public_jwk, token, unsigned
from tests.outbound.network import WebServer, web_server
from tests.windows import request, window


@dataclass(frozen=True, slots=True)
class Land:
    """An app with two tenants and an issuer that speaks for the first; ada is its member, boss its operator."""

    app: App
    http: httpx.AsyncClient
    issuer: WebServer
    operator: httpx.AsyncClient
    tenant: Caller
    stranger: Caller
    ada: str
    boss: str

    async def get(self, text: str, path: str = "/v1/sessions", **headers: str) -> httpx.Response:
        return await self.http.get(path, headers={"Authorization": f"Bearer {text}", **headers})

    async def status(self, text: str, path: str = "/v1/sessions") -> int:
        return (await self.get(text, path)).status_code


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def land(database_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Land]:
    folder: Path = tmp_path_factory.mktemp("land")
    keys = [public_jwk(algorithm, kid) for algorithm, kid in (("ES256", "one"), ("RS256", "rsa"), ("EdDSA", "ed"))]
    async with web_server() as server, apps.app(database_url, folder, outbound_allow_loopback=True) as app:
        server.says(key_set(*keys))
        tenant, stranger = await apps.new_tenant(app), await apps.new_tenant(app)
        async with apps.client(app) as http, apps.client(app, tenant) as operator:
            asked = {"issuer": ISSUER, "jwks_uri": server.url, "audience": AUDIENCE}
            made = await operator.post("/v1/admin/issuers", json=asked)
            assert made.status_code == 201, made.text
            ids = [
                (await operator.post("/v1/admin/principals", json={"name": n, "role": role, "issuer": ISSUER, "subject": n})).json()
                for n, role in (("ada", "member"), ("boss", "operator"))
            ]
            yield Land(app, http, server, operator, tenant, stranger, *(one["principal_id"] for one in ids))


def signed(claimed: str, head: str = '{"typ": "at+jwt", "alg": "ES256", "kid": "one"}') -> str:
    """A token of the issuer over these very texts, which no library would write."""
    body = ".".join(base64.urlsafe_b64encode(part.encode()).rstrip(b"=").decode() for part in (head, claimed))
    key = private_key("ES256", 0)
    signature = jwt.algorithms.ECAlgorithm(jwt.algorithms.ECAlgorithm.SHA256).sign(body.encode(), key)
    return f"{body}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


def twice(name: str, other: object, **more: object) -> str:
    """Good claims, in which a name stands twice: first as given, then as it should be."""
    return "{" + json.dumps({name: other})[1:-1] + ", " + json.dumps({**claims(), **more})[1:]


def tampered(text: str, **changes: object) -> str:
    head, body, signature = text.split(".")
    said = {**json.loads(base64.urlsafe_b64decode(body + "==")), **changes}
    return f"{head}.{base64.urlsafe_b64encode(json.dumps(said).encode()).rstrip(b'=').decode()}.{signature}"


@pytest.mark.parametrize(("algorithm", "kid"), [("ES256", "one"), ("RS256", "rsa"), ("EdDSA", "ed")])
async def test_a_token_is_its_subjects_principal(land: Land, algorithm: str, kid: str) -> None:
    text = token(algorithm=algorithm, kid=kid)

    made = await land.http.post(
        "/v1/compactions", json=request(f"by-{kid}", window(mark=kid)), headers={"Authorization": f"Bearer {text}"}
    )

    assert made.status_code == 201, made.text
    session = (await land.get(text, f"/v1/sessions/{made.json()['session_id']}")).json()
    assert session["owner_id"] == land.ada
    assert await land.status(token(claims("boss")), f"/v1/sessions/{session['session_id']}") == 404


async def test_a_tokens_rights_are_its_principals_role_and_a_scope_narrows_them(land: Land) -> None:
    paths = {"sessions": "/v1/sessions", "principals": "/v1/admin/principals", "tenants": "/v1/admin/tenants"}

    async def reached(said: dict[str, Any]) -> set[str]:
        text = token(said)
        return {name for name, path in paths.items() if await land.status(text, path) == 200}

    assert await reached(claims("ada")) == {"sessions"}
    assert await reached(claims("boss")) == {"sessions", "principals"}
    assert await reached(claims("boss", scope="sessions openid")) == {"sessions"}
    assert await reached(claims("ada", scope="sessions principals tenants")) == {"sessions"}
    assert await reached(claims("boss", scope="openid profile")) == set()
    assert await reached(claims("boss", scope="")) == set()
    assert {"tenants"} == set(paths) - {"sessions", *OPERATOR}
    assert "sessions" in MEMBER


REFUSED: dict[str, Any] = {
    "two subjects": lambda: signed(twice("sub", "boss")),
    "two ends": lambda: signed(twice("exp", 1)),
    "two scopes": lambda: signed(twice("scope", "tenants", scope="sessions")),
    "two names below": lambda: signed(twice("act", 1, act={"sub": 1})),
    "two key names": lambda: signed(json.dumps(claims()), '{"kid": "two", "typ": "at+jwt", "alg": "ES256", "kid": "one"}'),
    "two algorithms": lambda: signed(json.dumps(claims()), '{"alg": "none", "typ": "at+jwt", "alg": "ES256", "kid": "one"}'),
    "a fourth part": lambda: token() + ".YQ",
    "characters that base64 readers pass over": lambda: token().replace(".", ".!", 1),
    "padding": lambda: token() + "==",
    "no algorithm": lambda: unsigned(claims()),
    "no algorithm, written otherwise": lambda: unsigned(claims(), alg="NoNe"),
    "an algorithm that is a list": lambda: unsigned(claims(), alg=["ES256"]) + "YQ",
    "an algorithm that is an object": lambda: unsigned(claims(), alg={"ES256": 1}) + "YQ",
    "a kind that is a list": lambda: unsigned(claims(), alg="ES256", typ=["JWT"]) + "YQ",
    "no signature": lambda: token().rpartition(".")[0] + ".",
    "the signature of another token": lambda: token().rpartition(".")[0] + "." + token(claims("boss")).rpartition(".")[2],
    "changed since it was signed": lambda: tampered(token(), sub="boss"),
    "another key under a known name": lambda: token(number=9),
    "an unknown key": lambda: token(kid="two", number=2),
    "no key's name": lambda: token(kid=None),
    "a shared secret": lambda: jwt.encode(claims(), "x" * 64, algorithm="HS256", headers={"kid": "one"}),
    "another algorithm of the same key": lambda: token(algorithm="PS256", kid="rsa", key=private_key("RS256")),
    "an algorithm of another key": lambda: token(algorithm="RS256", kid="one"),
    "its own key in its head": lambda: token(number=9, jwk=public_jwk("ES256", "one", 9)),
    "the address of its keys in its head": lambda: token(number=9, jku="https://evil.example/jwks", x5u="https://evil.example/"),
    "an extension that must be understood": lambda: token(crit=["exp"]),
    "another kind of token": lambda: token(typ="dpop+jwt"),
    "a kind that is no text": lambda: token(typ="logout+jwt"),
    "another audience": lambda: token(claims(aud="https://other.example.org")),
    "no audience": lambda: token(claims(aud=None)),
    "many other audiences": lambda: token(claims(aud=["a", "b"])),
    "another issuer": lambda: token(claims(iss="https://evil.example/")),
    "the issuer with another ending": lambda: token(claims(iss=ISSUER.rstrip("/"))),
    "no issuer": lambda: token(claims(iss=None)),
    "several issuers": lambda: token(claims(iss=[ISSUER])),
    "expired": lambda: token(claims(exp=int(time.time()) - 60)),
    "without an end": lambda: token(claims(exp=None)),
    "an end that is no time": lambda: token(claims(exp="never")),
    "an end beyond all time": lambda: token(claims(exp=10**30)),
    "an end at infinity": lambda: token(claims(exp=float("inf"))),
    "not yet": lambda: token(claims(nbf=int(time.time()) + 300)),
    "from the future": lambda: token(claims(iat=int(time.time()) + 300)),
    "without a beginning": lambda: token(claims(iat=None)),
    "an unknown subject": lambda: token(claims("nobody")),
    "no subject": lambda: token(claims(sub=None)),
    "an empty subject": lambda: token(claims("")),
    "a subject that is a number": lambda: token(claims(sub=7)),
    "a subject with a NUL": lambda: token(claims("ada\x00")),
    "a subject that is half a character": lambda: token(claims("\ud800")),
    "a scope that is no text": lambda: token(claims(scope=["sessions"])),
    "no claims at all": lambda: token({}),
    "very long": lambda: token(claims(filler="x" * 8_192)),
    "no JSON": lambda: "YQ.YQ.YQ",
    "deeply nested": lambda: base64.urlsafe_b64encode(b"[" * 3_000).decode().rstrip("=") + ".e30.YQ",
    "four parts": lambda: token() + ".x",
}


@pytest.mark.parametrize("name", REFUSED)
async def test_T14_a_token_that_does_not_prove_all_of_it_gets_the_one_refusal(land: Land, name: str) -> None:
    nowhere = await land.http.get("/v1/sessions")

    answer = await land.get(REFUSED[name]())

    assert answer.status_code == nowhere.status_code == 401
    assert {**answer.json(), "instance": ""} == {**nowhere.json(), "instance": ""}
    assert {name for name in answer.headers if name != "x-request-id"} == {n for n in nowhere.headers if n != "x-request-id"}


async def test_a_token_is_taken_as_it_was_written_with_each_name_once(land: Land) -> None:
    assert await land.status(signed(json.dumps(claims(), indent=2))) == 200


async def test_small_differences_of_clocks_are_borne(land: Land) -> None:
    now = int(time.time())

    assert await land.status(token(claims(exp=now - 10, iat=now + 10, nbf=now + 10))) == 200


async def test_T05_nothing_else_that_a_token_says_widens_it(land: Land) -> None:
    theirs = {
        "tenant": str(land.stranger.tenant_id), "tenant_id": str(land.stranger.tenant_id), "tid": str(land.stranger.tenant_id),
        "org": str(land.stranger.tenant_id), "principal_id": land.boss, "act": {"sub": "boss"}, "admin": True, "is_admin": 1,
        "role": "operator", "roles": ["operator"], "groups": ["operators"], "teams": ["*"], "operations": ["tenants"],
        "permissions": ["*"], "scp": "tenants principals", "acl": ["public"], "sessions": None, "email": "boss",
    }  # fmt: skip
    text = token(claims("ada", **theirs))

    assert await land.status(text) == 200
    for path in ("/v1/admin/principals", "/v1/admin/keys", "/v1/admin/tenants", "/v1/admin/audit"):
        assert await land.status(text, path) == 403
    made = await land.http.post("/v1/compactions", json=request("extra"), headers={"Authorization": f"Bearer {text}"})
    assert (await land.get(token(), f"/v1/sessions/{made.json()['session_id']}")).json()["owner_id"] == land.ada


async def test_a_token_comes_through_every_door_and_delegates_for_as_long_as_it_lasts(land: Land) -> None:
    text = token(claims("ada", exp=int(time.time()) + 300))
    mine = {"Authorization": f"Bearer {text}"}

    tools = await land.http.post("/mcp", json=rpc.message("tools/list"), headers={**rpc.HEADERS, **mine})
    asked = {"name": "agent", "audience": ["api"], "operations": ["sessions"]}
    agent = await land.http.post("/v1/delegations", json=asked, headers=mine)
    longer = await land.http.post("/v1/delegations", json={**asked, "expires_in_s": 3_600}, headers=mine)
    no_key = await land.http.post("/v1/admin/keys", json={"name": "lasting"}, headers=mine)

    assert (tools.status_code, agent.status_code, longer.status_code, no_key.status_code) == (200, 201, 403, 403)
    assert await land.status(agent.json()["credential"]) == 200


async def test_an_operators_token_makes_no_key_that_outlives_it(land: Land) -> None:
    mine = {"Authorization": f"Bearer {token(claims('boss', exp=int(time.time()) + 300))}"}

    key = (await land.http.post("/v1/admin/keys", json={"name": "k", "operations": ["read"]}, headers=mine)).json()
    lasting = await land.http.post("/v1/admin/keys", json={"name": "k", "expires_at": "2100-01-01T00:00:00Z"}, headers=mine)

    assert key["expires_at"] is not None
    assert lasting.status_code == 403


async def test_who_is_deactivated_or_loses_its_subject_is_refused_with_its_next_request(land: Land) -> None:
    eve = {"name": "eve", "issuer": ISSUER, "subject": "eve"}
    path = "/v1/admin/principals/" + (await land.operator.post("/v1/admin/principals", json=eve)).json()["principal_id"]
    text, statuses = token(claims("eve")), []

    for change in ({}, {"status": "inactive"}, {"status": "active"}, {"subject": None, "issuer": None}):
        await land.operator.patch(path, json=change)
        statuses.append(await land.status(text))

    assert statuses == [200, 401, 200, 401]


@pytest.mark.parametrize("change", [{"subject": "eve-2"}, {"subject": None, "issuer": None}], ids=str)
async def test_what_a_token_made_ends_with_its_subject_and_what_a_key_made_does_not(land: Land, change: dict[str, Any]) -> None:
    person = (await land.operator.post("/v1/admin/principals", json={"name": "eve", "issuer": ISSUER, "subject": "eve"})).json()
    path = f"/v1/admin/principals/{person['principal_id']}"
    key = (await land.operator.post("/v1/admin/keys", json={"name": "k", "principal_id": person["principal_id"]})).json()["key"]
    asked = {"name": "agent", "audience": ["api"], "operations": ["sessions", "delegate"]}

    async def agent(by: str) -> str:
        made = await land.http.post("/v1/delegations", json=asked, headers={"Authorization": f"Bearer {by}"})
        assert made.status_code == 201, made.text
        credential: str = made.json()["credential"]
        return credential

    of_token, of_key = await agent(token(claims("eve"))), await agent(key)
    helper, statuses = await agent(of_token), []
    for patch in ({"name": "eve the second"}, change):
        assert (await land.operator.patch(path, json=patch)).status_code == 200
        statuses.append([await land.status(one) for one in (of_token, helper, of_key)])
    await land.operator.patch(path, json={"subject": None, "issuer": None})

    assert statuses == [[200, 200, 200], [401, 401, 200]]


async def test_a_delegate_that_is_made_while_its_makers_subject_changes_is_not_made(land: Land) -> None:
    person = (await land.operator.post("/v1/admin/principals", json={"name": "eve", "issuer": ISSUER, "subject": "eve"})).json()
    asked = {"name": "agent", "audience": ["api"], "operations": ["sessions"]}
    changed, go_on = asyncio.Event(), asyncio.Event()

    async def another_subject(tx: WorkerTransaction) -> None:
        eve = await principals.lock(tx, UUID(person["principal_id"]))
        assert eve is not None
        assert await principals.update(tx, dataclasses.replace(eve, issuer=None, subject=None))
        await delegations.revoke_of_tokens(tx, eve.principal_id, land.app.parts.clock())
        changed.set()
        await go_on.wait()

    change = asyncio.create_task(land.app.parts.database.work(tenant_scope(land.tenant.tenant_id), another_subject))
    await asyncio.wait_for(changed.wait(), 10)
    made = asyncio.create_task(
        land.http.post("/v1/delegations", json=asked, headers={"Authorization": f"Bearer {token(claims('eve'))}"})
    )
    await asyncio.wait({made}, timeout=0.3)
    go_on.set()
    await change

    assert (await made).status_code == 401


async def test_an_issuer_speaks_for_one_tenant_until_it_is_taken_out(land: Land) -> None:
    async with web_server() as server:
        server.says(key_set(public_jwk("ES256", "one")))
        other = {"issuer": "https://second.example/", "jwks_uri": server.url, "audience": AUDIENCE}
        made = await land.operator.post("/v1/admin/issuers", json={**other, "tenant_id": str(land.stranger.tenant_id)})
        again = await land.operator.post("/v1/admin/issuers", json=other)
        async with apps.client(land.app, land.stranger) as theirs:
            ada = {"name": "ada", "issuer": other["issuer"], "subject": "ada"}
            await theirs.post("/v1/admin/principals", json=ada)
        text = token(claims(iss=other["issuer"]))
        mine = {"Authorization": f"Bearer {text}"}
        before = await land.status(text)
        agent = await land.http.post(
            "/v1/delegations", json={"name": "a", "audience": ["api"], "operations": ["sessions"]}, headers=mine
        )
        listed = (await land.operator.get("/v1/admin/issuers?page_size=200")).json()["issuers"]
        gone = [(await land.operator.delete("/v1/admin/issuers", params={"issuer": other["issuer"]})).status_code for _ in range(2)]
        after = await land.status(text), await land.status(agent.json()["credential"])

    assert (made.status_code, made.json()["tenant_id"]) == (201, str(land.stranger.tenant_id))
    assert again.status_code == 422
    assert other["issuer"] in {one["issuer"] for one in listed}
    assert (before, gone, after) == (200, [204, 404], (401, 401))


async def test_an_issuer_whose_keys_cannot_be_had_is_said_to_be_away(land: Land) -> None:
    async with web_server() as server:
        server.says(b"", "500 Oh")
        other = {"issuer": "https://down.example/", "jwks_uri": server.url, "audience": AUDIENCE}
        assert (await land.operator.post("/v1/admin/issuers", json=other)).status_code == 201

        answers = [await land.get(token(claims(iss=other["issuer"]))) for _ in range(20)]

    assert {answer.status_code for answer in answers} == {503}
    assert answers[0].json()["type"].endswith(":issuer-unavailable")
    assert answers[0].headers["retry-after"] == "30"
    assert len(server.requests) == 1


async def test_T30_no_made_up_key_or_issuer_makes_the_service_fetch(land: Land) -> None:
    before = len(land.issuer.requests)

    for number in range(50):
        assert await land.status(token(kid=f"made up {number}", number=9)) == 401
        assert await land.status(token(claims(iss=f"https://evil{number}.example/"), number=9)) == 401

    assert len(land.issuer.requests) <= before + 1


@pytest.mark.parametrize(
    "uri",
    [
        "https://169.254.169.254/latest",
        "https://10.0.0.1/jwks",
        "http://keys.example/jwks#x",
        "https://0x7f.1/",
        "file:///etc/passwd",
    ],
)
async def test_T30_keys_are_not_named_at_an_address_inside(land: Land, uri: str) -> None:
    asked = {"issuer": "https://inside.example/", "jwks_uri": uri, "audience": AUDIENCE}

    answer = await land.operator.post("/v1/admin/issuers", json=asked)

    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "/jwks_uri"


async def test_issuers_are_named_by_the_installations_operator_alone(land: Land) -> None:
    plain = await apps.new_principal(land.app, land.tenant.tenant_id, OPERATOR)
    asked = {"issuer": "https://mine.example/", "jwks_uri": "https://mine.example/jwks", "audience": "a"}

    async with apps.client(land.app, plain) as client:
        answers = [
            await client.post("/v1/admin/issuers", json=asked),
            await client.get("/v1/admin/issuers"),
            await client.delete("/v1/admin/issuers", params={"issuer": ISSUER}),
        ]

    assert {answer.status_code for answer in answers} == {403}
    nowhere = await land.operator.post("/v1/admin/issuers", json={**asked, "tenant_id": "01932dea-0000-7000-8000-00000000dead"})
    assert nowhere.status_code == 404
