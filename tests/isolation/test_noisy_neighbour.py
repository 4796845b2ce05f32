"""A tenant at ten times the load beside another one: what that one notices of it. A proof with figures, run by ``make accept``.

Alone and beside the noise take turns in one run of one service, so that both meet the same machine.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from tests.faults.served import Service, service
from tests.isolation.neighbours import Times, works

PERIOD_S = 0.5
TURNS = 30
ROUNDS = 3
LOUD = 10
"""So many times the victim's own load, in loops of the same period."""
WARM_TURNS = 5

pytestmark = pytest.mark.accept


@contextlib.contextmanager
def noise(one: Service, key: str, loops: int = LOUD) -> Iterator[None]:
    """The other tenant, in a process of its own."""
    process = one.beside("tests.isolation.neighbours", one.url, key, str(loops), str(PERIOD_S))
    try:
        yield
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()


def tenant(one: Service, name: str) -> str:
    with one.client() as http:
        made = http.post("/v1/admin/tenants", json={"name": name})
        assert made.status_code == 201, made.text
        return str(made.json()["key"])


async def measured(one: Service) -> tuple[Times, Times]:
    victim, loud = tenant(one, "victim"), tenant(one, "loud")
    alone, beside = Times(), Times()
    await works(one.url, victim, PERIOD_S, WARM_TURNS, Times())
    for _ in range(ROUNDS):
        await works(one.url, victim, PERIOD_S, TURNS, alone)
        with noise(one, loud):
            await works(one.url, victim, PERIOD_S, WARM_TURNS, Times())
            await works(one.url, victim, PERIOD_S, TURNS, beside)
        await works(one.url, victim, PERIOD_S, WARM_TURNS, Times())
    return alone, beside


@pytest.mark.parametrize("embedder", ["hashing", "auto"])
async def test_T34_a_neighbour_at_ten_times_the_load_at_most_doubles_the_p95(embedder: str) -> None:
    with service(COATCHECK_EMBEDDER=embedder) as one:
        one.start()
        alone, beside = await measured(one)

    for name in ("compaction", "recall"):
        print(
            f"{embedder} {name}: alone p50 {alone.p50(name) * 1e3:.0f} p95 {alone.p95(name) * 1e3:.0f} ms,"
            f" beside p50 {beside.p50(name) * 1e3:.0f} p95 {beside.p95(name) * 1e3:.0f} ms"
            f" ({beside.p95(name) / alone.p95(name):.2f} x)"
        )
    assert beside.refused == 0
    assert all(beside.p95(name) <= 2 * alone.p95(name) for name in ("compaction", "recall"))
