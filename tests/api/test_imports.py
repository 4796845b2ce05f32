"""An import's stream is cut into lines, however it arrives."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.api import imports
from coatcheck.api.imports import lines_of
from coatcheck.domain.errors import TooLarge
from coatcheck_client.wire import ImportResponse
from tests.api.standins import Bench


async def chunked(chunks: list[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


@given(st.lists(st.binary(max_size=12).map(lambda raw: raw.replace(b"b", b"\n"))))
async def test_lines_do_not_depend_on_how_the_stream_was_cut(chunks: list[bytes]) -> None:
    found = [line async for line in lines_of(chunked(chunks))]

    assert found == [line for line in b"".join(chunks).split(b"\n") if line.strip()]


async def test_a_line_without_end_is_refused_while_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imports, "MAX_LINE_BYTES", 100)

    with pytest.raises(TooLarge):
        [line async for line in lines_of(chunked([b"x" * 60, b"x" * 60]))]


async def test_an_import_longer_than_a_body_may_be_passes_line_by_line(bench: Bench, authorized: dict[str, str]) -> None:
    sizes: list[int] = []

    async def import_lines(_context: object, lines: AsyncIterator[bytes]) -> ImportResponse:
        async for line in lines:
            sizes.append(len(line))
        return ImportResponse(sessions=0, manifests=len(sizes), segments=0, skipped=0, warnings=[])

    bench.use_cases["import_lines"] = import_lines
    line = b"{" + b" " * 30_000 + b"}\n"

    async with bench.client() as client:
        answer = await client.post("/v1/import", content=chunked([line] * 10), headers=authorized)

    assert answer.json()["manifests"] == 10
    assert sum(sizes) > bench.limits.max_body_bytes


async def test_a_stranger_cannot_import(client: httpx.AsyncClient) -> None:
    answer = await client.post("/v1/import", content=b"{}\n")

    assert answer.status_code == 401
