"""The gate counts who is inside."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from uuid import UUID

import pytest

from coatcheck.api.gate import Gate
from coatcheck.domain.errors import Draining, Overloaded

TENANT, OTHER = UUID(int=1), UUID(int=2)


async def test_nobody_beyond_the_limit_is_let_in() -> None:
    gate = Gate(2)

    with gate.pass_through(TENANT), gate.pass_through(TENANT):
        with pytest.raises(Overloaded), gate.pass_through(TENANT):
            pass
        inside = gate.in_flight

    assert inside == 2
    assert gate.in_flight == 0


async def test_a_request_that_fails_leaves() -> None:
    gate = Gate(1)

    with pytest.raises(ZeroDivisionError), gate.pass_through(TENANT):
        raise ZeroDivisionError

    with gate.pass_through(TENANT):
        pass


async def test_draining_lets_those_inside_finish_and_nobody_in() -> None:
    gate = Gate(2)
    leave = asyncio.Event()

    async def inside() -> None:
        with gate.pass_through(TENANT):
            await leave.wait()

    task = asyncio.create_task(inside())
    await asyncio.sleep(0)
    gate.drain()
    early = await gate.wait_empty(0.01)
    with pytest.raises(Draining), gate.pass_through(TENANT):
        pass
    leave.set()
    late = await gate.wait_empty(1)
    await task

    assert (early, late) == (False, True)


async def test_no_tenant_keeps_the_others_out() -> None:
    gate = Gate(8)
    with gate.pass_through(OTHER):
        pass

    with ExitStack() as loud, ExitStack() as quiet:
        for _ in range(6):
            loud.enter_context(gate.pass_through(TENANT))
        with pytest.raises(Overloaded):
            loud.enter_context(gate.pass_through(TENANT))
        for _ in range(2):
            quiet.enter_context(gate.pass_through(OTHER))
        with pytest.raises(Overloaded):
            quiet.enter_context(gate.pass_through(OTHER))


async def test_T34_a_tenant_that_was_alone_leaves_room_for_another() -> None:
    gate = Gate(16)

    with ExitStack() as loud, ExitStack() as quiet:
        for _ in range(14):
            loud.enter_context(gate.pass_through(TENANT))
        with pytest.raises(Overloaded):
            loud.enter_context(gate.pass_through(TENANT))
        for _ in range(2):
            quiet.enter_context(gate.pass_through(OTHER))

        assert gate.in_flight == 16
