"""``isolation``: what keeping people apart costs, in pairs: a query's SQL, a leg's search, a whole recall.

Each pair asks the same, turn by turn: once as the service asks, once past row security or without filter and scoped statistics.
Two tenants share everything evenly.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import logging
import random
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from uuid import UUID, uuid4

import httpx
import sqlalchemy as sa
import structlog
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from benchmark.bare import BareIndex
from benchmark.bulk import Notes
from benchmark.report import Picture, Report, Table, rounded
from benchmark.service import DEADLINE_S, URL, effective, settings_for
from benchmark.stats import middle
from coatcheck.app.compose import App, Foundations, composed, foundations
from coatcheck.app.storage import OpenedIndex
from coatcheck.domain.canonical import JsonObject, sha256_of
from coatcheck.domain.passages import IndexPoint, PassageSpan, RecallFilter
from coatcheck.domain.ports import VectorIndex
from coatcheck.domain.scopes import PUBLIC, Scope, TenantScope, principal_key
from coatcheck.identity.operations import OPERATOR
from coatcheck.index.edge import EdgeIndex
from coatcheck.index.lexical import analyse_document, analyse_query
from coatcheck.memory.tenants import create_tenant
from coatcheck.settings import Settings
from coatcheck.store import candidates
from coatcheck.store.database import ReadTransaction
from coatcheck_client.client import AsyncCoatcheck

NAME = "isolation"
NOTE_CHARS = 300
WINDOW_MESSAGES = 100
KEYS = 20
"""Segments asked for at once: as many as a recall verifies."""
DIMENSIONS = 256
LIMIT = 100
"""Passages asked of a leg, as a recall does."""
_STORED = sa.text("SELECT tenant_id, owner_id, session_id, sha256 FROM segments JOIN sessions USING (tenant_id, session_id)")
NOWHERE = RecallFilter()


@dataclass(frozen=True, slots=True)
class Pair:
    """Milliseconds of each round, without isolation and with it."""

    bare: Sequence[float]
    isolated: Sequence[float]
    more_cpu_ms: float
    """Of this process's processor time, which a busy machine does not stretch; the database's is not in it."""

    def as_json(self) -> JsonObject:
        bare, isolated = middle(self.bare), middle(self.isolated)
        times = {"bare_p50_ms": bare, "isolated_p50_ms": isolated, "more_ms": isolated - bare, "more_cpu_ms": self.more_cpu_ms}
        return rounded({**times, "ratio": isolated / bare}, 3)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--segments", type=int, default=4_000, help="stored by both tenants together (default %(default)s)")
    parser.add_argument("--points", type=int, default=50_000, help="in the index that is asked alone (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=200, help="pairs of each kind (default %(default)s)")
    parser.add_argument("--embedder", default="auto", help="of the whole recall (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1)


def run(options: argparse.Namespace) -> Report:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))  # not a line for each request
    with tempfile.TemporaryDirectory(prefix="coatcheck-isolation-") as folder:
        settings = settings_for(Path(folder) / "data", embedder=options.embedder, reranker="none")
        pairs = asyncio.run(_stored(options, settings))
        pairs |= asyncio.run(_legs(options, Path(folder) / "points"))
    structlog.reset_defaults()
    medians = {name: (middle(pair.bare), middle(pair.isolated)) for name, pair in pairs.items()}
    rows = tuple((n, bare, isolated, isolated / bare, pairs[n].more_cpu_ms) for n, (bare, isolated) in medians.items())
    return Report(
        NAME,
        {name.replace(" ", "_"): pair.as_json() for name, pair in pairs.items()},
        {"segments": options.segments, "points": options.points, "rounds": options.rounds, **effective(settings)},
        {"seed": options.seed},
        tables=(Table("What isolation costs (medians, ms)", ("", "without", "with", "ratio", "CPU more"), rows),),
        picture=Picture(
            "Isolation",
            "ms",
            tuple(pairs),
            {side: [pair[n] for pair in medians.values()] for n, side in enumerate(("without", "with"))},
        ),
        notes=("In pairs within one run, each side first in every other round: a busy machine slows both.",),
    )


async def _stored(options: argparse.Namespace, settings: Settings) -> dict[str, Pair]:
    """SQL and whole recalls, over what was handed in through the routes."""
    async with foundations(settings) as on, composed(on, alone=True) as app:
        keys = [(await create_tenant(app.parts, f"tenant {number}", OPERATOR))[1] for number in (1, 2)]
        for number, key in enumerate(keys):
            async with _client(app, key) as client:
                windows = Notes(options.seed + number).windows(options.segments // 2, NOTE_CHARS, WINDOW_MESSAGES)
                for place, window in enumerate(windows):
                    await client.compact(window, session=f"notes {place // 10}", format="openai-chat", deadline_s=DEADLINE_S)
        sql = await _sql(options, on, app)
        return {"SQL": sql, "whole recall": await _recalls(options, on, app, keys[0])}


async def _sql(options: argparse.Namespace, on: Foundations, app: App) -> Pair:
    """The one question that a recall asks of its candidates: under row security, and as a superuser whom it does not concern."""
    engine = create_async_engine(_superuser_url(on))
    async with engine.connect() as bare:
        rows = (await bare.execute(_STORED)).all()
        tenant, principal = rows[0].tenant_id, rows[0].owner_id
        scope = Scope(tenant, principal, (principal_key(principal), PUBLIC))
        own = [(row.session_id, row.sha256) for row in rows if row.tenant_id == tenant]
        draw = random.Random(options.seed)
        asked = [draw.sample(own, min(KEYS, len(own))) for _ in range(options.rounds)]

        async def question(connection: AsyncConnection, keys: list[tuple[UUID, str]]) -> object:
            return await candidates.find_candidates(ReadTransaction(scope, connection), keys)

        async def pairs(tx: ReadTransaction) -> Pair:
            return await _in_turns([(partial(question, bare, keys), partial(question, tx.connection, keys)) for keys in asked])

        measured = await app.parts.database.read(scope, pairs)
    await engine.dispose()
    return measured


async def _recalls(options: argparse.Namespace, on: Foundations, app: App, key: str) -> Pair:
    """The whole route, its query encoded; once over the index as it is, once over the bare one."""
    assert isinstance(on.index.index, EdgeIndex)
    bare: VectorIndex = BareIndex(on.index.index)
    queries = Notes(options.seed).queries(options.rounds)
    async with (
        composed(dataclasses.replace(on, index=OpenedIndex(bare)), alone=False) as other,
        _client(app, key) as with_scope,
        _client(other, key) as without,
    ):
        return await _in_turns([(partial(without.recall, query), partial(with_scope.recall, query)) for query in queries])


async def _legs(options: argparse.Namespace, folder: Path) -> dict[str, Pair]:
    """Both legs of an index of so many points, half of which the scope may read."""
    index, notes, draw = EdgeIndex.open(folder), Notes(options.seed), random.Random(options.seed)
    principals = [(uuid4(), uuid4()) for _ in (1, 2)]
    try:
        for start in range(0, options.points, 1_000):
            for number, (tenant, principal) in enumerate(principals):
                numbers = range(start + number, min(start + 1_000, options.points), 2)
                points = [_point(tenant, principal, notes.note(n, NOTE_CHARS), draw) for n in numbers]
                await index.upsert(TenantScope(tenant), points)
        tenant, principal = principals[0]
        scope, bare = Scope(tenant, principal, (principal_key(principal), PUBLIC)), BareIndex(index)
        queries = [analyse_query(query) for query in notes.queries(options.rounds)]
        vectors = [[draw.gauss(0, 1) for _ in range(DIMENSIONS)] for _ in range(options.rounds)]
        lexical = await _in_turns(
            [tuple(partial(i.search_lexical, scope, 1, query, NOWHERE, LIMIT) for i in (bare, index)) for query in queries]
        )
        dense = await _in_turns(
            [tuple(partial(i.search_dense, scope, 1, vector, NOWHERE, LIMIT) for i in (bare, index)) for vector in vectors]
        )
    finally:
        await index.close()
    return {"lexical leg": lexical, "dense leg": dense}


def _point(tenant: UUID, principal: UUID, text: str, draw: random.Random) -> IndexPoint:
    now = datetime(2026, 11, 29, tzinfo=UTC)
    return IndexPoint(
        tenant_id=tenant, session_id=principal, exact_sha256=sha256_of(text), reduced_sha256=None, acl=(principal_key(principal),),
        kinds=("text",), roles=("user",), first_at=now, last_at=now, span=PassageSpan(0, 0, len(text)), generation=1,
        content_version="v1", dense=[draw.gauss(0, 1) for _ in range(DIMENSIONS)], lexical=analyse_document(text, ""),
    )  # fmt: skip


async def _in_turns(pairs: Sequence[tuple[Callable[[], Awaitable[object]], ...]]) -> Pair:
    """Each pair once, after one that warms up; the order changes with every round."""
    took: tuple[list[float], list[float]] = ([], [])
    cpu: tuple[list[float], list[float]] = ([], [])
    for one in pairs[0]:
        await one()
    for turn, pair in enumerate(pairs):
        for side in (0, 1) if turn % 2 else (1, 0):
            start, start_cpu = perf_counter(), process_time()
            await pair[side]()
            took[side].append((perf_counter() - start) * 1_000)
            cpu[side].append((process_time() - start_cpu) * 1_000)
    return Pair(*took, more_cpu_ms=middle(cpu[1]) - middle(cpu[0]))


def _client(app: App, key: str) -> AsyncCoatcheck:
    return AsyncCoatcheck(URL, key, transport=httpx.ASGITransport(app.asgi))


def _superuser_url(on: Foundations) -> str:
    """Of the embedded server. The fifth line of postmaster.pid names its socket."""
    socket = (on.settings.data_dir / "postgres" / "postmaster.pid").read_text(encoding="utf-8").splitlines()[4]
    return f"postgresql+psycopg://postgres@/coatcheck?host={socket}"
