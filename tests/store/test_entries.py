"""Entries: the window's order, where a segment stands, and what surrounds it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest
import sqlalchemy as sa

from coatcheck.domain.canonical import sha256_of
from coatcheck.domain.entries import Entry
from coatcheck.domain.messages import PartKind
from coatcheck.domain.routes import Decision, Route
from coatcheck.store import entries, runs
from coatcheck.store.database import Database, WorkerTransaction
from coatcheck.store.entries import SegmentContext
from tests.store.made import entries_of, run_of, store_run, store_session
from tests.tenants import EPOCH, Tenancy

HOUR = timedelta(hours=1)


async def test_a_window_comes_back_whole_and_in_its_order(database: Database, tenant: Tenancy) -> None:
    scope = await tenant.principal()
    session = await store_session(database, scope)
    first, second = entries_of(["one", "two"])
    window = [
        replace(first, name="naïve \0 \ud800.py", call_id="call_1", group_id="g1", occurred_at=EPOCH, is_system_field=True),
        replace(second, ordinal=1, part_index=2, segment_index=3, encoding="json", frame_before="", frame_after="\ud800}"),
        Entry(2, 2, 0, 0, "assistant", PartKind.TEXT, "string", Decision(Route.DROP, "router"), chars=99),
        Entry(3, 3, 0, 0, "user", PartKind.TEXT, "string", Decision(Route.KEEP, "handoff"), handoff_manifest_id=uuid4()),
    ]

    run = await store_run(database, scope, session, ["one", "two"], window=window)

    assert await database.read(scope, lambda tx: entries.all(tx, run.manifest_id)) == window
    assert await database.read(scope, lambda tx: entries.page(tx, run.manifest_id, -1, 3)) == window[:3]
    assert await database.read(scope, lambda tx: entries.page(tx, run.manifest_id, 2, 3)) == window[3:]
    assert await database.read(scope, lambda tx: entries.all(tx, uuid4())) == []


async def test_segments_of_a_run_are_each_named_once_in_the_windows_order(database: Database, tenant: Tenancy) -> None:
    scope = await tenant.principal()
    session = await store_session(database, scope)

    run = await store_run(database, scope, session, ["b", "a", "b", "c"])

    in_order = [sha256_of(text) for text in "bac"]
    assert await database.read(scope, lambda tx: entries.segments_of(tx, run.manifest_id)) == in_order
    assert await database.work(tenant.scope, lambda tx: entries.segments_of_session(tx, session.session_id)) == sorted(in_order)


async def test_what_only_one_run_holds_leaves_out_what_living_runs_hold(database: Database, tenant: Tenancy) -> None:
    scope = await tenant.principal()
    session = await store_session(database, scope)
    doomed = await store_run(database, scope, session, ["only", "shared", "with the erased"])
    await store_run(database, scope, session, ["shared"])
    erased = await store_run(database, scope, session, ["with the erased"])
    await database.work(tenant.scope, lambda tx: runs.mark_erased(tx, erased.manifest_id, EPOCH))

    found = await database.work(tenant.scope, lambda tx: entries.segments_only_of(tx, session.session_id, doomed.manifest_id))

    assert found == sorted([sha256_of("only"), sha256_of("with the erased")])


async def test_the_newest_entry_is_the_last_of_the_newest_run_that_may_be_read(database: Database, tenant: Tenancy) -> None:
    scope = await tenant.principal()
    session = await store_session(database, scope)
    sha = sha256_of("again")
    old = await store_run(database, scope, session, ["again", "x"], run=run_of(session, created_at=EPOCH))
    new = await store_run(database, scope, session, ["x", "again", "again"], run=run_of(session, created_at=EPOCH + HOUR))
    keys = [(session.session_id, sha), (session.session_id, sha256_of("unknown"))]

    both = await database.read(scope, lambda tx: entries.newest_for(tx, keys))
    await database.work(tenant.scope, lambda tx: runs.mark_erased(tx, new.manifest_id, EPOCH))
    one = await database.read(scope, lambda tx: entries.newest_for(tx, keys))

    assert set(both) == set(one) == {keys[0]}
    assert (both[keys[0]].manifest_id, both[keys[0]].ordinal) == (new.manifest_id, 2)
    assert (one[keys[0]].manifest_id, one[keys[0]].ordinal) == (old.manifest_id, 0)
    assert one[keys[0]].run_created_at == EPOCH
    assert await database.read(scope, lambda tx: entries.newest_for(tx, [])) == {}


async def test_a_context_is_of_the_first_entry_and_its_times_and_roles_of_all(database: Database, tenant: Tenancy) -> None:
    scope = await tenant.principal()
    session = await store_session(database, scope)
    first_window = [
        replace(entry, role="user", kind=PartKind.TEXT, name="tool", occurred_at=EPOCH - HOUR) for entry in entries_of(["q", "a"])
    ]
    first = await store_run(database, scope, session, ["q", "a"], run=run_of(session), window=first_window)
    second_run = run_of(session, created_at=EPOCH + HOUR)
    await store_run(database, scope, session, ["z", "a"], run=second_run)

    found = await database.work(
        tenant.scope, lambda tx: entries.contexts(tx, session.session_id, [sha256_of("a"), sha256_of("none")])
    )

    assert found == {
        sha256_of("a"): SegmentContext(
            manifest_id=first.manifest_id,
            ordinal=1,
            role="user",
            kind="text",
            name="tool",
            occurred_at=EPOCH - HOUR,
            first_at=EPOCH - HOUR,
            last_at=EPOCH + HOUR,
            roles=("tool", "user"),
            kinds=("text", "tool_result"),
            previous_texts=("q",),
        )
    }


async def test_when_the_first_entry_goes_the_context_is_the_next_ones(database: Database, tenant: Tenancy) -> None:
    scope = await tenant.principal()
    session = await store_session(database, scope)
    first = await store_run(database, scope, session, ["before", "text"])
    second = await store_run(database, scope, session, ["text"], run=run_of(session, created_at=EPOCH + HOUR))

    await database.work(tenant.scope, lambda tx: runs.mark_erased(tx, first.manifest_id, EPOCH))
    found = await database.work(tenant.scope, lambda tx: entries.contexts(tx, session.session_id, [sha256_of("text")]))

    context = found[sha256_of("text")]
    assert (context.manifest_id, context.ordinal, context.previous_texts) == (second.manifest_id, 0, ())
    assert context.first_at == context.last_at == EPOCH + HOUR


async def test_the_turns_before_are_the_last_texts_of_two_earlier_messages_newest_first(
    database: Database, tenant: Tenancy
) -> None:
    scope = await tenant.principal()
    session = await store_session(database, scope)
    texts = ["first part", "second part", "thought", "answer one", "answer two", "later", "latest"]
    made = entries_of(texts)
    window = [
        made[0],
        replace(made[1], message_index=0, part_index=1),
        replace(made[2], message_index=1, kind=PartKind.THINKING),
        replace(made[3], message_index=2),
        replace(made[4], message_index=2, part_index=1),
        replace(made[5], message_index=3),
        replace(made[6], message_index=4),
    ]
    await store_run(database, scope, session, texts, window=window)

    found = await database.work(
        tenant.scope, lambda tx: entries.contexts(tx, session.session_id, [sha256_of(text) for text in texts])
    )

    before = {text: found[sha256_of(text)].previous_texts for text in texts}
    assert before["first part"] == before["second part"] == ()
    assert before["answer one"] == before["answer two"] == ("second part",)
    assert before["later"] == ("answer two", "second part")
    assert before["latest"] == ("later", "answer two")


@pytest.mark.parametrize("char", ["a", "é", "☕", "🧥", "\ud800"])
@pytest.mark.parametrize("shift", ["", "x", "xy", "xyz"])
async def test_a_long_turn_before_is_cut_between_code_points(database: Database, tenant: Tenancy, char: str, shift: str) -> None:
    scope = await tenant.principal()
    session = await store_session(database, scope)
    before = shift + char * 3_000

    await store_run(database, scope, session, [before, "text"])

    found = await database.work(tenant.scope, lambda tx: entries.contexts(tx, session.session_id, [sha256_of("text")]))
    assert found[sha256_of("text")].previous_texts == (before[:1_000],)


async def test_a_turn_before_whose_text_is_lost_is_left_out(database: Database, tenant: Tenancy) -> None:
    scope = await tenant.principal()
    session = await store_session(database, scope)
    await store_run(database, scope, session, ["lost", "there", "text"])
    lose = sa.text("UPDATE segments SET raw = NULL WHERE sha256 = :sha")
    await database.work(tenant.scope, lambda tx: tx.connection.execute(lose, {"sha": sha256_of("lost")}))

    shas = [sha256_of("there"), sha256_of("text")]
    found = await database.work(tenant.scope, lambda tx: entries.contexts(tx, session.session_id, shas))

    assert [found[sha].previous_texts for sha in shas] == [(), ("there",)]


async def test_a_window_that_is_planned_again_replaces_the_old_one(database: Database, tenant: Tenancy) -> None:
    scope = await tenant.principal()
    session = await store_session(database, scope)
    run = await store_run(database, scope, session, ["one", "two"])

    async def again(tx: WorkerTransaction) -> None:
        await entries.delete(tx, run.manifest_id)
        await entries.insert(tx, session.session_id, run.manifest_id, entries_of(["two"]))

    await database.work(tenant.scope, again)

    assert await database.read(scope, lambda tx: entries.all(tx, run.manifest_id)) == entries_of(["two"])
