"""A compaction, a recall and an erasure cancelled at every place where they wait: nothing open, nothing set, nothing half done."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
import pytest_asyncio
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from coatcheck.app.compose import App
from coatcheck.app.directory import StoreDirectory
from coatcheck.domain.errors import Draining, Erased, NotFound
from coatcheck.identity.authenticate import Authenticator
from coatcheck.identity.context import RequestContext
from coatcheck.memory import flights
from coatcheck.memory.compact import Compacted, CompactionCommand
from coatcheck.store.engine import with_driver
from coatcheck_client.wire import CompactionRequest, RecallRequest
from tests import apps
from tests.cancelling import CancelledAt, assert_left_clean
from tests.postgres import Postgres
from tests.windows import request

POOL_SIZE = 3
MESSAGES = [{"role": "user", "content": "The gateway on 10.2.0.7:8443 answers slowly since the deploy. " * 30}]

T = TypeVar("T")


class Bench:
    """An app with nothing going on in it but what a test does, and an observer of its connections."""

    def __init__(self, app: App, observer: AsyncEngine, context: RequestContext) -> None:
        self.app = app
        self.services = app.use_cases.services
        self.context = context
        self._observer = observer

    async def assert_clean(self) -> None:
        await assert_left_clean(self.app.parts.database, self._observer, POOL_SIZE)

    async def settle(self) -> None:
        """Has the reconciler do what is owed; what a cancelled owner still leases is due a moment later."""
        reconciler = self.app.use_cases.reconciler
        async with asyncio.timeout(30):
            while (await reconciler.stats(self.context.tenant_scope)).pending:
                await reconciler.drain_tenant(self.context.tenant_id)
                await asyncio.sleep(0.05)

    async def compact(self, session: str) -> Compacted:
        asked = CompactionRequest.model_validate(request(session, MESSAGES))
        return await self.services.compact(self.context, CompactionCommand(asked, None, 30))


@pytest_asyncio.fixture(scope="module", loop_scope="package")
async def bench(postgres: Postgres, database_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Bench]:
    name = sa.make_url(database_url).database
    assert name is not None
    observer = create_async_engine(with_driver(postgres.owner_url(name)))
    folder: Path = tmp_path_factory.mktemp("app")
    async with apps.app(
        database_url, folder, pool_size=POOL_SIZE, lease_s=0.5, same_request_wait_s=10, reconcile_interval_s=3_600
    ) as app:
        app.use_cases.reconciler.stop()
        caller = await apps.new_tenant(app)
        authenticator = Authenticator(StoreDirectory(app.parts.database), app.parts.keyring, app.parts.clock)
        yield Bench(app, observer, await authenticator.authenticate(caller.headers["Authorization"]))
    await observer.dispose()


async def cancelled_at(n: int, work: Coroutine[Any, Any, object]) -> bool:
    """Runs the work, cancelled while it waits for the nth time. False when it never waited so often."""
    stepped = CancelledAt(work, n)
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.ensure_future(stepped)
    return stepped.waits >= n


async def test_T16_a_compaction_cancelled_anywhere_leaves_nothing_open_and_its_request_completes_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = 0

    async def cancelled(work: Callable[[], Awaitable[T]], n: int) -> T:
        nonlocal waits
        stepped = CancelledAt(work(), n)  # type: ignore[arg-type]
        try:
            return await stepped  # type: ignore[return-value]
        finally:
            waits = stepped.waits

    n, run = 0, flights._run
    while waits >= n:
        n += 1
        monkeypatch.setattr(flights, "_run", lambda work, n=n: cancelled(work, n))
        with contextlib.suppress(Draining):
            await bench.compact(f"compaction {n}")
        await bench.assert_clean()
        monkeypatch.setattr(flights, "_run", run)
        again = await bench.compact(f"compaction {n}")
        assert again.response.segments.already_stored == 0
        window = await bench.services.window(bench.context, again.response.manifest_id)
        assert window.messages == MESSAGES

    page = await bench.services.sessions(bench.context, 200, None, None)
    assert n > 30
    assert {session.manifests for session in page.sessions} == {1}
    await bench.settle()


async def test_T16_a_recall_cancelled_anywhere_leaves_nothing_open(bench: Bench) -> None:
    await bench.compact("recalled")
    asked = RecallRequest(query="gateway 10.2.0.7:8443", session="recalled")

    n, went_on = 0, True
    while went_on:
        n += 1
        went_on = await cancelled_at(n, bench.services.recall(bench.context, asked, 30.0))  # type: ignore[arg-type]
        await bench.assert_clean()

    assert n > 10
    assert (await bench.services.recall(bench.context, asked, 30.0)).hits


@pytest.mark.parametrize("whole", [True, False], ids=["session", "manifest"])
async def test_an_erasure_cancelled_anywhere_has_not_begun_or_is_finished_by_the_reconciler(bench: Bench, whole: bool) -> None:
    services, context = bench.services, bench.context

    n, went_on = 0, True
    while went_on:
        n += 1
        made = (await bench.compact(f"erased {whole} {n}")).response
        erase = services.erase_session(context, made.session_id) if whole else services.erase_manifest(context, made.manifest_id)

        went_on = await cancelled_at(n, erase)  # type: ignore[arg-type]

        await bench.assert_clean()
        try:
            assert (await services.window(context, made.manifest_id)).messages == MESSAGES
        except (Erased, NotFound):
            await bench.app.use_cases.reconciler.drain_tenant(context.tenant_id)
            assert await bench.app.parts.index.count(context.tenant_scope, made.session_id, made.index.generation) == 0
        else:
            await (
                services.erase_session(context, made.session_id) if whole else services.erase_manifest(context, made.manifest_id)
            )
        with pytest.raises(Erased):
            await services.window(context, made.manifest_id)

    await bench.settle()
    assert n > 30
