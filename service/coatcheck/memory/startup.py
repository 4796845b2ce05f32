"""What a start owes before it is ready: the generation, the dead owner's leases, the journal, an index that stopped uncleanly."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from itertools import groupby
from uuid import UUID

import structlog

from coatcheck.domain.errors import RefusedToStart
from coatcheck.domain.scopes import TenantScope
from coatcheck.identity.scopes import tenant_scope
from coatcheck.index.lexical import ANALYSER_REVISION
from coatcheck.index.points import LAYOUT_REVISION
from coatcheck.memory.collaborators import Collaborators, Generation
from coatcheck.memory.journal import ErasureJournal, JournalLine
from coatcheck.ops.faults import reach_async
from coatcheck.settings import Settings
from coatcheck.store import directory, generations, outbox, projections, run_leases, tombstones
from coatcheck.store.database import Database, DirectoryTransaction
from coatcheck.store.generations import GenerationRow
from coatcheck.store.offboarding import ERASING

log = structlog.get_logger(__name__)
ATTEMPTS = 5
WRITTEN_AS = f"{ANALYSER_REVISION}/{LAYOUT_REVISION}"
"""How words become a vector and what stands beside it: points that were written otherwise answer no search."""


@dataclass(frozen=True, slots=True)
class Opened:
    """The generation to write and read, and whether it is still to be filled."""

    generation: Generation
    building: bool


async def open_generation(database: Database, settings: Settings, embedder_revision: str, dimensions: int) -> Opened:
    """The current generation where embedder, analyser and layout are still the same; else the next, to be filled."""

    async def work(tx: DirectoryTransaction) -> Opened | None:
        current = await generations.current(tx)
        if current is not None and _same(current, embedder_revision, dimensions):
            return Opened(_generation(current), building=current.status == "building")
        number = current.generation + 1 if current is not None else 1
        has_rows = current is not None
        row = GenerationRow(
            generation=number,
            embedder_revision=embedder_revision,
            dimensions=dimensions,
            analyser_revision=WRITTEN_AS,
            fusion={"dense": settings.fusion_dense_weight, "lexical": settings.fusion_lexical_weight, "k": settings.fusion_rrf_k},
            status="building" if has_rows else "serving",
        )
        if await generations.insert(tx, row):
            return Opened(_generation(row), building=has_rows)
        return None

    # Of replicas that start at once one begins the generation, and the others take it as it then stands.
    for _ in range(ATTEMPTS):
        if (opened := await database.directory(work)) is not None:
            return opened
    raise RefusedToStart(
        "Replicas with different embedders start at once, and each begins a generation: start one after the other."
    )


async def check_journal(database: Database, journal: ErasureJournal) -> None:
    """Raises RefusedToStart when the journal knows of an erasure that the database does not: a backup was restored."""
    missing = [line async for line in unreplayed(database, journal)]
    if missing:
        number = "1 erasure" if len(missing) == 1 else f"{len(missing)} erasures"
        raise RefusedToStart(
            f"The erasure journal holds {number} that the database does not know: a backup was restored. "
            "Run `coatcheck restore` to do that again."
        )


async def unreplayed(database: Database, journal: ErasureJournal) -> AsyncIterator[JournalLine]:
    """The journal's lines without a tombstone, tenant by tenant, each erasure once: several may have worked at it.

    Of a tenant that was off-boarded that alone, and of one whose end is under way nothing: the worker goes on with it.
    """
    standing = {tenant.tenant_id: tenant.status for tenant in await database.directory(directory.tenants)}
    for tenant_id, lines in _by_tenant(journal):
        if standing.get(tenant_id, ERASING) == ERASING:
            continue
        ends = [line for line in lines if line.kind == "tenant"]
        if ends:
            yield ends[0]
        else:
            known = await database.work(
                tenant_scope(tenant_id),
                lambda tx, lines=lines: tombstones.existing(tx, [(line.kind, str(line.target_id)) for line in lines]),  # type: ignore[misc]
            )
            for line in lines:
                if (line.kind, str(line.target_id)) not in known:
                    yield line


async def tenants(database: Database) -> list[TenantScope]:
    """Every tenant, as a worker enters it."""
    return [tenant_scope(tenant.tenant_id) for tenant in await database.directory(directory.tenants)]


class Startup:
    """Brings what a stopped predecessor left to where it should be, one tenant at a time."""

    def __init__(self, parts: Collaborators) -> None:
        self._parts = parts

    async def void_leases(self) -> None:
        """Only where the data directory's lock is the lock of all data: its predecessor is dead, whatever its leases say."""
        now = self._parts.clock()
        for scope in await self._tenants():
            await self._parts.database.work(scope, lambda tx: run_leases.void_leases(tx, now))
        await reach_async("after-leases-voided")

    async def fill_generation(self) -> None:
        """Enqueues every acknowledged run of every tenant; the reconciler projects them."""
        await reach_async("before-fill")
        for scope in await self._tenants():
            await self._parts.database.work(scope, outbox.enqueue_every_run)

    async def close_generation(self) -> bool:
        """Once nothing is outstanding, frees the generations before and marks this one as serving. True when it does."""
        scopes = await self._tenants()
        for scope in scopes:
            stats = await self._parts.database.work(scope, outbox.stats)
            if stats.pending:
                return False
        number = self._parts.generation.number
        # In this order: a start that finds this one still building does all of it again.
        for older in await self._parts.database.directory(lambda tx: generations.superseded(tx, number)):
            await self._parts.index.delete_generation(older)
            for scope in scopes:
                await self._parts.database.work(scope, lambda tx: projections.delete_before(tx, number))
            await self._parts.database.directory(lambda tx, older=older: generations.set_status(tx, older, "retired"))  # type: ignore[misc]
        await self._parts.database.directory(lambda tx: generations.set_status(tx, number, "serving"))
        self._parts.state.building = False
        return True

    async def _tenants(self) -> list[TenantScope]:
        return await tenants(self._parts.database)


def _by_tenant(journal: ErasureJournal) -> Iterator[tuple[UUID, list[JournalLine]]]:
    once = {(line.tenant_id, line.kind, line.target_id): line for line in journal.lines()}
    lines = sorted(once.values(), key=lambda line: line.tenant_id)
    for tenant_id, group in groupby(lines, key=lambda line: line.tenant_id):
        yield tenant_id, list(group)


def _same(row: GenerationRow, embedder_revision: str, dimensions: int) -> bool:
    return (row.embedder_revision, row.dimensions, row.analyser_revision) == (embedder_revision, dimensions, WRITTEN_AS)


def _generation(row: GenerationRow) -> Generation:
    return Generation(row.generation, row.embedder_revision, row.analyser_revision)
