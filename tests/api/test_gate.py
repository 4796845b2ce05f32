"""The gate counts who is inside."""

from __future__ import annotations

import asyncio

import pytest

from coatcheck.api.gate import Gate
from coatcheck.domain.errors import Draining, Overloaded


async def test_nobody_beyond_the_limit_is_let_in() -> None:
    gate = Gate(2)

    with gate.pass_through(), gate.pass_through():
        with pytest.raises(Overloaded), gate.pass_through():
            pass
        inside = gate.in_flight

    assert inside == 2
    assert gate.in_flight == 0


async def test_a_request_that_fails_leaves() -> None:
    gate = Gate(1)

    with pytest.raises(ZeroDivisionError), gate.pass_through():
        raise ZeroDivisionError

    with gate.pass_through():
        pass


async def test_draining_lets_those_inside_finish_and_nobody_in() -> None:
    gate = Gate(2)
    leave = asyncio.Event()

    async def inside() -> None:
        with gate.pass_through():
            await leave.wait()

    task = asyncio.create_task(inside())
    await asyncio.sleep(0)
    gate.drain()
    early = await gate.wait_empty(0.01)
    with pytest.raises(Draining), gate.pass_through():
        pass
    leave.set()
    late = await gate.wait_empty(1)
    await task

    assert (early, late) == (False, True)
