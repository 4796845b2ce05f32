"""Scoped transactions: the one way to PostgreSQL.

Every transaction's first statement takes a role, a tenant and acl keys, all of them for this transaction alone. The login
itself holds no privileges, so a forgotten scope is "permission denied", never "all". Nothing but this module commits.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import LiteralString, TypeVar

import sqlalchemy as sa
import sqlalchemy.exc as sa_exc
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from coatcheck.domain.errors import StoreUnavailable
from coatcheck.domain.scopes import Scope, TenantScope
from coatcheck.store import binary, durability, engine
from coatcheck.store.failures import is_worth_another_attempt, translated

T = TypeVar("T")

ATTEMPTS = 4
"""The first, and three more after a deadlock or a lost race."""

_CLAIM: LiteralString = """
    SELECT set_config('role', %(role)s, true),
           set_config('app.tenant_id', %(tenant_id)s, true),
           set_config('app.acl', CAST(CAST(%(acl)s AS text[]) AS text), true),
           set_config('transaction_read_only', %(read_only)s, true),
           set_config('plan_cache_mode', %(plans)s, true)
"""


@dataclass(frozen=True, slots=True)
class ReadTransaction:
    """What one principal may read, read only."""

    scope: Scope
    connection: AsyncConnection


@dataclass(frozen=True, slots=True)
class WriteTransaction(ReadTransaction):
    """What one principal may read, and add to where it may write."""


@dataclass(frozen=True, slots=True)
class WorkerTransaction:
    """One tenant, whole: for workers, operators' scans and what the use cases have authorised themselves."""

    scope: TenantScope
    connection: AsyncConnection


@dataclass(frozen=True, slots=True)
class DirectoryTransaction:
    """Tenants, issuers and generations: the tables without row security, and no row of any other."""

    connection: AsyncConnection


AnyTransaction = ReadTransaction | WorkerTransaction
AnyWriteTransaction = WriteTransaction | WorkerTransaction


class Database:
    """A pool of connections of the serving login."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    @classmethod
    async def connect(
        cls, url: str, *, pool_size: int = 8, statement_timeout_s: float = 30, pool_timeout_s: float = 10
    ) -> Database:
        """Opens the pool and its first connection. Raises StoreUnavailable."""
        database = cls(
            engine.build(url, pool_size=pool_size, statement_timeout_s=statement_timeout_s, pool_timeout_s=pool_timeout_s)
        )
        try:
            await database.check()
        except BaseException:
            await database.close()
            raise
        return database

    async def read(self, scope: Scope, work: Callable[[ReadTransaction], Awaitable[T]], *, plan_once: bool = False) -> T:
        """Runs the work in a read-only transaction under the scope. Raises StoreUnavailable.

        ``plan_once``: what is prepared is planned at its first use on a connection and no more, whatever its parameters are. For
        statements that row security makes long to plan, and whose best plan is always the same.
        """
        claim = _claim("coatcheck_app", str(scope.tenant_id), scope.acl, read_only=True, plan_once=plan_once)
        return await self._attempts(claim, lambda connection: work(ReadTransaction(scope, connection)))

    async def write(self, scope: Scope, work: Callable[[WriteTransaction], Awaitable[T]]) -> T:
        """Runs the work under the scope and commits; again, whole, after a deadlock or a lost race. Raises StoreUnavailable."""
        claim = _claim("coatcheck_app", str(scope.tenant_id), scope.acl)
        return await self._attempts(claim, lambda connection: work(WriteTransaction(scope, connection)))

    async def work(self, scope: TenantScope, work: Callable[[WorkerTransaction], Awaitable[T]]) -> T:
        """As ``write``, under the worker's role: one tenant, whoever in it may read what. Raises StoreUnavailable."""
        claim = _claim("coatcheck_worker", str(scope.tenant_id), ())
        return await self._attempts(claim, lambda connection: work(WorkerTransaction(scope, connection)))

    async def directory(self, work: Callable[[DirectoryTransaction], Awaitable[T]]) -> T:
        """As ``write``, with no tenant: only the tables without row security hold any rows. Raises StoreUnavailable."""
        claim = _claim("coatcheck_worker", "", ())
        return await self._attempts(claim, lambda connection: work(DirectoryTransaction(connection)))

    async def check(self) -> None:
        """Returns when the database answers. Raises StoreUnavailable."""
        try:
            async with self._engine.connect() as connection:
                await connection.execute(sa.text("SELECT 1"))
        except sa_exc.SQLAlchemyError as error:
            raise translated(error) from None

    async def check_durability(self) -> dict[str, str]:
        """What the server promises, read back from it. Raises RefusedToStart when it promises too little, StoreUnavailable."""
        try:
            async with self._engine.connect() as connection:
                return await durability.read_back(connection)
        except sa_exc.SQLAlchemyError as error:
            raise translated(error) from None

    async def close(self) -> None:
        """Closes every connection that is not in use."""
        await self._engine.dispose()

    async def _attempts(self, claim: dict[str, object], work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return await self._transaction(claim, work)
            except sa_exc.SQLAlchemyError as error:
                if attempt == ATTEMPTS or not is_worth_another_attempt(error):
                    raise translated(error) from None
            # Both sides of a deadlock begin again: not at the same moment.
            await asyncio.sleep(random.uniform(0.2, 1) * 0.01 * 2**attempt)
        raise StoreUnavailable

    async def _transaction(self, claim: dict[str, object], work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        # The block's end rolls back whatever was not committed, in a task of its own, so that a cancellation cannot cut it short.
        async with self._engine.connect() as connection:
            await connection.begin()
            await binary.fetch(connection, _CLAIM, claim)
            result = await work(connection)
            await connection.commit()
            return result


def _claim(
    role: str, tenant_id: str, acl: tuple[str, ...], *, read_only: bool = False, plan_once: bool = False
) -> dict[str, object]:
    return {
        "role": role,
        "tenant_id": tenant_id,
        "acl": list(acl),
        "read_only": "on" if read_only else "off",
        "plans": "force_generic_plan" if plan_once else "auto",
    }
