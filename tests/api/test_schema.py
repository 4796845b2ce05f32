"""The service against its own document: requests made from it, right and wrong, with and without a credential."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import FlakyStrategyDefinition
from hypothesis.stateful import run_state_machine_as_test
from schemathesis import checks
from schemathesis.specs.openapi import checks as of_openapi

from coatcheck.api.app import routed_app
from coatcheck.api.openapi import document
from tests.cli.serving import served

DOCUMENT = document(routed_app())
OPERATIONS = [(method.upper(), path) for path, item in DOCUMENT["paths"].items() for method in item]
CHAINS = 15
TAKES_ITS_OWN = r"/(limits|keys|principals|tenants)"
"""Where a chain would take away what it asks with: its rate, its key, its principal."""
ALWAYS = [
    checks.not_a_server_error,
    of_openapi.status_code_conformance,
    of_openapi.content_type_conformance,
    of_openapi.response_schema_conformance,
    of_openapi.ignored_auth,
]
schemathesis.openapi.media_type("application/x-ndjson", st.binary(max_size=200))


def quick(examples: int) -> settings:
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
        verbosity=Verbosity.quiet,
    )


@dataclass(frozen=True)
class Door:
    """A served service, and what opens it."""

    url: str
    headers: dict[str, str]
    schema: Any


@pytest.fixture(scope="module")
def door() -> Iterator[Door]:
    # Short, since the embedded server's socket lies below it; world-enterable, where another user runs that server.
    folder = Path(mkdtemp(prefix="cc-", dir="/tmp"))
    os.chmod(folder, 0o755)
    try:
        with served(folder / "data") as said:
            key = (folder / "data" / "local.key").read_text("ascii").strip()
            schema = schemathesis.openapi.from_dict(DOCUMENT)
            schema.config.update(base_url=said["url"])
            yield Door(said["url"], {"Authorization": f"Bearer {key}"}, schema)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def ask(door: Door, method: str, path: str, examples: int, headers: dict[str, str]) -> set[int]:
    """The statuses of so many requests, each of which passed every check."""
    statuses: set[int] = set()

    @given(case=door.schema[path][method].as_strategy())
    @quick(examples)
    def one(case: Any) -> None:
        answer = case.call(headers=headers)
        statuses.add(answer.status_code)
        case.validate_response(answer, checks=ALWAYS, headers=headers)

    one()
    return statuses


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_nothing_that_fits_the_document_breaks_it(door: Door, method: str, path: str) -> None:
    assert ask(door, method, path, 6, door.headers)


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_without_a_credential_everything_is_refused(door: Door, method: str, path: str) -> None:
    public = DOCUMENT["paths"][path][method.lower()].get("security") == []

    assert ask(door, method, path, 2, {}) == ({200} if public else {401})


@pytest.mark.accept
@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_many_requests_of_every_operation(door: Door, method: str, path: str) -> None:
    assert ask(door, method, path, 150, door.headers)
    ask(door, method, path, 25, {})


@pytest.mark.accept
def test_no_chain_of_requests_reaches_what_was_deleted(door: Door) -> None:
    """A state machine over the document's own links: what one operation made, others read, change and delete."""
    asked: Counter[str] = Counter()
    machine = door.schema.exclude(path_regex=TAKES_ITS_OWN).as_state_machine()

    class Chain(machine):  # type: ignore[misc, valid-type]
        def get_call_kwargs(self, case: Any) -> dict[str, Any]:
            return {"headers": door.headers}

        def validate_response(self, response: Any, case: Any, **more: Any) -> None:
            asked[f"{case.operation.method.upper()} {response.status_code}"] += 1
            wanted = [checks.not_a_server_error, of_openapi.use_after_free, of_openapi.ensure_resource_availability]
            case.validate_response(response, checks=wanted, headers=door.headers)

    for number in range(CHAINS):
        # What a request is answered depends on those before it: where a drawing repeats itself, it may go another way.
        with contextlib.suppress(FlakyStrategyDefinition):
            run_state_machine_as_test(seed(number)(Chain), settings=settings(quick(10), derandomize=False, stateful_step_count=10))

    print(dict(asked))
    assert sum(asked.values()) > 10 * CHAINS
    assert sum(count for kind, count in asked.items() if kind.startswith("DELETE 2")) > 0
