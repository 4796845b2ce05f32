"""Requests of everybody at once, some of them broken off: no canary comes to anybody whom it is not for, by any way."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from coatcheck.store.engine import with_driver
from tests.index.asking import everything
from tests.isolation.test_canaries import logged
from tests.isolation.town import Town
from tests.isolation.traffic import CANARY, Traffic, may_read
from tests.postgres import Postgres

SEED = int(os.environ.get("COATCHECK_TEST_SEED", "20261130"))

_OWNED = {
    "segments": "SELECT convert_from(g.raw, 'UTF8') AS text, s.owner_id AS owner FROM segments g JOIN sessions s"
    " USING (tenant_id, session_id) WHERE g.raw IS NOT NULL",
    "handoffs": "SELECT convert_from(r.handoff_text, 'UTF8') AS text, s.owner_id AS owner FROM runs r JOIN sessions s"
    " USING (tenant_id, session_id)",
    "cache": "SELECT convert_from(answer, 'UTF8') AS text, principal_id AS owner FROM cache_entries",
}
"""Where texts are kept, each with the principal whose it is."""


async def proved(town: Town, count: int, postgres: Postgres, database: str) -> Traffic:
    """Runs the traffic and reads everything that it left behind."""
    traffic = Traffic(town, SEED)
    print(f"seed {SEED}")
    with logged() as stream:
        await traffic.run(count)
        await town.app.use_cases.reconciler.drain_tenant(town.alice.tenant_id)
        await town.app.use_cases.reconciler.drain_tenant(town.dave.tenant_id)
        metrics = (await town.alice.http.get("/metrics")).text
    await town.app.parts.index.flush()
    payloads = "\n".join(map(repr, await everything(town.app.parts.index)))
    print(dict(traffic.answered), dict(traffic.statuses), f"{traffic.canaries_seen} canaries read")

    assert traffic.misplaced == []
    assert CANARY.findall(stream.getvalue()) == []
    assert CANARY.findall(metrics) == []
    assert CANARY.findall(payloads) == []
    assert list(_misplaced_rows(town, postgres, database)) == []
    assert not {status for status in traffic.statuses if status >= 500} - {503}
    assert stream.getvalue().count('"level": "error"') == 0
    return traffic


def _misplaced_rows(town: Town, postgres: Postgres, database: str) -> Iterator[str]:
    """Rows that hold a canary of another than whose they are."""
    names = {person.principal_id: person.name for person in town.everybody.values()}
    engine = sa.create_engine(with_driver(postgres.owner_url(database)), poolclass=sa.NullPool)
    with engine.connect() as connection:
        for place, statement in _OWNED.items():
            for text, owner in connection.execute(sa.text(statement)):
                for whose, kind in CANARY.findall(text):
                    if names.get(owner) != whose:
                        yield f"{place}: {whose} {kind} of {names.get(owner)}"
    engine.dispose()


async def test_T17_interleaved_and_broken_off_everybody_gets_their_own(
    town: Town, postgres: Postgres, shared_database: str
) -> None:
    traffic = await proved(town, 300, postgres, shared_database)

    assert traffic.answered["cancelled"] > 10
    assert traffic.canaries_seen > 300
    assert {200, 201, 404, 422} <= set(traffic.statuses)


@pytest.mark.accept
async def test_T17_ten_thousand_requests(town: Town, postgres: Postgres, shared_database: str) -> None:
    traffic = await proved(town, 10_000, postgres, shared_database)

    assert traffic.answered["cancelled"] > 500
    assert traffic.canaries_seen > 10_000


def test_a_canary_of_another_would_be_seen() -> None:
    """Else nothing above could fail."""
    assert may_read("alice", "carol", "team")
    assert may_read("bob", "alice", "public")
    assert not may_read("bob", "alice", "conversation")
    assert not may_read("bob", "carol", "team")
    assert not may_read("dave", "alice", "public")
