"""The OpenAPI document is complete, and the one in the repository is this one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coatcheck.api.app import routed_app
from coatcheck.api.openapi import document, write
from tests.api.operations import EVERY_OPERATION

KEPT = Path(__file__).parents[2] / "docs" / "openapi.json"
METHODS = {"get", "post", "put", "patch", "delete", "head", "options", "trace"}


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    return document(routed_app())


def operations(made: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, item in made["paths"].items():
        for method, operation in item.items():
            assert method in METHODS
            yield f"{method.upper()} {path}", operation


def references(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for inner in value.values():
            yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)


def test_the_document_in_the_repository_is_the_apps(tmp_path: Path) -> None:
    write(tmp_path / "openapi.json", routed_app())

    assert KEPT.read_text("utf-8") == (tmp_path / "openapi.json").read_text("utf-8"), (
        "run: python -m coatcheck.api.openapi docs/openapi.json"
    )


def followed(made: dict[str, Any], value: dict[str, Any]) -> dict[str, Any]:
    """What a reference refers to, or the value itself. Raises KeyError for one that leads nowhere."""
    if "$ref" not in value:
        return value
    found: dict[str, Any] = made
    for step in value["$ref"].removeprefix("#/").split("/"):
        found = found[step]
    return found


def test_every_reference_leads_somewhere(made: dict[str, Any]) -> None:
    found = list(references(made))

    assert len(found) > 100
    for reference in found:
        followed(made, {"$ref": reference})


def test_every_operation_but_the_probes_asks_for_the_credential(made: dict[str, Any]) -> None:
    open_to_all = {name for name, operation in operations(made) if operation.get("security") == []}

    assert open_to_all == {"GET /livez", "GET /readyz", "GET /progressz", "GET /metrics"}
    assert made["security"] == [{"apiKey": []}]
    assert made["components"]["securitySchemes"]["apiKey"]["scheme"] == "bearer"


def test_operation_ids_are_one_each(made: dict[str, Any]) -> None:
    ids = [operation["operationId"] for _, operation in operations(made)]

    assert len(set(ids)) == len(ids)


def test_every_error_is_documented_as_a_problem(made: dict[str, Any]) -> None:
    for name, operation in operations(made):
        if operation.get("security") == []:
            continue
        for status, reference in operation["responses"].items():
            response = followed(made, reference)
            if int(status) >= 400:
                assert list(response["content"]) == ["application/problem+json"], name
            if int(status) == 503:
                assert "Retry-After" in response["headers"], name


def test_every_write_with_a_body_documents_it(made: dict[str, Any]) -> None:
    bodies = {name for name, operation in operations(made) if "requestBody" in operation}

    assert bodies == {
        "POST /v1/compactions", "POST /v1/recall", "PATCH /v1/sessions/{session_id}", "POST /v1/import", "POST /v1/admin/scan",
        "POST /v1/admin/repair", "POST /v1/admin/keys", "POST /v1/admin/tenants", "POST /v1/erasures/verify",
            "PUT /v1/admin/tenants/{tenant_id}/limits", "PUT /v1/admin/retention",
        "POST /v1/cache/lookup", "POST /v1/cache/store", "POST /v1/cache/purge",
        "POST /v1/admin/principals",
        "PATCH /v1/admin/principals/{principal_id}",
        "POST /v1/admin/teams", "POST /v1/admin/memberships", "POST /v1/delegations", "POST /v1/admin/issuers",
    }  # fmt: skip


def test_bounds_are_stated(made: dict[str, Any]) -> None:
    schemas = made["components"]["schemas"]
    compaction = schemas["CompactionRequest"]["properties"]
    recall = schemas["RecallRequest"]["properties"]
    page_size = next(p for p in made["paths"]["/v1/sessions"]["get"]["parameters"] if p["name"] == "page_size")["schema"]
    digits = made["paths"]["/v1/segments/{sha256}"]["get"]["parameters"][0]["schema"]

    assert (compaction["max_handoff_chars"]["minimum"], compaction["max_handoff_chars"]["maximum"]) == (600, 4_000)
    assert (recall["query"]["minLength"], recall["query"]["maxLength"]) == (1, 4_000)
    assert (recall["top_k"]["minimum"], recall["top_k"]["maximum"]) == (1, 50)
    assert (page_size["minimum"], page_size["maximum"], page_size["default"]) == (1, 200, 50)
    assert digits["pattern"] == "^[0-9a-f]{12,64}$"


def test_the_headers_of_the_contract_are_stated(made: dict[str, Any]) -> None:
    def names(operation: dict[str, Any]) -> set[str]:
        return {parameter["name"] for parameter in operation["parameters"] if parameter["in"] == "header"}

    assert names(made["paths"]["/v1/compactions"]["post"]) == {"Idempotency-Key", "Coatcheck-Deadline"}
    assert names(made["paths"]["/v1/recall"]["post"]) == {"Coatcheck-Deadline"}


def test_nothing_of_the_frameworks_own_errors_is_left(made: dict[str, Any]) -> None:
    assert "HTTPValidationError" not in json.dumps(made)


def test_every_operation_documents_what_it_may_answer(made: dict[str, Any]) -> None:
    for (method, path), row in EVERY_OPERATION.items():
        wanted = {"400", "401", "403", "413", "422", "500", "503"} | ({"404"} if row.names_something else set())
        assert wanted <= set(made["paths"][path][method.lower()]["responses"]), path
