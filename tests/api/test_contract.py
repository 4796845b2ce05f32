"""The contract as any client sees it. Needs ``client`` and ``key`` alone: holds over the real app as it does here."""

from __future__ import annotations

from uuid import UUID

import httpx
import pytest

CANARY = "canary-" + "5eed" * 4


async def test_an_unknown_route_is_401_to_strangers_and_404_to_callers(
    client: httpx.AsyncClient, authorized: dict[str, str]
) -> None:
    for path in ("/", "/nowhere", "/v1", "/v1/sessions/", "/docs", "/redoc", "/livez/", "//livez", "/metrics/x"):
        assert (await client.get(path)).status_code == 401
        answer = await client.get(path, headers=authorized)
        assert answer.status_code == 404
        assert answer.json()["type"].endswith(":not-found")


async def test_the_document_is_shown_to_callers(client: httpx.AsyncClient, authorized: dict[str, str]) -> None:
    assert (await client.get("/openapi.json")).status_code == 401
    assert (await client.get("/openapi.json", headers=authorized)).json()["openapi"].startswith("3.1")


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/readyz?verbose", "/progressz", "/metrics"])
async def test_probes_ask_for_no_credential(client: httpx.AsyncClient, path: str) -> None:
    assert (await client.get(path)).status_code == 200


@pytest.mark.parametrize(
    ("body", "status", "slug"),
    [
        (b"", 400, "malformed"),
        (b"{", 400, "malformed"),
        (b"\xff", 400, "malformed"),
        (b'{"session":"s","session":"s","window":{"messages":[]}}', 400, "malformed"),
        (b'{"session":"s","window":{"messages":[{"role":"user","role":"user"}]}}', 400, "malformed"),
        (b'{"session":"s","window":{"messages":[{"role":"user","content":NaN}]}}', 400, "malformed"),
        (b"[" * 100_000, 413, "too-large"),
        (b"[" * 60_000, 400, "malformed"),
        (b"null", 422, "invalid-request"),
        (b"{}", 422, "invalid-request"),
        (b'{"session":"","window":{"messages":[]}}', 422, "invalid-request"),
        (b'{"session":"s","window":{"messages":{}}}', 422, "invalid-request"),
        (b'{"session":"s","window":{"messages":[]},"tenant_id":"x"}', 422, "invalid-request"),
    ],
    ids=lambda value: repr(value)[:24],
)
async def test_a_body_that_does_not_fit_is_refused(
    client: httpx.AsyncClient, authorized: dict[str, str], body: bytes, status: int, slug: str
) -> None:
    answer = await client.post("/v1/compactions", content=body, headers=authorized)

    assert (answer.status_code, answer.json()["type"].rpartition(":")[2]) == (status, slug)
    assert answer.json()["retryable"] is False


@pytest.mark.parametrize(
    ("path", "pointer"),
    [
        ("/v1/sessions?page_size=0", "/query/page_size"),
        ("/v1/sessions?page_size=201", "/query/page_size"),
        (f"/v1/sessions?page_size={CANARY}", "/query/page_size"),
        (f"/v1/sessions?page_token={CANARY * 60}", "/query/page_token"),
        (f"/v1/sessions/{CANARY}", "/path/session_id"),
        ("/v1/sessions/1", "/path/session_id"),
        (f"/v1/manifests/{CANARY}/entries", "/path/manifest_id"),
        (f"/v1/manifests/{UUID(int=1)}/entries?text={CANARY}", "/query/text"),
        (f"/v1/segments/{CANARY}", "/path/sha256"),
        ("/v1/segments/0123456789a", "/path/sha256"),
        (f"/v1/segments/{'0' * 65}", "/path/sha256"),
        ("/v1/segments/0123456789AB", "/path/sha256"),
        (f"/v1/admin/scan/{CANARY}", "/path/job_id"),
    ],
)
async def test_a_parameter_that_does_not_fit_is_named_and_not_repeated(
    client: httpx.AsyncClient, authorized: dict[str, str], path: str, pointer: str
) -> None:
    answer = await client.get(path, headers=authorized)

    assert answer.status_code == 422
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]
    assert CANARY not in answer.text


@pytest.mark.parametrize(
    ("name", "value"), [("Coatcheck-Deadline", "0"), ("Coatcheck-Deadline", CANARY), ("Idempotency-Key", f"two {CANARY}")]
)
async def test_a_header_that_does_not_fit_is_named_and_not_repeated(
    client: httpx.AsyncClient, authorized: dict[str, str], name: str, value: str
) -> None:
    body = {"session": "s", "window": {"messages": []}}

    answer = await client.post("/v1/compactions", json=body, headers={**authorized, name: value})

    assert answer.status_code == 422
    assert [error["pointer"] for error in answer.json()["errors"]] == [f"/header/{name.lower()}"]
    assert CANARY not in answer.text


@pytest.mark.parametrize("method", ["PUT", "PATCH", "POST", "DELETE", "HEAD", "OPTIONS", "TRACE", "BREW"])
async def test_a_method_without_a_credential_is_refused_as_any(client: httpx.AsyncClient, method: str) -> None:
    answer = await client.request(method, "/v1/segments/0123456789ab")

    assert answer.status_code == 401


async def test_a_tenant_named_in_a_header_or_a_query_is_not_a_credential(client: httpx.AsyncClient) -> None:
    tenant = str(UUID(int=0xA))

    answer = await client.get(
        f"/v1/sessions?tenant_id={tenant}&api_key=x", headers={"X-Tenant-Id": tenant, "Cookie": "session=1", "X-Api-Key": "x"}
    )

    assert answer.status_code == 401
