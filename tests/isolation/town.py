"""Two tenants and five principals over one app: who asks, and what there is to be asked for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import httpx

from coatcheck.app.compose import App
from coatcheck.identity.operations import MEMBER
from tests import apps
from tests.api.operations import Ids
from tests.apps import Caller
from tests.windows import request, window


@dataclass(frozen=True, slots=True)
class Person:
    """A principal with its key, and a client that sends it."""

    name: str
    caller: Caller
    http: httpx.AsyncClient

    @property
    def tenant_id(self) -> UUID:
        return self.caller.tenant_id

    @property
    def principal_id(self) -> UUID:
        return self.caller.principal_id

    async def compact(self, session: str, messages: list[dict[str, Any]] | None = None, **more: object) -> dict[str, Any]:
        """A window handed in; its answer."""
        made = await self.http.post("/v1/compactions", json=request(session, messages, **more))
        assert made.status_code in (200, 201), made.text
        body: dict[str, Any] = made.json()
        return body

    async def recall(self, query: str, session: str | None = None, **more: object) -> list[dict[str, Any]]:
        """The hits."""
        found = await self.http.post("/v1/recall", json={"query": query, "session": session, **more})
        assert found.status_code == 200, found.text
        hits: list[dict[str, Any]] = found.json()["hits"]
        return hits


@dataclass(frozen=True, slots=True)
class Town:
    """Alice, Bob, Carol and the operator share a tenant, Alice and Carol a team in it; Dave has a tenant of his own."""

    app: App
    alice: Person
    bob: Person
    carol: Person
    operator: Person
    dave: Person
    team_id: UUID

    @property
    def everybody(self) -> dict[str, Person]:
        return {person.name: person for person in (self.alice, self.bob, self.carol, self.operator, self.dave)}


@asynccontextmanager
async def new_town(app: App) -> AsyncIterator[Town]:
    """A town with nothing in it yet."""
    operator, dave = await apps.new_tenant(app), await apps.new_tenant(app)
    team_id = uuid4()
    bob = await apps.new_principal(app, operator.tenant_id, MEMBER)
    alice = await apps.new_principal(app, operator.tenant_id, MEMBER, teams=(team_id,))
    carol = await apps.new_principal(app, operator.tenant_id, MEMBER, teams=(team_id,))
    callers = {"alice": alice, "bob": bob, "carol": carol, "operator": operator, "dave": dave}
    async with AsyncExitStack() as stack:
        people = {
            name: Person(name, caller, await stack.enter_async_context(apps.client(app, caller)))
            for name, caller in callers.items()
        }
        yield Town(app, **people, team_id=team_id)


async def left_by(person: Person, mark: str, **more: object) -> Ids:
    """What a session of this person's has that can be named: itself, a run and one of its segments."""
    made = await person.compact(mark, window(mark=mark), **more)
    entries = await person.http.get(f"/v1/manifests/{made['manifest_id']}/entries")
    first = entries.json()["entries"][0]
    return Ids(session=UUID(made["session_id"]), manifest=UUID(made["manifest_id"]), sha256=first["sha256"])
