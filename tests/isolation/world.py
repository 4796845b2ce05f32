"""Who stands at the doors in the matrix: an owner with everything, strangers with rights of their own, and what counts no more."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields

import httpx
import jwt

from coatcheck.app.compose import App
from coatcheck.identity.operations import EVERYTHING, MEMBER, OPERATOR, Operation
from tests import apps
from tests.api.operations import Ids, Row
from tests.apps import Caller
from tests.identity.issuing import AUDIENCE, claims, key_set, public_jwk, token
from tests.isolation import secret
from tests.isolation.holdings import holdings_of
from tests.isolation.town import Person, left_by
from tests.outbound.network import WebServer, web_server

CANARY = "canary-" + secret.word(16)

OF_THE_TENANT = {
    Operation.SCAN,
    Operation.REPAIR,
    Operation.RECONCILE,
    Operation.REDACT,
    Operation.TENANTS,
    Operation.PRINCIPALS,
    Operation.RETENTION,
    Operation.AUDIT,
}
"""What concerns the tenant as a whole, and is not for a credential that is kept to some sessions."""

Headers = dict[str, str]


@dataclass(frozen=True, slots=True)
class Stranger:
    """Somebody whose credential is good, and for whom the owner's things do not exist."""

    headers: Headers
    operations: frozenset[str]
    kept_to_a_session: bool = False
    knows: frozenset[str] = frozenset()
    """What it is itself: its tenant, its principal."""

    def expects(self, row: Row) -> int:
        """The one status of this row for this stranger."""
        if row.operation not in self.operations or (self.kept_to_a_session and row.operation in OF_THE_TENANT):
            return 403
        return 404 if row.names_something or (self.kept_to_a_session and row.operation == Operation.IMPORT) else row.status


@dataclass(frozen=True, slots=True)
class World:
    """An app, an owner with one of everything, and everybody else by the name of the matrix's column."""

    app: App
    http: httpx.AsyncClient
    """Sends no credential by itself."""
    owner: Person
    theirs: Ids
    refused: Mapping[str, Headers]
    strangers: Mapping[str, Stranger]
    foreigner: Person
    """The operator of another tenant, who claims to be the owner."""

    @property
    def of_the_owner(self) -> list[str]:
        """Words that only answers to the owner may hold: its ids and the canary. Of a hash the same text may be anybody's."""
        ids = [str(getattr(self.theirs, field.name)) for field in fields(self.theirs) if field.name != "sha256"]
        return [str(self.owner.tenant_id), str(self.owner.principal_id), CANARY, *ids]

    @property
    def the_owners(self) -> list[str]:
        """The same without the tenant, of which others are too."""
        return [word for word in self.of_the_owner if word != str(self.owner.tenant_id)]

    def betrayed_by(self, answer: httpx.Response, *, but: frozenset[str] = frozenset()) -> list[str]:
        """What an answer tells of the owner, in its body or its headers, ``but`` what whoever asked for it is."""
        told = answer.text + str(answer.headers)
        return [word for word in self.of_the_owner if word in told and word not in but]

    async def without(self, operation: str) -> Headers:
        """A principal of the owner's tenant with every right but one."""
        caller = await apps.new_principal(self.app, self.owner.tenant_id, EVERYTHING - {operation})
        return caller.headers


@asynccontextmanager
async def new_world(app: App) -> AsyncIterator[World]:
    owner_key, foreign_tenant = await apps.new_tenant(app), await apps.new_tenant(app)
    foreign_key = await apps.new_principal(app, foreign_tenant.tenant_id, OPERATOR)
    async with (
        web_server() as issuer,
        apps.client(app) as http,
        apps.client(app, owner_key) as owner_http,
        apps.client(app, foreign_key) as foreign_http,
    ):
        owner = Person("owner", owner_key, owner_http)
        yield World(
            app,
            http,
            owner,
            await holdings_of(owner, CANARY),
            {**await _refused(app, owner), **await _tokens(http, owner, issuer)},
            await _strangers(app, owner, foreign_key),
            Person("foreigner", foreign_key, foreign_http),
        )


async def _refused(app: App, owner: Person) -> dict[str, Headers]:
    """Credentials that prove nothing, or nothing any more."""
    key, tenant = owner.caller.key, owner.tenant_id
    other = await apps.new_tenant(app)
    expired = await _key(owner, expires_at="2020-01-01T00:00:00Z")
    revoked = await _key(owner)
    async with apps.client(app, Caller(tenant, owner.principal_id, revoked["key"])) as http:
        orphan = await _delegated(http, audience=["api", "mcp"])
    elsewhere = await _delegated(owner.http, audience=["gateway"])
    assert (await owner.http.delete(f"/v1/admin/keys/{revoked['key_id']}")).status_code == 204
    return {
        "no credential": {},
        "an empty header": {"Authorization": ""},
        "malformed": {"Authorization": f"Bearer {key[:-1]}"},
        "malformed, another scheme": {"Authorization": f"Basic {key}"},
        "malformed, the tenant alone": {"Authorization": f"Bearer {tenant}"},
        "the wrong secret": _bearer(key[:-1] + ("A" if key[-1] != "A" else "B")),
        "another tenant's secret under this tenant's name": _bearer(f"ck_{tenant.hex}_" + other.key.split("_", 2)[2]),
        "expired": _bearer(expired["key"]),
        "revoked": _bearer(revoked["key"]),
        "a delegate of a key that was revoked": _bearer(orphan),
        "a delegate for another door": _bearer(elsewhere),
    }


async def _tokens(http: httpx.AsyncClient, owner: Person, issuer: WebServer) -> dict[str, Headers]:
    """Tokens of an issuer that speaks for the owner's tenant, in the owner's name; none of them proves it."""
    name, subject = f"https://{secret.word(12)}.example/", secret.word(8)
    issuer.says(key_set(public_jwk("ES256", "one"), public_jwk("RS256", "rsa")))
    asked = {"issuer": name, "jwks_uri": issuer.url, "audience": AUDIENCE}
    assert (await owner.http.post("/v1/admin/issuers", json=asked)).status_code == 201
    path, identity = f"/v1/admin/principals/{owner.principal_id}", {"issuer": name, "subject": subject}
    assert (await owner.http.patch(path, json=identity)).status_code == 200
    said = claims(subject, iss=name)
    assert (await http.get("/v1/sessions", headers=_bearer(token(said)))).status_code == 200
    head = {"alg": "none", "typ": "at+jwt", "kid": "one"}
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in (head, said)]
    shared = jwt.encode(said, "x" * 64, algorithm="HS256", headers={"kid": "one"})
    return {
        "a token without an algorithm": _bearer(f"{parts[0]}.{parts[1]}.AA"),
        "a token signed with a shared secret": _bearer(shared),
        "a token for another audience": _bearer(token({**said, "aud": "https://other.example/"})),
        "a token that has expired": _bearer(token({**said, "exp": said["iat"] - 3_600})),
        "a token of another key": _bearer(token(said, number=9)),
        "a token of an issuer that speaks for nobody": _bearer(token({**said, "iss": f"{name}x"})),
    }


async def _strangers(app: App, owner: Person, foreign: Caller) -> dict[str, Stranger]:
    tenant, itself = owner.tenant_id, frozenset({str(owner.tenant_id), str(owner.principal_id)})
    colleague = await apps.new_principal(app, tenant, MEMBER)
    elsewhere = (await left_by(owner, "elsewhere")).session
    narrow = await _key(owner, sessions=[str(elsewhere)], operations=sorted(EVERYTHING))
    delegate = await _delegated(owner.http, sessions=[str(elsewhere)], audience=["api", "mcp"])
    return {
        "foreign tenant": Stranger(foreign.headers, OPERATOR),
        "same tenant, other principal": Stranger(colleague.headers, MEMBER, knows=frozenset({str(tenant)})),
        "a key of the owner's own kept to another session": Stranger(_bearer(narrow["key"]), EVERYTHING, True, itself),
        "a delegate of the owner's own kept to another session": Stranger(_bearer(delegate), MEMBER, True, itself),
    }


async def _key(owner: Person, **asked: object) -> dict[str, str]:
    made = await owner.http.post("/v1/admin/keys", json={"name": "k", **asked})
    assert made.status_code == 201, made.text
    found: dict[str, str] = made.json()
    return found


async def _delegated(http: httpx.AsyncClient, **asked: object) -> str:
    made = await http.post("/v1/delegations", json={"name": "d", "operations": sorted(MEMBER), **asked})
    assert made.status_code == 201, made.text
    return str(made.json()["credential"])


def _bearer(key: str) -> Headers:
    return {"Authorization": f"Bearer {key}"}
