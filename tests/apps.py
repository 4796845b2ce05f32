"""The whole app over real parts, for tests: a real database, the real embedded index, the real rules; only the model is small.

``foundations`` opens what one process opens once; ``app_on`` composes an app on them. Two apps on the same foundations, each with
its own owner, are two processes as far as leases and fences go.
"""

from __future__ import annotations

import functools
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import httpx

from coatcheck.app.compose import App, Foundations, composed
from coatcheck.app.data_dir import DataDirectory
from coatcheck.app.directory import StoreDirectory
from coatcheck.app.models import open_models
from coatcheck.app.storage import OpenedIndex
from coatcheck.compaction.redaction.redactor import Redactor
from coatcheck.identity import root_key
from coatcheck.identity.authenticate import Authenticator
from coatcheck.identity.context import RequestContext
from coatcheck.identity.credentials import new_api_key
from coatcheck.identity.operations import EVERYTHING, MEMBER
from coatcheck.identity.scopes import tenant_scope
from coatcheck.index.edge import EdgeIndex
from coatcheck.memory.keys import Grant, add_key
from coatcheck.memory.root_keys import open_keyring
from coatcheck.memory.startup import open_generation
from coatcheck.memory.tenants import create_tenant
from coatcheck.ops.progress import ProgressBoard, standard_stages
from coatcheck.settings import Settings, cache_dir, load
from coatcheck.store import principals
from coatcheck.store import teams as store_teams
from coatcheck.store.database import Database, WorkerTransaction


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody with a key."""

    tenant_id: UUID
    principal_id: UUID
    key: str

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"}


@functools.cache
def rules() -> Redactor:
    """The rules load once for all tests; the redactor holds no state."""
    return Redactor(cache_dir() / "rules")


def settings_for(database_url: str, folder: Path, **overrides: object) -> Settings:
    """Quick where nobody watches: a small model, short intervals. A test overrides what it is about.

    The response cache is on, and takes any two prompts for alike: what keeps them apart is then what has to.
    """
    quick: dict[str, object] = {
        "data_dir": folder / "data",
        "database_url": database_url,
        "erasure_journal": folder / "journal",
        "root_key": "ab" * 32,
        "embedder": "hashing",
        "reranker": "none",
        "reconcile_interval_s": 0.05,
        "drain_grace_s": 5,
        "log_level": "error",
        "response_cache": True,
        "response_cache_semantic": True,
        "response_cache_similarity": 0.0,
        "response_cache_timeout_s": 20,
    }
    return load({}, **{**quick, **overrides})


@asynccontextmanager
async def foundations(database_url: str, folder: Path, **overrides: object) -> AsyncIterator[Foundations]:
    """Rows in the given database, points in a folder of the test's own."""
    settings = settings_for(database_url, folder, **overrides)
    board = ProgressBoard(standard_stages(settings.stage_limit_s))
    models = open_models(settings, board)
    database = await Database.connect(database_url, pool_size=1)
    assert settings.root_key is not None
    earlier = settings.root_key_previous.get_secret_value().split(",") if settings.root_key_previous else []
    try:
        keyring = await open_keyring(
            database, root_key.parse(settings.root_key.get_secret_value()), [root_key.parse(text) for text in earlier]
        )
        generation = await open_generation(database, settings, models.embedder_revision, models.dimensions)
    finally:
        await database.close()
    with DataDirectory(settings.data_dir) as data:
        index = EdgeIndex.open(data.index)
        try:
            opened = OpenedIndex(index, index.was_clean, index.flushed_at)
            yield Foundations(settings, data, database_url, keyring, models, generation, opened, rules(), board)
        finally:
            await index.close()
            await models.close(10)


@asynccontextmanager
async def app_on(on: Foundations, owner: str | None = None, *, alone: bool = False) -> AsyncIterator[App]:
    """An app. ``alone``: as the only process of its data, which voids its predecessor's leases."""
    async with composed(on, owner=owner, alone=alone) as app:
        yield app


@asynccontextmanager
async def app(database_url: str, folder: Path, **overrides: object) -> AsyncIterator[App]:
    """One app on foundations of its own."""
    async with foundations(database_url, folder, **overrides) as on, app_on(on, alone=True) as one:
        yield one


def client(one: App, caller: Caller | None = None) -> httpx.AsyncClient:
    """Over the routes, edge included, with the caller's key."""
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(one.asgi), base_url="http://test", headers=caller.headers if caller else {}, timeout=60
    )


async def new_tenant(one: App) -> Caller:
    """A tenant with its operator, who may do everything."""
    tenant, key = await create_tenant(one.parts, f"tenant {secrets.token_hex(8)}", EVERYTHING)
    principal_id = await one.parts.database.work(tenant_scope(tenant.tenant_id), principals.first_operator)
    assert principal_id is not None
    return Caller(tenant.tenant_id, principal_id, key)


async def new_principal(
    one: App,
    tenant_id: UUID,
    operations: frozenset[str] = MEMBER,
    sessions: frozenset[UUID] | None = None,
    teams: tuple[UUID, ...] = (),
) -> Caller:
    """Another principal of the tenant, with a key of its own."""
    fresh = new_api_key(tenant_id, one.parts.new_id())
    principal_id = one.parts.new_id()

    async def work(tx: WorkerTransaction) -> None:
        await principals.insert(tx, principal_id, "somebody", "operator" if operations - MEMBER else "member")
        for team_id in teams:
            await store_teams.insert(tx, team_id, "a team", one.parts.clock())
            await store_teams.join(tx, principal_id, team_id, one.parts.clock())
        await add_key(one.parts, tx, fresh, "test", Grant(principal_id, operations, sessions, None))

    await one.parts.database.work(tenant_scope(tenant_id), work)
    return Caller(tenant_id, principal_id, fresh.text)


async def expired_key(one: App, holder: Caller) -> Caller:
    """Another key of the principal, whose time is over. The routes make none that is over already."""
    fresh = new_api_key(holder.tenant_id, one.parts.new_id())
    granted = Grant(holder.principal_id, EVERYTHING, None, one.parts.clock() - timedelta(seconds=1))
    await one.parts.database.work(tenant_scope(holder.tenant_id), lambda tx: add_key(one.parts, tx, fresh, "over", granted))
    return Caller(holder.tenant_id, holder.principal_id, fresh.text)


async def context_of(one: App, caller: Caller) -> RequestContext:
    """What the caller's requests carry through the use cases, for a test that asks one of them itself."""
    keys = Authenticator(StoreDirectory(one.parts.database), one.parts.keyring, one.parts.clock)
    return await keys.authenticate(caller.headers["Authorization"])
