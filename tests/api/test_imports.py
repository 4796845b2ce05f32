"""An import's stream is cut into lines, however it arrives."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.api import imports
from coatcheck.api.imports import lines_of
from coatcheck.domain.errors import TooLarge


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
