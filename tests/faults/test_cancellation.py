"""A cancellation at any await of a use case: no transaction stays open, no lease stays for good, and the next attempt completes.

The store's own suite proves the same of a single transaction; here it is whole use cases, through pool, index and models.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any
from uuid import UUID

import pytest

from coatcheck.app.directory import StoreDirectory
from coatcheck.identity.authenticate import Authenticator
from coatcheck.identity.context import RequestContext
from coatcheck.memory.compact import CompactionCommand
from coatcheck_client.wire import CompactionRequest, RecallRequest
from tests.cancelling import CancelledAt
from tests.faults.pair import Scene
from tests.windows import request, window

pytestmark = pytest.mark.asyncio(loop_scope="module")

Work = Coroutine[Any, Any, object]


async def context_of(at: Scene) -> RequestContext:
    parts = at.pair.brief.parts
    authenticator = Authenticator(StoreDirectory(parts.database), parts.keyring, parts.clock)
    return await authenticator.authenticate(at.caller.headers["Authorization"])


async def cancelled_at_every_await(at: Scene, begin: Callable[[int], Awaitable[Work]], *, step: int = 1) -> int:
    """Runs what ``begin(n)`` gives, cancelled at its nth await, for every n it has (every ``step``th). Returns the last."""
    n, finished = 1 - step, False
    while not finished:
        n += step
        stepped = CancelledAt(await begin(n), n)
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.ensure_future(stepped)
        finished = stepped.waits < n
        await at.pair.assert_no_open_transaction()
    return n


def body(n: int) -> dict[str, Any]:
    return request(f"s{n % 7}", window(calls=1, mark=f"mark{n}"))


async def test_a_compaction(at: Scene) -> None:
    """The work itself, which a drain cancels; its request only waits for it."""
    context, compact = await context_of(at), at.pair.brief.use_cases.compact

    async def begin(n: int) -> Work:
        asked = compact._ask(context, CompactionCommand(CompactionRequest.model_validate(body(n)), None, 30.0))
        return compact._work(asked, "flight")

    n = await cancelled_at_every_await(at, begin)

    answers = [await at.two.post("/v1/compactions", json=body(number)) for number in range(1, n + 1)]
    assert n > 20
    assert {answer.status_code for answer in answers} == {200, 201}, [answer.text for answer in answers]
    assert len(await at.runs()) == n
    await at.assert_agreement()


@pytest.mark.parametrize("what", ["session", "manifest"])
async def test_an_erasure(at: Scene, what: str) -> None:
    context, services = await context_of(at), at.pair.brief.use_cases.services
    made: list[dict[str, Any]] = []

    async def begin(n: int) -> Work:
        made.append((await at.two.post("/v1/compactions", json=request(f"s{n}", window(calls=1)))).json())
        if what == "session":
            return services.erase_session(context, UUID(made[-1]["session_id"]))  # type: ignore[return-value]
        return services.erase_manifest(context, UUID(made[-1]["manifest_id"]))  # type: ignore[return-value]

    n = await cancelled_at_every_await(at, begin, step=2)

    answers = [await at.two.delete(f"/v1/{what}s/{one[f'{what}_id']}") for one in made]
    assert n > 10
    assert {answer.status_code for answer in answers} == {204, 410}
    await at.assert_agreement()
    assert (await at.texts(), await at.points()) == (0, 0)


async def test_a_walk_of_the_reconciler(at: Scene) -> None:
    reconciler = at.pair.brief.use_cases.reconciler

    async def begin(n: int) -> Work:
        await at.settled()
        at.pair.index.refuses_writes = True
        assert (await at.two.post("/v1/compactions", json=body(n))).status_code == 503
        at.pair.index.calm()
        return reconciler.drain_tenant(at.caller.tenant_id)

    n = await cancelled_at_every_await(at, begin, step=3)

    assert n > 30
    await at.assert_agreement()
    assert len(await at.runs()) == (n + 2) // 3


async def test_a_recall(at: Scene) -> None:
    context, services = await context_of(at), at.pair.brief.use_cases.services
    await at.two.post("/v1/compactions", json=body(0))

    async def begin(n: int) -> Work:
        return services.recall(context, RecallRequest(query="health failed"), 30.0)  # type: ignore[return-value]

    n = await cancelled_at_every_await(at, begin)

    assert n > 5
    await at.assert_agreement()
