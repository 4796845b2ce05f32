"""A process that is killed while it off-boards a tenant: the next one ends what was begun, and nothing is left of the tenant."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest

from coatcheck.index.edge import EdgeIndex
from coatcheck.store.embedded import EmbeddedServer
from tests.faults import served
from tests.faults.points import named
from tests.faults.served import Service
from tests.isolation.rows import mentioning
from tests.windows import request, window

POINTS = named("off-boarding")
IN_SHORT = "inside-tenant-rows"
DONE_WITHIN_S = 60
CACHED = {
    "session": "", "sources": [], "model": "m", "instructions": "", "tools": [], "settings": {}, "prompt": "What does zebra do?",
}  # fmt: skip


def inhabited(one: Service) -> tuple[str, str]:
    """A tenant with windows, points, an erased session, a cached answer and a second key: its id, and its operator's key."""
    with one.client() as http:
        made = http.post("/v1/admin/tenants", json={"name": "acme"}).json()
    with httpx.Client(base_url=one.url, headers={"Authorization": f"Bearer {made['key']}"}, timeout=60) as theirs:
        for session, mark in (("s", "zebra"), ("t", "okapi")):
            assert theirs.post("/v1/compactions", json=request(session, window(mark=mark))).status_code == 201
        gone = theirs.post("/v1/compactions", json=request("gone", window(mark="quagga"))).json()
        assert theirs.delete(f"/v1/sessions/{gone['session_id']}").status_code == 204
        scope = theirs.post("/v1/cache/lookup", json=CACHED).json()["scope"]
        kept = theirs.post("/v1/cache/store", json={**CACHED, "answer": "zebra stripes", "scope": scope}).json()
        assert kept["stored"], kept
        assert theirs.post("/v1/admin/keys", json={"name": "zebra key"}).status_code == 201
    return made["tenant_id"], made["key"]


def receipt_of(one: Service, tenant_id: str) -> dict[str, Any]:
    """What the end of the tenant is on record as, once it has come."""
    give_up_at = time.monotonic() + DONE_WITHIN_S
    with one.client() as http:
        while True:
            answer = http.delete(f"/v1/admin/tenants/{tenant_id}")
            if answer.status_code == 200 and answer.json()["status"] == "complete":
                body: dict[str, Any] = answer.json()
                assert http.post("/v1/erasures/verify", json=body).json() == {"valid": True}
                return body
            assert time.monotonic() < give_up_at, answer.text
            time.sleep(0.2)


async def points_of(data_dir: Path, tenant_id: UUID) -> int:
    """In the index of a service that has stopped."""
    index = EdgeIndex.open(data_dir / "index")
    try:
        return sum([sum(1 for point in page if point.tenant_id == tenant_id) async for page in index.scroll()])
    finally:
        await index.close()


def rows_of(data_dir: Path, *words: str) -> set[str]:
    """The tables of a service that has stopped with a row that holds one of these."""
    server = EmbeddedServer.start(data_dir, allow_root_home=True)
    try:
        return {row.partition(":")[0] for row in mentioning(server.owner_url, list(words))}
    finally:
        server.stop()


def ends_though_killed(point: str) -> None:
    with served.service(COATCHECK_RESPONSE_CACHE="true", COATCHECK_RESPONSE_CACHE_TIMEOUT_S="20") as one:
        one.start(f"{point}=kill")
        tenant_id, key = inhabited(one)
        with one.client() as http:
            kept = http.post("/v1/compactions", json=request("kept", window(mark="zebra"))).json()
            with pytest.raises(httpx.TransportError):
                http.delete(f"/v1/admin/tenants/{tenant_id}")
        one.dies()

        one.start()
        with httpx.Client(base_url=one.url, headers={"Authorization": f"Bearer {key}"}, timeout=60) as theirs:
            assert theirs.get("/v1/sessions").status_code == 401
        receipt = receipt_of(one, tenant_id)
        with one.client() as http:
            assert http.get(f"/v1/manifests/{kept['manifest_id']}/window").json()["messages"] == window(mark="zebra")
            again = http.post("/v1/admin/tenants", json={"name": "acme"})
        one.terminate()
        one.ended(30)

        assert again.status_code == 201
        assert (receipt["counts"]["sessions"], receipt["counts"]["manifests"]) == (2, 2)
        assert receipt["counts"]["points"] > 0
        assert asyncio.run(points_of(one.data_dir, UUID(tenant_id))) == 0
        # What is left names the tenant for whoever off-boarded it, and nothing of its content.
        assert rows_of(one.data_dir, tenant_id, "okapi", "quagga", "zebra stripes", "zebra key") == {"audit", "erasures"}


def test_a_tenant_ends_though_its_end_was_killed() -> None:
    ends_though_killed(IN_SHORT)


@pytest.mark.accept
@pytest.mark.parametrize("point", POINTS)
def test_T37_a_tenant_ends_wherever_its_end_was_killed(point: str) -> None:
    ends_though_killed(point)
