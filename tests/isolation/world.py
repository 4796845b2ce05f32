"""Who stands at the doors in the matrix: an owner with everything, strangers with rights of their own, and what counts no more."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, fields

import httpx

from coatcheck.app.compose import App
from coatcheck.identity.operations import EVERYTHING, MEMBER, OPERATOR, Operation
from tests import apps
from tests.api.operations import Ids, Row
from tests.apps import Caller
from tests.isolation import secret, signing
from tests.isolation.holdings import holdings_of
from tests.isolation.signing import issuer_of
from tests.isolation.town import Person, left_by

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
    async with AsyncExitStack() as stack:
        http, owner_http, foreign_http, over_there = [
            await stack.enter_async_context(apps.client(app, caller)) for caller in (None, owner_key, foreign_key, foreign_tenant)
        ]
        owner = Person("owner", owner_key, owner_http)
        issuer, foreign_issuer = [await stack.enter_async_context(issuer_of(operator)) for operator in (owner_http, over_there)]
        yield World(
            app,
            http,
            owner,
            await holdings_of(owner, CANARY),
            {**await _refused(app, owner), **{name: _bearer(token) for name, token in signing.refused(issuer).items()}},
            {**await _strangers(app, owner, foreign_key), **_signed_strangers(owner, issuer, foreign_issuer)},
            Person("foreigner", foreign_key, foreign_http),
        )


async def _refused(app: App, owner: Person) -> dict[str, Headers]:
    """Credentials that prove nothing, or nothing any more."""
    key, tenant = owner.caller.key, owner.tenant_id
    other = await apps.new_tenant(app)
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
        "expired": (await apps.expired_key(app, owner.caller)).headers,
        "revoked": _bearer(revoked["key"]),
        "a delegate of a key that was revoked": _bearer(orphan),
        "a delegate for another door": _bearer(elsewhere),
    }


async def _strangers(app: App, owner: Person, foreign: Caller) -> dict[str, Stranger]:
    tenant, itself = owner.tenant_id, frozenset({str(owner.tenant_id), str(owner.principal_id)})
    colleague = await apps.new_principal(app, tenant, MEMBER)
    key_holder = await apps.new_principal(app, tenant, MEMBER | {Operation.KEYS})
    elsewhere = (await left_by(owner, "elsewhere")).session
    narrow = await _key(owner, sessions=[str(elsewhere)], operations=sorted(EVERYTHING))
    delegate = await _delegated(owner.http, sessions=[str(elsewhere)], audience=["api", "mcp"])
    return {
        "foreign tenant": Stranger(foreign.headers, OPERATOR),
        "same tenant, other principal": Stranger(colleague.headers, MEMBER, knows=frozenset({str(tenant)})),
        "same tenant, one who handles its own keys": Stranger(
            key_holder.headers, MEMBER | {Operation.KEYS}, knows=frozenset({str(tenant)})
        ),
        "a key of the owner's own kept to another session": Stranger(_bearer(narrow["key"]), EVERYTHING, True, itself),
        "a delegate of the owner's own kept to another session": Stranger(_bearer(delegate), MEMBER, True, itself),
    }


def _signed_strangers(owner: Person, issuer: str, foreign_issuer: str) -> dict[str, Stranger]:
    tenant, principal = str(owner.tenant_id), str(owner.principal_id)
    claiming = {"tenant": tenant, "tenant_id": tenant, "org_id": tenant, "principal_id": principal, "roles": ["operator"]}
    return {
        "a token of a member of the tenant": Stranger(_bearer(signing.signed(issuer)), MEMBER, knows=frozenset({tenant})),
        "a foreign token that claims to be of the tenant": Stranger(
            _bearer(signing.signed(foreign_issuer, acl=["public", f"p:{principal}"], **claiming)), MEMBER
        ),
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
