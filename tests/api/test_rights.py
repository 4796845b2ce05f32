"""Rights that end while a request lasts: neither a slow sender nor a slow reader keeps them."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Callable
from uuid import UUID
from uuid import uuid4 as new_id

import pytest
from fastapi import Request, Response
from starlette.responses import StreamingResponse
from starlette.types import Message
from structlog.testing import capture_logs

from coatcheck.api.asked import asked_of
from coatcheck.api.edge import Limits
from coatcheck.identity.context import CredentialKind
from coatcheck.identity.credentials import ApiKey
from coatcheck.identity.doors import Door
from coatcheck.identity.operations import MEMBER
from coatcheck.identity.ports import RightsRecord
from tests.api.bench import Bench
from tests.api.test_edge import credential, exchange
from tests.identity.directory import NOW, MemoryDirectory

Change = Callable[[RightsRecord], RightsRecord]
LIMITS = Limits(64 * 1024, 30, 600, rights_recheck_s=0)

TAKEN_AWAY: dict[str, Change] = {
    "revoked": lambda rights: dataclasses.replace(rights, revoked_at=NOW),
    "deactivated": lambda rights: dataclasses.replace(rights, principal_active=False),
    "out of its team": lambda rights: dataclasses.replace(rights, teams=frozenset()),
    "without an operation": lambda rights: dataclasses.replace(rights, operations=MEMBER - {"read"}),
    "kept to a session": lambda rights: dataclasses.replace(rights, sessions=frozenset({UUID(int=9)})),
}


@pytest.fixture
def member(directory: MemoryDirectory, bench: Bench) -> ApiKey:
    bench.limits = LIMITS
    return directory.add(teams=frozenset({UUID(int=5)}))


def change(directory: MemoryDirectory, key: ApiKey, how: Change) -> None:
    record = directory.records[key.tenant_id, key.key_id]
    directory.records[key.tenant_id, key.key_id] = dataclasses.replace(record, rights=how(record.rights))


def sends(key: ApiKey) -> dict[str, str]:
    return {"Authorization": f"Bearer {key.text}"}


@pytest.mark.parametrize("name", ["revoked", "deactivated"])
async def test_a_body_that_arrives_after_its_rights_are_gone_reaches_no_route(
    bench: Bench, directory: MemoryDirectory, member: ApiKey, name: str
) -> None:
    reached = []

    @bench.inner.post("/v1/slow")
    async def slow(request: Request) -> Response:
        reached.append(await request.body())
        return Response()

    async def body() -> AsyncIterator[bytes]:
        yield b"{"
        change(directory, member, TAKEN_AWAY[name])
        yield b"}"

    async with bench.client() as client:
        answer = await client.post("/v1/slow", content=body(), headers=sends(member))

    assert answer.status_code == 401
    assert reached == []


async def test_a_body_that_takes_its_time_is_worked_on_with_the_rights_of_its_end(
    bench: Bench, directory: MemoryDirectory, member: ApiKey
) -> None:
    @bench.inner.post("/v1/slow")
    async def slow(request: Request) -> list[str]:
        context = asked_of(request.scope).context
        assert context is not None
        return list(context.scope.acl)

    async def body() -> AsyncIterator[bytes]:
        yield b"{"
        change(directory, member, TAKEN_AWAY["out of its team"])
        yield b"}"

    async with bench.client() as client:
        acl = (await client.post("/v1/slow", content=body(), headers=sends(member))).json()

    assert acl == [f"p:{UUID(int=1)}", "public"]


@pytest.mark.parametrize("name", TAKEN_AWAY)
async def test_a_stream_that_is_worked_on_as_it_arrives_ends_with_the_rights_for_it(
    bench: Bench, directory: MemoryDirectory, member: ApiKey, name: str
) -> None:
    pieces: list[bytes] = []

    @bench.inner.post("/v1/import")
    async def stream(request: Request) -> Response:
        async for chunk in request.stream():
            pieces.append(chunk)
        return Response()

    async def body() -> AsyncIterator[bytes]:
        yield b"1"
        yield b"2"
        change(directory, member, TAKEN_AWAY[name])
        yield b"3"

    async with bench.client() as client:
        answer = await client.post("/v1/import", content=body(), headers=sends(member))

    assert answer.status_code == 401
    assert pieces == [b"1", b"2"]


@pytest.mark.parametrize("name", TAKEN_AWAY)
async def test_an_answer_that_is_streamed_breaks_off_with_the_rights_for_it(
    bench: Bench, directory: MemoryDirectory, member: ApiKey, name: str
) -> None:
    given: list[bytes] = []

    @bench.inner.get("/v1/export")
    async def export() -> Response:
        async def lines() -> AsyncIterator[bytes]:
            for number in range(4):
                given.append(b"%d" % number)
                yield given[-1]
                if number == 1:
                    change(directory, member, TAKEN_AWAY[name])

        return StreamingResponse(lines())

    whole: Message = {"type": "http.request", "body": b"", "more_body": False}
    with capture_logs() as seen:
        sent, _ = await exchange(bench.edge(), [whole], method="GET", path="/v1/export", headers=credential(member))

    bodies = [message for message in sent if message["type"] == "http.response.body"]
    assert [message["body"] for message in bodies] == [b"0", b"1"]
    said = [(line["event"], line["log_level"], line["problem"]) for line in seen if line["event"] != "request"]
    assert said == [("answer broken off", "warning", "unauthenticated")]
    assert all(message["more_body"] for message in bodies)
    assert given == [b"0", b"1", b"2"]
    assert bench.gate.in_flight == 0


async def test_more_rights_meanwhile_change_nothing(bench: Bench, directory: MemoryDirectory, member: ApiKey) -> None:
    @bench.inner.get("/v1/export")
    async def export() -> Response:
        async def lines() -> AsyncIterator[bytes]:
            for number in range(4):
                yield b"%d" % number
                change(directory, member, lambda rights: dataclasses.replace(rights, teams=rights.teams | {new_id()}))

        return StreamingResponse(lines())

    async with bench.client() as client:
        answer = await client.get("/v1/export", headers=sends(member))

    assert (answer.status_code, answer.content) == (200, b"0123")


@pytest.mark.parametrize("door", list(Door))
async def test_a_delegate_is_judged_at_the_door_that_it_came_through(
    bench: Bench, directory: MemoryDirectory, member: ApiKey, door: Door
) -> None:
    made = dataclasses.replace(member, kind=CredentialKind.DELEGATION)
    record = directory.records[member.tenant_id, member.key_id]
    rights = dataclasses.replace(record.rights, doors=frozenset({door}))
    directory.delegations[member.tenant_id, member.key_id] = dataclasses.replace(record, rights=rights)

    @bench.inner.post("/mcp")
    @bench.inner.post("/v1/thing")
    async def thing() -> Response:
        return Response()

    async with bench.client() as client:
        answers = [(await client.post(path, content=b"{}", headers=sends(made))).status_code for path in ("/v1/thing", "/mcp")]

    assert answers == [200 if door is Door.API else 401, 200 if door is Door.MCP else 401]


async def test_rights_that_are_young_enough_are_not_asked_for_again(
    bench: Bench, directory: MemoryDirectory, member: ApiKey
) -> None:
    bench.limits = Limits(64 * 1024, 30, 600)

    @bench.inner.post("/v1/quick")
    async def quick() -> Response:
        return Response()

    @bench.inner.get("/v1/export")
    async def export() -> Response:
        async def lines() -> AsyncIterator[bytes]:
            yield b"0"
            yield b"1"

        return StreamingResponse(lines())

    async with bench.client() as client:
        answers = [
            await client.post("/v1/quick", content=b"{}", headers=sends(member)),
            await client.get("/v1/export", headers=sends(member)),
        ]

    assert [answer.status_code for answer in answers] == [200, 200]
    assert len(directory.asked) == 2
