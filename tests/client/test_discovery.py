"""Where a client looks for its service and its key, and to whom it never shows the local one."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from coatcheck.app.data_dir import DataDirectory
from coatcheck_client import Coatcheck
from coatcheck_client.discovery import Location, data_dir, locate
from coatcheck_client.errors import NoServiceConfigured


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "run.json").write_text(json.dumps({"url": "http://127.0.0.1:8717", "pid": 1}), "utf-8")
    (tmp_path / "local.key").write_text("local\n", "ascii")
    return tmp_path


def test_a_running_service_is_found_with_its_key(directory: Path) -> None:
    assert locate(directory=directory, environment={}) == Location("http://127.0.0.1:8717", "local")


def test_what_is_given_comes_before_the_environment_and_the_environment_before_the_file(directory: Path) -> None:
    environment = {"COATCHECK_URL": "https://named.test/", "COATCHECK_API_KEY": "named"}

    assert locate("http://given.test", "given", directory=directory, environment=environment) == Location(
        "http://given.test", "given"
    )
    assert locate(directory=directory, environment=environment) == Location("https://named.test", "named")


def test_the_local_key_is_shown_to_no_other_service(directory: Path) -> None:
    assert locate("https://elsewhere.test", directory=directory, environment={}).api_key is None
    assert locate("http://127.0.0.1:9999", directory=directory, environment={}).api_key is None
    assert locate("https://127.0.0.1:8717", directory=directory, environment={}).api_key is None


def test_the_same_service_under_another_loopback_name_is_the_same(directory: Path) -> None:
    assert locate("http://localhost:8717", directory=directory, environment={}).api_key == "local"


def test_nothing_to_talk_to_is_said(tmp_path: Path) -> None:
    with pytest.raises(NoServiceConfigured, match="COATCHECK_URL"):
        locate(directory=tmp_path, environment={})


@pytest.mark.parametrize("url", ["nonsense", "127.0.0.1:8717", "ftp://named.test", "http://"])
def test_a_url_that_is_none_of_a_service_is_said(tmp_path: Path, url: str) -> None:
    with pytest.raises(NoServiceConfigured, match="http://"):
        locate(directory=tmp_path, environment={"COATCHECK_URL": url})


@pytest.mark.parametrize(
    ("url", "write"),
    [
        ("http://127.0.0.1:8717/v1", "http://127.0.0.1:8717,"),
        ("http://127.0.0.1:8717/v1/", "http://127.0.0.1:8717,"),
        ("https://proxy.test/memory/v1/compactions", "https://proxy.test/memory,"),
        ("https://named.test/mcp", "https://named.test,"),
        ("https://named.test/readyz?verbose", "https://named.test,"),
        ("https://named.test/#top", "https://named.test,"),
        ("https://ada:word@named.test/v1", "https://named.test,"),
    ],
)
def test_a_url_that_names_a_route_is_told_what_to_write(tmp_path: Path, url: str, write: str) -> None:
    with pytest.raises(NoServiceConfigured) as refused:
        locate(directory=tmp_path, environment={"COATCHECK_URL": url})

    assert f"write {write}" in str(refused.value)
    assert "word" not in str(refused.value)


@pytest.mark.parametrize("url", ["https://proxy.test/memory", "https://proxy.test/memory/", "https://proxy.test/v1/memory"])
def test_a_service_below_a_proxys_path_is_asked_there(tmp_path: Path, url: str) -> None:
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        return httpx.Response(200, json={"sessions": [], "next_page_token": None})

    with Coatcheck(url, "key", data_dir=tmp_path, transport=httpx.MockTransport(answer)) as client:
        client.sessions()
        client.is_alive()
        client.mcp_message(b"{}")

    below = url.removeprefix("https://proxy.test").rstrip("/")
    assert asked == [f"{below}/v1/sessions", f"{below}/livez", f"{below}/mcp"]


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"url": 3}', "\xff"])
def test_a_run_file_that_says_nothing_is_no_service(tmp_path: Path, content: str) -> None:
    (tmp_path / "run.json").write_text(content, "latin-1")

    with pytest.raises(NoServiceConfigured):
        locate(directory=tmp_path, environment={})


def test_an_empty_variable_is_one_that_is_not_set(directory: Path) -> None:
    empty = {"COATCHECK_URL": "", "COATCHECK_API_KEY": ""}

    assert locate(directory=directory, environment=empty) == locate(directory=directory, environment={})
    assert data_dir({"COATCHECK_DATA_DIR": ""}) == data_dir({})


def test_a_data_directory_below_the_home_is_the_same_one_for_the_service_and_its_clients() -> None:
    assert data_dir({"COATCHECK_DATA_DIR": "~/kept"}) == Path.home() / "kept" == DataDirectory(Path("~/kept")).path


def test_the_data_directory_comes_from_the_environment(directory: Path) -> None:
    assert locate(environment={"COATCHECK_DATA_DIR": str(directory)}).api_key == "local"
