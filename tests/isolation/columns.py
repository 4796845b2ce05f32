"""The matrix's columns by name, and what each claim to be somebody else adds to a request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

import httpx

from tests.api.operations import NOTHING, Ids, Row
from tests.isolation.claiming import claiming
from tests.isolation.world import World

REFUSED = (
    "no credential",
    "an empty header",
    "malformed",
    "malformed, another scheme",
    "malformed, the tenant alone",
    "the wrong secret",
    "another tenant's secret under this tenant's name",
    "expired",
    "revoked",
    "a delegate of a key that was revoked",
    "a delegate for another door",
    "a token without an algorithm",
    "a token signed with a shared secret",
    "a token signed by another key",
    "a token for another audience",
    "a token that has expired",
    "a token of another time to come",
    "a token of an issuer that nobody named",
    "a token of somebody whom nobody entered",
)
"""Made by ``World.refused``."""

STRANGERS = (
    "foreign tenant",
    "same tenant, other principal",
    "same tenant, one who handles its own keys",
    "a key of the owner's own kept to another session",
    "a delegate of the owner's own kept to another session",
    "a token of a member of the tenant",
    "a foreign token that claims to be of the tenant",
)
"""Made by ``World.strangers``."""

CLAIMS = ("tenant_id", "tenant", "principal_id", "owner_id", "acl", "scope")


@dataclass(frozen=True, slots=True)
class Forgery:
    """A request of the foreigner's that claims to be the owner's."""

    send: Callable[[World, str, Row], Awaitable[httpx.Response]]
    expects: Callable[[bool, int], int]
    """The status: of whether the operation takes a JSON body, and of what the same request without the claim is answered."""


async def _in_headers(world: World, method: str, row: Row) -> httpx.Response:
    return await row.send(
        world.http,
        method,
        world.theirs,
        {**claiming(world.owner.tenant_id, world.owner.principal_id), **world.foreigner.caller.headers},
    )


async def _in_query(world: World, method: str, row: Row) -> httpx.Response:
    claims = "&".join(f"{name}={world.owner.tenant_id}" for name in CLAIMS)
    return await row.send(world.http, method, world.theirs, world.foreigner.caller.headers, query=claims)


async def _in_body(world: World, method: str, row: Row) -> httpx.Response:
    more = {name: str(world.owner.tenant_id) for name in CLAIMS}
    return await row.send(world.http, method, world.theirs, world.foreigner.caller.headers, more=more)


async def _before_the_path(world: World, method: str, row: Row) -> httpx.Response:
    path = f"/v1/tenants/{world.owner.tenant_id}" + row.request(world.theirs)[0].removeprefix("/v1")
    return await world.http.request(method, path, headers=world.foreigner.caller.headers)


async def _as_every_id(world: World, method: str, row: Row) -> httpx.Response:
    tenant = world.owner.tenant_id
    ids = replace(NOTHING, **{name: tenant.hex * 2 if name == "sha256" else tenant for name in Ids.__slots__})  # type: ignore[arg-type]
    return await row.send(world.http, method, ids, world.foreigner.caller.headers)


def _unmoved(_takes_json: bool, plain: int) -> int:
    return plain


def _refused_where_it_is_read(takes_json: bool, plain: int) -> int:
    return 422 if takes_json else plain


FORGED = {
    "in headers and a cookie": Forgery(_in_headers, _unmoved),
    "in the query": Forgery(_in_query, _unmoved),
    "in the body": Forgery(_in_body, _refused_where_it_is_read),
    "before the path": Forgery(_before_the_path, lambda _takes_json, _plain: 404),
    "in every id's place": Forgery(_as_every_id, _unmoved),
}
