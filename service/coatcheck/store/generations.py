"""The index's generations: which embedder and analyser its points were made with."""

from __future__ import annotations

import json
from dataclasses import dataclass

import sqlalchemy as sa

from coatcheck.store.database import DirectoryTransaction

_CURRENT = sa.text("""
    SELECT generation, embedder_revision, dimensions, analyser_revision, fusion, status FROM generations
     ORDER BY generation DESC LIMIT 1
""")

_INSERT = sa.text("""
    INSERT INTO generations (generation, embedder_revision, dimensions, analyser_revision, fusion, status)
    VALUES (:generation, :embedder_revision, :dimensions, :analyser_revision, CAST(:fusion AS jsonb), :status)
    ON CONFLICT DO NOTHING
""")

_SUPERSEDED = sa.text("""
    SELECT generation FROM generations WHERE generation < :generation AND status <> 'retired' ORDER BY generation
""")

_SET_STATUS = sa.text("UPDATE generations SET status = :status WHERE generation = :generation")


@dataclass(frozen=True, slots=True)
class GenerationRow:
    """One generation; ``status``: ``building`` until every retained segment is in it, ``serving``, ``retired`` without a point."""

    generation: int
    embedder_revision: str
    dimensions: int
    analyser_revision: str
    fusion: dict[str, float]
    status: str


async def current(tx: DirectoryTransaction) -> GenerationRow | None:
    """The newest generation, whether it serves yet or not."""
    row = (await tx.connection.execute(_CURRENT)).one_or_none()
    if row is None:
        return None
    return GenerationRow(row.generation, row.embedder_revision, row.dimensions, row.analyser_revision, row.fusion, row.status)


async def superseded(tx: DirectoryTransaction, generation: int) -> list[int]:
    """The generations before this one that may still have points."""
    return list(await tx.connection.scalars(_SUPERSEDED, {"generation": generation}))


async def insert(tx: DirectoryTransaction, row: GenerationRow) -> bool:
    """Begins a generation; False when somebody else has begun one of that number."""
    result = await tx.connection.execute(
        _INSERT,
        {
            "generation": row.generation,
            "embedder_revision": row.embedder_revision,
            "dimensions": row.dimensions,
            "analyser_revision": row.analyser_revision,
            "fusion": json.dumps(row.fusion),
            "status": row.status,
        },
    )
    return result.rowcount == 1


async def set_status(tx: DirectoryTransaction, generation: int, status: str) -> None:
    """Records how far a generation is."""
    await tx.connection.execute(_SET_STATUS, {"generation": generation, "status": status})
