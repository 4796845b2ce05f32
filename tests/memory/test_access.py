"""Which session a request means and what its caller may do there: every condition, with who fulfils it and who does not."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID, uuid4

import pytest
import pytest_asyncio

from coatcheck.domain.errors import CoatcheckError, Erased, Forbidden, NotFound
from coatcheck.domain.runs import Run
from coatcheck.domain.scopes import Scope
from coatcheck.domain.sessions import Session
from coatcheck.identity.context import RequestContext
from coatcheck.identity.operations import MEMBER, OPERATORS_CORE
from coatcheck.memory import access
from coatcheck.store import runs, sessions, tombstones
from coatcheck.store.database import Database, WorkerTransaction
from tests.identity.test_context import context
from tests.store.made import store_run, store_session
from tests.tenants import EPOCH, Tenancy

ELSEWHERE = frozenset({UUID(int=0xE15E)})
Kept = frozenset[UUID] | None


@dataclass(frozen=True)
class Street:
    """Alice and Carol share a team; Bob is of the same tenant, Dave of another. Everything in it is Alice's."""

    database: Database
    team: UUID
    alice: Scope
    bob: Scope
    carol: Scope
    dave: Scope
    open: Session
    """A conversation in which Bob takes part."""
    public: Session
    of_team: Session
    gone: Session
    run: Run
    gone_run: Run
    """Of ``open``."""
    run_of_gone: Run

    def caller(self, scope: Scope, kept: Kept = None, operations: frozenset[str] = MEMBER) -> RequestContext:
        teams = frozenset({self.team} if f"t:{self.team}" in scope.acl else ())
        return context(
            tenant_id=scope.tenant_id, principal_id=scope.principal_id, sessions=kept, operations=operations, teams=teams
        )

    async def find(self, who: RequestContext, reference: str) -> Session | None:
        return await self.database.read(who.scope, lambda tx: access.find_session(who, tx, reference))

    async def by_id(self, who: RequestContext, session_id: UUID) -> Session:
        return await self.database.read(who.scope, lambda tx: access.session_by_id(who, tx, session_id))

    async def of_run(self, who: RequestContext, manifest_id: UUID) -> tuple[Run, Session]:
        return await self.database.read(who.scope, lambda tx: access.run_by_id(who, tx, manifest_id))

    async def erased(self, who: RequestContext, kind: str, key: str) -> bool:
        return await self.database.read(who.scope, lambda tx: access.was_erased(who, tx, kind, key))


@pytest_asyncio.fixture
async def street(database: Database, tenant: Tenancy, other_tenant: Tenancy) -> Street:
    team = uuid4()
    alice, bob, carol = await tenant.principal(team), await tenant.principal(), await tenant.principal(team)
    open_one = await store_session(database, alice, name="open", participants=[bob.principal_id])
    gone = await store_session(database, alice, name="gone")
    run, gone_run = [await store_run(database, alice, open_one, ["a text"]) for _ in range(2)]
    run_of_gone = await store_run(database, alice, gone, ["another"])

    async def erase(tx: WorkerTransaction) -> None:
        assert await sessions.mark_erased(tx, gone.session_id, EPOCH)
        assert await runs.mark_erased(tx, gone_run.manifest_id, EPOCH)
        await tombstones.insert(tx, "session", [str(gone.session_id)], gone.session_id, None, gone.acl, EPOCH)
        for one, session in ((gone_run, open_one), (run_of_gone, gone)):
            await tombstones.insert(tx, "manifest", [str(one.manifest_id)], session.session_id, one.manifest_id, session.acl, EPOCH)

    await database.work(tenant.scope, erase)
    return Street(
        database, team, alice, bob, carol, await other_tenant.principal(), open_one,
        await store_session(database, alice, name="public", visibility="public"),
        await store_session(database, alice, name="team", visibility=f"team:{team}"),
        gone, run, gone_run, run_of_gone,
    )  # fmt: skip


async def test_a_name_is_the_callers_own_and_an_id_is_anybodys_who_reads_it(street: Street) -> None:
    alice, bob, dave = street.caller(street.alice), street.caller(street.bob), street.caller(street.dave)

    assert await street.find(alice, "open") == street.open
    assert await street.find(bob, str(street.open.session_id)) == street.open
    assert await street.find(bob, str(street.open.session_id).upper()) == street.open
    for nobody in (await street.find(bob, "open"), await street.find(alice, "no such"), await street.find(dave, "open")):
        assert nobody is None
    assert await street.find(alice, f"{{{street.open.session_id}}}") is None  # a name, though UUID() reads it


async def test_a_credential_kept_to_other_sessions_finds_this_one_by_neither(street: Street) -> None:
    kept, elsewhere = street.caller(street.alice, frozenset({street.open.session_id})), street.caller(street.alice, ELSEWHERE)

    assert await street.find(kept, "open") == street.open
    assert await street.find(kept, str(street.open.session_id)) == street.open
    assert await street.find(elsewhere, "open") is None
    assert await street.find(elsewhere, "no such") is None
    for who in (elsewhere, street.caller(street.alice, frozenset())):
        with pytest.raises(NotFound):
            await street.find(who, str(street.open.session_id))


async def test_who_may_read_a_session_finds_it(street: Street) -> None:
    readers = {"open": (street.alice, street.bob), "public": (street.alice, street.bob, street.carol)}
    readers["of_team"] = (street.alice, street.carol)
    for name, scopes in readers.items():
        session: Session = getattr(street, name)
        for scope in (street.alice, street.bob, street.carol, street.dave):
            who = street.caller(scope)
            if scope in scopes:
                assert await street.by_id(who, session.session_id) == session
            else:
                with pytest.raises(NotFound):
                    await street.by_id(who, session.session_id)


async def test_what_is_erased_is_gone_for_who_could_read_it_and_unknown_to_everybody_else(street: Street) -> None:
    gone = street.gone.session_id
    for who in (street.caller(street.alice), street.caller(street.alice, frozenset({gone}))):
        with pytest.raises(Erased):
            await street.by_id(who, gone)
        with pytest.raises(Erased):
            await street.of_run(who, street.run_of_gone.manifest_id)
    strangers = (street.bob, street.carol, street.dave)
    for who in (street.caller(street.alice, ELSEWHERE), *(street.caller(scope) for scope in strangers)):
        with pytest.raises(NotFound):
            await street.by_id(who, gone)
        with pytest.raises(NotFound):
            await street.of_run(who, street.run_of_gone.manifest_id)


async def test_a_run_is_read_with_its_session(street: Street) -> None:
    open_id, run = street.open.session_id, street.run

    for who in (street.caller(street.alice), street.caller(street.bob), street.caller(street.bob, frozenset({open_id}))):
        assert await street.of_run(who, run.manifest_id) == (run, street.open)
        with pytest.raises(Erased):
            await street.of_run(who, street.gone_run.manifest_id)
    for who in (street.caller(street.carol), street.caller(street.dave), street.caller(street.alice, ELSEWHERE)):
        for manifest_id in (run.manifest_id, street.gone_run.manifest_id, uuid4()):
            with pytest.raises(NotFound):
                await street.of_run(who, manifest_id)


async def test_an_erasure_is_known_to_who_could_read_and_reach_what_went(street: Street) -> None:
    gone = street.gone.session_id
    key = str(gone)

    assert await street.erased(street.caller(street.alice), "session", key)
    assert await street.erased(street.caller(street.alice, ELSEWHERE | {gone}), "session", key)
    assert not await street.erased(street.caller(street.alice, ELSEWHERE), "session", key)
    assert not await street.erased(street.caller(street.alice, frozenset()), "session", key)
    assert not await street.erased(street.caller(street.bob), "session", key)
    assert not await street.erased(street.caller(street.alice), "manifest", key)
    assert not await street.erased(street.caller(street.alice), "session", str(street.open.session_id))


@pytest.mark.parametrize(
    ("session", "writers", "readers"),
    [("open", ("alice", "bob"), ()), ("public", ("alice",), ("bob", "carol")), ("of_team", ("alice", "carol"), ())],
)
async def test_who_reads_does_not_thereby_write(
    street: Street, session: str, writers: tuple[str, ...], readers: tuple[str, ...]
) -> None:
    for name in writers:
        access.require_writer(street.caller(getattr(street, name)), getattr(street, session))
    for name in readers:
        with pytest.raises(Forbidden, match="read this session"):
            access.require_writer(street.caller(getattr(street, name)), getattr(street, session))


async def change(street: Street, who: RequestContext, *, of: str = "open") -> list[object]:
    """The session, and the session of its run, as one may change them; or the error of each."""
    session: Session = getattr(street, of)
    run = street.run if of == "open" else street.run_of_gone
    found: list[object] = []
    for asked in (
        access.owned_session(who, street.database, session.session_id),
        access.session_of_owned_run(who, street.database, run.manifest_id),
    ):
        try:
            found.append(await asked)
        except CoatcheckError as error:
            found.append(type(error))
    return found


async def test_the_owner_changes_a_session_and_an_operator_any_within_its_reach(street: Street) -> None:
    mine = [street.open, street.open.session_id]
    kept = frozenset({street.open.session_id})

    assert await change(street, street.caller(street.alice)) == mine
    assert await change(street, street.caller(street.alice, kept)) == mine
    assert await change(street, street.caller(street.carol, None, OPERATORS_CORE)) == mine
    assert await change(street, street.caller(street.carol, kept, OPERATORS_CORE)) == mine


async def test_who_only_reads_a_session_changes_nothing_and_others_know_nothing_of_it(street: Street) -> None:
    assert await change(street, street.caller(street.bob)) == [Forbidden, Forbidden]
    for who in (
        street.caller(street.carol),
        street.caller(street.dave),
        street.caller(street.alice, ELSEWHERE),
        street.caller(street.carol, ELSEWHERE, OPERATORS_CORE),
        street.caller(street.alice, ELSEWHERE, OPERATORS_CORE),
        street.caller(street.carol, frozenset(), OPERATORS_CORE),
        street.caller(street.dave, None, OPERATORS_CORE),
        street.caller(street.carol, None, OPERATORS_CORE - {"erase"}),
    ):
        assert await change(street, who) == [NotFound, NotFound]


async def test_what_is_erased_nobody_changes(street: Street) -> None:
    for operations in (MEMBER, OPERATORS_CORE):
        assert await change(street, street.caller(street.alice, None, operations), of="gone") == [Erased, Erased]
        assert await change(street, street.caller(street.alice, ELSEWHERE, operations), of="gone") == [NotFound, NotFound]
        for scope in (street.carol, street.dave):
            assert await change(street, street.caller(scope, None, operations), of="gone") == [NotFound, NotFound]


async def test_an_erased_run_of_a_living_session_is_nobodys_to_erase_again(street: Street) -> None:
    for operations in (MEMBER, OPERATORS_CORE):
        with pytest.raises(Erased):
            await access.session_of_owned_run(
                street.caller(street.alice, None, operations), street.database, street.gone_run.manifest_id
            )
