"""What cannot be written into a request is said to be that: no traceback of a library, no service that is blamed, no second try."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from coatcheck_client import AsyncCoatcheck, Coatcheck
from coatcheck_client.discovery import locate
from coatcheck_client.errors import CannotBeSent, ClientError, NoServiceConfigured
from coatcheck_client.flows import Send, request
from tests.outbound.network import web_server

URL = "http://service.test"
Call = Callable[[Coatcheck], Any]
CALLS: dict[str, Call] = {
    "half a pair in an id": lambda client: client.manifest("\udcff"),
    "half a pair in a hash": lambda client: client.segment("\ud800" * 12),
    "half a pair in a query": lambda client: client.run(request(Send("GET", "/v1/sessions", params={"page_token": "\ud800"}))),
    "an address of a megabyte": lambda client: client.manifest("x" * 1_000_000),
    "a query of a megabyte": lambda client: client.run(request(Send("GET", "/v1/sessions", params={"page_token": "x" * 10**6}))),
    "an id that is another place": lambda client: client.erase_session(".."),
    "letters in a header": lambda client: client.compact([], session="s", idempotency_key="ключ"),
}


@pytest.mark.parametrize("name", CALLS)
def test_what_cannot_be_written_is_never_sent(name: str) -> None:
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(500)

    with Coatcheck(URL, "key", transport=httpx.MockTransport(answer)) as client, pytest.raises(CannotBeSent) as refused:
        CALLS[name](client)

    assert asked == []
    assert not refused.value.retryable
    assert len(str(refused.value)) < 300


async def test_a_line_end_in_a_header_is_no_fault_of_the_service() -> None:
    async with web_server() as server, AsyncCoatcheck(server.url.removesuffix("/jwks"), "key") as client:
        with pytest.raises(CannotBeSent):
            await client.compact([], session="s", idempotency_key="a\r\nX-Other: b")

    assert server.requests == []


@pytest.mark.parametrize(
    "url",
    [
        "service", "ftp://h/", "http://", "http://h:0", "http://h:port", "http://h:99999", "http://h:-1", "http://[::1", "http://\udcff/",
        "http:// h/",        "http://h\n/", "http://\x00", "http://" + "h" * 70_000, "//h", "http:///v1",
    ],
)  # fmt: skip
def test_a_url_that_is_none_is_said_to_be_none(tmp_path: Path, url: str) -> None:
    for given, environment in ((url, {}), (None, {"COATCHECK_URL": url})):
        with pytest.raises(NoServiceConfigured) as refused:
            locate(given, directory=tmp_path, environment=environment)
        assert len(str(refused.value)) < 300


@pytest.mark.parametrize("key", ["ключ", "a b", "key\n", "a\r\nX: y", "\ud800", "a\x00b"])
def test_a_key_that_is_none_is_said_to_be_none_and_not_repeated(tmp_path: Path, key: str) -> None:
    with pytest.raises(NoServiceConfigured) as refused:
        Coatcheck(URL, key, data_dir=tmp_path)

    assert key not in str(refused.value)


@pytest.mark.parametrize("content", ['{"url": "http://h:port"}', '{"url": "http://[::1"}', '{"url": 7}', "[" * 100_000, "\x00"])
def test_a_damaged_run_file_names_no_service(tmp_path: Path, content: str) -> None:
    (tmp_path / "run.json").write_text(content, "utf-8")

    with pytest.raises(ClientError):
        locate(directory=tmp_path, environment={})
    assert locate("http://h:1", directory=tmp_path, environment={}).api_key is None
