"""The contract as any client sees it, over the whole app: what is refused before a use case is reached."""

from __future__ import annotations

from uuid import UUID

import pytest

from tests.api.conftest import Served

pytestmark = pytest.mark.asyncio(loop_scope="module")

CANARY = "canary-" + "5eed" * 4


async def test_an_unknown_route_is_401_to_strangers_and_404_to_callers(served: Served) -> None:
    for path in ("/", "/nowhere", "/v1", "/v1/sessions/", "/docs", "/redoc", "/livez/", "/%2flivez", "/metrics/x", "/mcp/x"):
        assert (await served.http.get(path)).status_code == 401
        answer = await served.http.get(path, headers=served.operator.headers)
        assert answer.status_code == 404, path
        assert answer.json()["type"].endswith(":not-found")


async def test_the_document_is_shown_to_callers(served: Served) -> None:
    stranger = await served.http.get("/openapi.json")
    caller = await served.http.get("/openapi.json", headers=served.operator.headers)

    assert stranger.status_code == 401
    assert caller.json()["openapi"].startswith("3.1")


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/readyz?verbose", "/progressz", "/metrics"])
async def test_probes_ask_for_no_credential(served: Served, path: str) -> None:
    answer = await served.http.get(path)

    assert answer.status_code == 200
    assert str(served.operator.tenant_id) not in answer.text


@pytest.mark.parametrize(
    ("body", "status", "slug"),
    [
        (b"", 400, "malformed"),
        (b"{", 400, "malformed"),
        (b"\xff", 400, "malformed"),
        (b'{"session":"s","session":"s","window":{"messages":[]}}', 400, "malformed"),
        (b'{"session":"s","window":{"messages":[{"role":"user","role":"user"}]}}', 400, "malformed"),
        (b'{"session":"s","window":{"messages":[{"role":"user","content":NaN}]}}', 400, "malformed"),
        (b"[" * 100_000, 400, "malformed"),
        (b'{"a":' * 100_000, 400, "malformed"),
        (b"null", 422, "invalid-request"),
        (b"{}", 422, "invalid-request"),
        (b'{"session":"","window":{"messages":[]}}', 422, "invalid-request"),
        (b'{"session":"s","window":{"messages":{}}}', 422, "invalid-request"),
        (b'{"session":"s","window":{"messages":[]}}', 422, "empty-window"),
        (b'{"session":"s","window":{"messages":[]},"tenant_id":"x"}', 422, "invalid-request"),
    ],
    ids=lambda value: repr(value)[:24],
)
async def test_a_body_that_does_not_fit_is_refused(served: Served, body: bytes, status: int, slug: str) -> None:
    answer = await served.http.post("/v1/compactions", content=body, headers=served.operator.headers)

    assert (answer.status_code, answer.json()["type"].rpartition(":")[2]) == (status, slug)
    assert answer.json()["retryable"] is False


@pytest.mark.parametrize("depth", [50, 150, 250, 400, 700, 900, 950, 980, 990])
async def test_a_message_nested_deeply_is_kept_or_refused_and_never_a_failure(served: Served, depth: int) -> None:
    block = b'{"type":"custom","input":' + b"[" * depth + b'"deep"' + b"]" * depth + b"}"
    message = b'{"role":"user","content":[{"type":"text","text":"' + b"word " * 900 + b'"},' + block + b"]}"
    body = b'{"session":"deep-%d","window":{"messages":[%s]}}' % (depth, message)

    answer = await served.http.post("/v1/compactions", content=body, headers=served.operator.headers)

    assert answer.status_code in (201, 400, 422), answer.text
    if answer.status_code == 201:
        window = await served.http.get(f"/v1/manifests/{answer.json()['manifest_id']}/window", headers=served.operator.headers)
        assert window.content.count(b"[") == depth + 2


@pytest.mark.parametrize(
    ("path", "pointer"),
    [
        ("/v1/sessions?page_size=0", "/query/page_size"),
        ("/v1/sessions?page_size=201", "/query/page_size"),
        (f"/v1/sessions?page_size={CANARY}", "/query/page_size"),
        (f"/v1/sessions?page_token={CANARY}", "/query/page_token"),
        (f"/v1/sessions?page_token={CANARY * 60}", "/query/page_token"),
        (f"/v1/admin/keys?page_token={CANARY}", "/query/page_token"),
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
async def test_a_parameter_that_does_not_fit_is_named_and_not_repeated(served: Served, path: str, pointer: str) -> None:
    answer = await served.http.get(path, headers=served.operator.headers)

    assert answer.status_code == 422
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]
    assert CANARY not in answer.text


@pytest.mark.parametrize(
    ("name", "value"), [("Coatcheck-Deadline", "0"), ("Coatcheck-Deadline", CANARY), ("Idempotency-Key", f"two {CANARY}")]
)
async def test_a_header_that_does_not_fit_is_named_and_not_repeated(served: Served, name: str, value: str) -> None:
    body = {"session": "s", "window": {"messages": []}}

    answer = await served.http.post("/v1/compactions", json=body, headers={**served.operator.headers, name: value})

    assert answer.status_code == 422
    assert [error["pointer"] for error in answer.json()["errors"]] == [f"/header/{name.lower()}"]
    assert CANARY not in answer.text


@pytest.mark.parametrize("method", ["PUT", "PATCH", "POST", "DELETE", "HEAD", "OPTIONS", "TRACE", "BREW"])
async def test_a_method_without_a_credential_is_refused_as_any(served: Served, method: str) -> None:
    for path in ("/v1/segments/0123456789ab", "/mcp"):
        assert (await served.http.request(method, path)).status_code == 401


async def test_a_tenant_named_in_a_header_or_a_query_is_not_a_credential(served: Served) -> None:
    tenant = str(served.operator.tenant_id)

    answer = await served.http.get(
        f"/v1/sessions?tenant_id={tenant}&api_key=x", headers={"X-Tenant-Id": tenant, "Cookie": "session=1", "X-Api-Key": "x"}
    )

    assert answer.status_code == 401


async def test_a_body_beyond_the_limit_is_refused_whatever_is_announced(served: Served) -> None:
    headers = {**served.operator.headers, "Content-Length": "10"}
    body = b"x" * (served.app.parts.settings.max_body_bytes + 1)

    answer = await served.http.post("/v1/recall", content=body, headers=headers)

    assert answer.status_code == 413
