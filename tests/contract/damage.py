"""Rows and points spoiled behind the service's back: by SQL as the superuser, and in the engine itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

import qdrant_edge as engine
import sqlalchemy as sa

from coatcheck.app.compose import App
from coatcheck.domain.canonical import sha256_hex
from coatcheck.domain.passages import StoredPoint
from coatcheck.index.edge import EdgeIndex
from coatcheck.index.points import readers
from coatcheck.store.engine import with_driver
from tests.postgres import Postgres


class Damage:
    """What may befall one tenant's memory."""

    def __init__(self, postgres: Postgres, database_url: str, app: App, tenant_id: UUID) -> None:
        name = sa.make_url(database_url).database
        assert name is not None
        self._engine = sa.create_engine(with_driver(postgres.owner_url(name)), poolclass=sa.NullPool)
        self._index = app.parts.index
        self._generation = app.parts.generation.number
        self.tenant_id = tenant_id

    def sql(self, statement: str, **parameters: object) -> Sequence[sa.Row[Any]]:
        """Runs a statement that row security does not hold back; ``:tenant`` is the tenant."""
        with self._engine.begin() as connection:
            result = connection.execute(sa.text(statement), {"tenant": self.tenant_id, **parameters})
            return list(result) if result.returns_rows else []

    def any_segment(self) -> tuple[UUID, str]:
        """Session and hash of one segment, always the same one."""
        row = self.sql("SELECT session_id, sha256 FROM segments WHERE tenant_id = :tenant ORDER BY session_id, sha256 LIMIT 1")[0]
        return row.session_id, row.sha256

    def add_reduction(self) -> str:
        """Gives one segment a shorter form, whole and right; the index does not know of it yet."""
        session_id, sha = self.any_segment()
        raw = b"a shorter form"
        self.sql(
            """INSERT INTO reductions (tenant_id, session_id, exact_sha256, reducer_revision, raw, sha256, verdicts)
               VALUES (:tenant, :session, :exact, 'test', :raw, :sha, '{}')""",
            session=session_id, exact=sha, raw=raw, sha=sha256_hex(raw),
        )  # fmt: skip
        return sha

    def projection(self, sha256: str) -> sa.Row[Any]:
        """What is recorded of a segment's points."""
        return self.sql("SELECT * FROM projections WHERE tenant_id = :tenant AND segment_sha256 = :sha", sha=sha256)[0]

    def everything(self) -> dict[str, list[str]]:
        """Every row of the tenant in every table, as text."""
        tables = self.sql(
            "SELECT table_name AS name FROM information_schema.columns WHERE column_name = 'tenant_id' AND table_schema = 'public'"
        )
        return {
            table.name: [
                row.said for row in self.sql(f"SELECT CAST(t AS text) AS said FROM {table.name} t WHERE tenant_id = :tenant")
            ]
            for table in tables
        }

    def texts(self) -> list[str]:
        """Every text of the tenant: its segments and its handoffs."""
        found = self.sql(
            """SELECT raw AS said FROM segments WHERE tenant_id = :tenant AND raw IS NOT NULL
               UNION ALL SELECT convert_to(handoff_text || handoff::text, 'UTF8') FROM runs WHERE tenant_id = :tenant"""
        )
        return [bytes(row.said).decode("utf-8", "surrogatepass") for row in found]

    async def points(self) -> list[StoredPoint]:
        """Every point that says that it is this tenant's."""
        return [p async for page in self._index.scroll() for p in page if p.tenant_id == self.tenant_id]

    async def point_of_segment(self) -> StoredPoint:
        _, sha = self.any_segment()
        return next(point for point in await self.points() if point.exact_sha256 == sha and point.passage == 0)

    @property
    def _shard(self) -> engine.EdgeShard:
        assert isinstance(self._index, EdgeIndex)
        return self._index._shard

    def relabel(self, point: StoredPoint, acl: Sequence[str] | None = None, **payload: object) -> None:
        """Changes what a point says of itself; its id stays."""
        if acl is not None:
            tenant_id = UUID(str(payload.get("tenant_id", point.tenant_id)))
            payload["readers"] = list(readers(tenant_id, point.generation, acl))
        self._shard.update(engine.UpdateOperation.set_payload([point.point_id], payload))

    def remove(self, point: StoredPoint) -> None:
        self._shard.update(engine.UpdateOperation.delete_points([point.point_id]))

    def blank(self, point: StoredPoint) -> None:
        """Takes away all that a point says of itself."""
        self._shard.update(engine.UpdateOperation.clear_payload([point.point_id]))

    def plant(self, like: StoredPoint, point_id: UUID, **payload: object) -> None:
        """Writes a point that nobody asked for."""
        said: dict[str, Any] = {
            "tenant_id": str(like.tenant_id),
            "session_id": str(like.session_id),
            "exact_sha256": like.exact_sha256,
            "reduced_sha256": like.reduced_sha256,
            "readers": list(readers(like.tenant_id, like.generation, like.acl)),
            "passage": like.passage,
            "generation": like.generation,
            "content_version": like.content_version,
            "kinds": ["text"],
            "roles": ["user"],
            "first_at": 0,
            "last_at": 0,
            **payload,
        }
        vectors: Any = {"lexical": engine.SparseVector([1], [1.0])}
        self._shard.update(engine.UpdateOperation.upsert_points([engine.Point(point_id, vectors, said)]))


def stranger() -> str:
    """An id of nobody."""
    return str(uuid4())
