"""Both clients against a scripted network: what is sent, what is sent again, how answers and problems are read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

import coatcheck_client
from coatcheck.domain import errors as service_errors
from coatcheck_client import AsyncCoatcheck, Coatcheck, RetryPolicy, errors
from coatcheck_client.errors import (
    ClientError,
    Conflict,
    Erased,
    ExportCutOff,
    InvalidRequest,
    NoProgress,
    NotFound,
    ProblemError,
    ServiceUnreachable,
    TryLater,
    UnexpectedAnswer,
)
from coatcheck_client.wire import JobOut, Problem

ID = "019aa0f0-0000-7000-8000-000000000001"
URL = "http://service.test"
COMPACTED: dict[str, Any] = {
    "manifest_id": ID,
    "session_id": ID,
    "parent_manifest_id": None,
    "handoff": {"text": "t \ud83d", "chars": 3, "sha256": "0" * 64, "overview_source": "excerpt", "message": {"role": "user"}},
    "window": {"messages": 1, "parts": 1, "chars": 9, "tokens": {"count": 2, "counter": "chars/4", "estimated": True}},
    "segments": {"total": 1, "keep": 1, "compress": 0, "drop": 0, "already_stored": 0},
    "redactions": {"total": 0, "by_kind": {}},
    "index": {"generation": 1, "passages": 1},
    "warnings": [],
    "timings_ms": {"plan": 1},
    "of_a_later_release": True,
}
SEGMENT: dict[str, Any] = {
    "sha256": "a" * 64,
    "text": "NUL \x00 and half a pair \ud83d",
    "chars": 24,
    "session_id": ID,
    "manifest_id": ID,
    "ordinal": 0,
    "role": "tool",
    "kind": "text",
    "stored_at": "2026-11-18T06:52:11Z",
}


def ok(body: object, status: int = 200) -> httpx.Response:
    return httpx.Response(status, content=json.dumps(body).encode("ascii"), headers={"content-type": "application/json"})


def problem(slug: str, status: int, *, retryable: bool = False, retry_after: str | None = None, **more: Any) -> httpx.Response:
    body = {
        "type": f"urn:coatcheck:problem:{slug}",
        "title": slug,
        "status": status,
        "detail": "Because.",
        "instance": "/requests/1",
        "retryable": retryable,
        **more,
    }
    headers = {"content-type": "application/problem+json", **({"retry-after": retry_after} if retry_after else {})}
    return httpx.Response(status, content=json.dumps(body).encode(), headers=headers)


class Network:
    """Answers with a script, the last answer for ever, and remembers what was asked."""

    def __init__(self) -> None:
        self.asked: list[httpx.Request] = []
        self.bodies: list[bytes] = []
        self.script: list[httpx.Response | Exception] = []

    def answer(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        self.bodies.append(request.content)
        answer = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(answer, Exception):
            raise answer
        # A response serves one request only; the script may answer many with it.
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)

    async def answer_awaited(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        return self.answer(request)


@pytest.fixture
def network() -> Network:
    return Network()


class Caller:
    """Calls an operation by its name, on a client of one kind. Waits are not waited for, only written down."""

    def __init__(self, network: Network, *, awaiting: bool) -> None:
        self._network = network
        self._awaiting = awaiting
        self.waits: list[float] = []
        self.told: list[tuple[str, float]] = []
        told = lambda problem, seconds: self.told.append((problem.title, seconds))  # noqa: E731
        self._policy = RetryPolicy(attempts=4, total_wait_s=30, default_wait_s=1, told=told)

    def __call__(self, operation: str, *args: Any, **kwargs: Any) -> Any:
        if self._awaiting:
            return asyncio.run(self._awaited(operation, *args, **kwargs))
        with Coatcheck(URL, "key", transport=httpx.MockTransport(self._network.answer), retries=self._policy) as client:
            result = getattr(client, operation)(*args, **kwargs)
            return b"".join(result) if operation == "export" else result

    async def _awaited(self, operation: str, *args: Any, **kwargs: Any) -> Any:
        transport = httpx.MockTransport(self._network.answer_awaited)
        async with AsyncCoatcheck(URL, "key", transport=transport, retries=self._policy) as client:
            result = getattr(client, operation)(*args, **kwargs)
            return b"".join([c async for c in result]) if isinstance(result, AsyncIterator) else await result

    async def wait(self, seconds: float) -> None:
        self.waits.append(seconds)


@pytest.fixture(params=["blocking", "awaiting"])
def call(request: pytest.FixtureRequest, network: Network, monkeypatch: pytest.MonkeyPatch) -> Caller:
    caller = Caller(network, awaiting=request.param == "awaiting")
    monkeypatch.setattr("coatcheck_client.client.time", SimpleNamespace(sleep=caller.waits.append))
    monkeypatch.setattr("coatcheck_client.client.asyncio", SimpleNamespace(sleep=caller.wait, to_thread=asyncio.to_thread))
    return caller


def test_every_error_that_a_caller_handles_is_had_from_the_package_itself() -> None:
    classes = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, ClientError)]

    assert len(classes) > 10
    assert all(getattr(coatcheck_client, kind.__name__) is kind for kind in classes)
    assert {kind.__name__ for kind in classes} <= set(coatcheck_client.__all__)


def test_both_clients_have_the_same_operations() -> None:
    public = {name for name in vars(Coatcheck) if not name.startswith("_")}

    assert public == {name for name in vars(AsyncCoatcheck) if not name.startswith("_")}


def test_a_method_is_documented_as_its_operation_is() -> None:
    assert "handoff" in (vars(Coatcheck)["compact"].__doc__ or "")
    assert vars(Coatcheck)["compact"].__doc__ == vars(AsyncCoatcheck)["compact"].__doc__


def test_lone_surrogates_and_nul_arrive_and_come_back(network: Network, call: Caller) -> None:
    network.script = [ok(COMPACTED, 201)]

    answer = call("compact", [{"role": "user", "content": "\x00 \ud83d"}], session="s")

    assert network.bodies[0].isascii()
    assert json.loads(network.bodies[0])["window"]["messages"] == [{"role": "user", "content": "\x00 \ud83d"}]
    assert answer.handoff.text == "t \ud83d"


def test_an_exact_text_comes_back_whatever_it_holds(network: Network, call: Caller) -> None:
    network.script = [ok(SEGMENT)]

    assert call("segment", "a" * 64).text == "NUL \x00 and half a pair \ud83d"


def test_a_compaction_sends_the_key_its_deadline_and_only_what_was_given(network: Network, call: Caller) -> None:
    network.script = [ok(COMPACTED, 201)]

    call("compact", [], session="s", times=[datetime(2026, 11, 18, tzinfo=UTC), None], idempotency_key="k 1", deadline_s=12.5)

    request = network.asked[0]
    assert request.headers["authorization"] == "Bearer key"
    assert request.headers["coatcheck-deadline"] == "13"
    assert request.headers["idempotency-key"] == '"k 1"'
    body = json.loads(network.bodies[0])
    assert body == {"session": "s", "window": {"format": "auto", "messages": [], "times": ["2026-11-18T00:00:00+00:00", None]}}


def test_a_retryable_problem_is_sent_again_after_the_named_time_with_the_same_key(network: Network, call: Caller) -> None:
    pending = problem("projection-pending", 503, retryable=True, retry_after="5")
    network.script = [pending, pending, ok(COMPACTED, 201)]

    call("compact", [{"role": "user", "content": "x"}], session="s", idempotency_key="k")

    assert len(network.asked) == 3
    assert {request.headers["idempotency-key"] for request in network.asked} == {'"k"'}
    assert len(set(network.bodies)) == 1
    assert call.waits == [5, 5]
    assert call.told == [(pending.json()["title"], 5), (pending.json()["title"], 5)]


def test_without_a_named_time_the_waits_double(network: Network, call: Caller) -> None:
    network.script = [problem("overloaded", 503, retryable=True)]

    with pytest.raises(TryLater):
        call("recall", "where")

    assert call.waits == [1, 2, 4]
    assert len(network.asked) == 4


def test_waiting_is_bounded_in_all(network: Network, call: Caller) -> None:
    network.script = [problem("overloaded", 503, retryable=True, retry_after="20")]

    with pytest.raises(TryLater) as raised:
        call("recall", "where")

    assert call.waits == [20]
    assert len(call.told) == 1  # of no pause that does not come
    assert raised.value.retryable
    assert raised.value.retry_after_s == 20


@pytest.mark.parametrize(
    ("slug", "status", "error"),
    [
        ("no-progress", 422, NoProgress),
        ("invalid-window", 422, InvalidRequest),
        ("idempotency-conflict", 422, Conflict),
        ("not-found", 404, NotFound),
        ("erased", 410, Erased),
        ("of-a-later-release", 418, ProblemError),
    ],
)
def test_a_problem_that_a_retry_does_not_help_is_raised_at_once(
    network: Network, call: Caller, slug: str, status: int, error: type[ProblemError]
) -> None:
    network.script = [problem(slug, status, errors=[{"pointer": "/window/messages/3", "detail": "No call."}])]

    with pytest.raises(error) as raised:
        call("compact", [], session="s")

    assert type(raised.value) is error
    assert (raised.value.slug, raised.value.status, raised.value.retryable) == (slug, status, False)
    assert raised.value.errors[0]["pointer"] == "/window/messages/3"
    assert len(network.asked) == 1


def test_a_connection_that_breaks_is_no_problem_document_and_not_sent_again(network: Network, call: Caller) -> None:
    network.script = [httpx.ReadTimeout("slow")]

    with pytest.raises(ServiceUnreachable):
        call("window", ID)

    assert len(network.asked) == 1


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(502, text="<html>Bad Gateway</html>"),
        httpx.Response(200, text="<html>Welcome</html>"),
        httpx.Response(200, json={"messages": []}),
        httpx.Response(500, json={"detail": "x"}, headers={"content-type": "application/problem+json"}),
    ],
)
def test_an_answer_of_something_else_is_named_as_such(network: Network, call: Caller, answer: httpx.Response) -> None:
    network.script = [answer]

    with pytest.raises(UnexpectedAnswer):
        call("window", ID)


def test_what_is_not_json_is_refused_before_it_is_sent(network: Network, call: Caller) -> None:
    network.script = [ok(COMPACTED)]

    with pytest.raises(ClientError):
        call("compact", [{"role": "user", "content": float("nan")}], session="s")

    assert network.asked == []


def test_pages_are_followed_to_the_last(network: Network, call: Caller) -> None:
    entry = {
        "ordinal": 0, "message_index": 0, "part_index": 0, "segment_index": 0, "role": "user", "kind": "text", "route": "keep",
        "reason": "r", "protection": None, "sha256": None, "reduced_sha256": None, "blob_sha256": None, "handoff_manifest_id": None,
        "call_id": None, "group_id": None, "name": None, "occurred_at": None, "chars": 1,
    }  # fmt: skip
    network.script = [
        ok({"entries": [entry], "next_page_token": "more"}),
        ok({"entries": [{**entry, "ordinal": 1}], "next_page_token": None}),
    ]

    found = call("entries", ID, text=True)

    assert [e.ordinal for e in found] == [0, 1]
    assert [dict(r.url.params) for r in network.asked] == [{"text": "true"}, {"page_token": "more", "text": "true"}]


def test_a_job_is_started_and_followed_to_its_end(network: Network, call: Caller) -> None:
    job = {"job_id": ID, "kind": "scan", "status": "running", "progress": {"segments": 1}, "findings": [], "findings_total": 0}
    network.script = [ok(job, 202), ok(job), ok({**job, "status": "done", "progress": {"segments": 2}})]
    seen: list[JobOut] = []

    done = call("scan", index=False, on_progress=seen.append)

    assert done.status == "done"
    assert [j.progress["segments"] for j in seen] == [1, 1]
    assert [(r.method, r.url.path) for r in network.asked] == [
        ("POST", "/v1/admin/scan"),
        ("GET", f"/v1/admin/scan/{ID}"),
        ("GET", f"/v1/admin/scan/{ID}"),
    ]
    assert json.loads(network.bodies[0]) == {"index": False}


def test_a_session_is_found_by_name(network: Network, call: Caller) -> None:
    session = {
        "session_id": ID, "name": "checkout/42", "owner_id": ID, "visibility": "personal", "participants": [],
        "created_at": "2026-11-18T06:52:11Z", "manifests": 1, "segments": 2,
    }  # fmt: skip
    network.script = [ok({"sessions": [session], "next_page_token": None})]

    assert str(call("session", "checkout/42").session_id) == ID
    assert network.asked[0].url.params["name"] == "checkout/42"


def test_a_session_of_another_name_is_never_taken_for_it(network: Network, call: Caller) -> None:
    """An older service does not know the parameter and lists all sessions: what is erased by a name must have it."""
    session = {
        "session_id": ID, "name": "another", "owner_id": ID, "visibility": "personal", "participants": [],
        "created_at": "2026-11-18T06:52:11Z", "manifests": 1, "segments": 2,
    }  # fmt: skip
    network.script = [ok({"sessions": [session], "next_page_token": None}), problem("not-found", 404)]

    with pytest.raises(NotFound):
        call("session", "checkout/42")


def test_an_unknown_session_is_answered_by_the_service(network: Network, call: Caller) -> None:
    network.script = [ok({"sessions": [], "next_page_token": None}), problem("not-found", 404)]

    with pytest.raises(NotFound):
        call("session", "nobody")


def test_a_name_that_merely_can_be_read_as_an_id_is_a_name(network: Network, call: Caller) -> None:
    """As the service reads it: 32 digits of a hash are a good name for a session."""
    name = "5f" * 16
    session = {
        "session_id": ID, "name": name, "owner_id": ID, "visibility": "personal", "participants": [],
        "created_at": "2026-11-18T06:52:11Z", "manifests": 1, "segments": 2,
    }  # fmt: skip
    network.script = [ok({"sessions": [session], "next_page_token": None}), ok(session)]

    assert str(call("session", name).session_id) == ID
    assert str(call("session", ID.upper()).session_id) == ID
    assert [r.url.path for r in network.asked] == ["/v1/sessions", f"/v1/sessions/{ID}"]


def test_whatever_the_service_says_may_be_sent_again_is_an_error_of_one_class() -> None:
    """Nobody who catches ``TryLater`` misses that the keys of a token's issuer cannot be had for now."""
    retryable = {error.slug for error in every_error(service_errors.CoatcheckError) if error.retryable}

    assert "issuer-unavailable" in retryable
    for slug in retryable:
        said = Problem(
            type=f"urn:coatcheck:problem:{slug}", title=slug, status=503, detail="", instance="urn:uuid:0", retryable=True
        )
        assert isinstance(errors.problem_error(said), TryLater), slug


def every_error(error: type[service_errors.CoatcheckError]) -> list[type[service_errors.CoatcheckError]]:
    return [error, *(found for child in error.__subclasses__() for found in every_error(child))]


def test_erasing_waits_until_it_is_done(network: Network, call: Caller) -> None:
    network.script = [problem("erase-pending", 503, retryable=True, retry_after="1"), problem("erased", 410)]

    assert call("erase_session", ID) is None
    assert [r.method for r in network.asked] == ["DELETE", "DELETE"]


def test_an_export_is_handed_on_as_it_arrives(network: Network, call: Caller) -> None:
    lines = b'{"type":"session","version":2}\n{"b": 2}\n{"type":"end","runs":1}\n'
    network.script = [httpx.Response(200, content=lines)]

    assert call("export", ID) == lines


def test_an_export_of_a_service_that_marked_no_end_is_handed_on_too(network: Network, call: Caller) -> None:
    lines = b'{"type":"session","version":1,"name":"s"}\n{"b": 2}\n'
    network.script = [httpx.Response(200, content=lines)]

    assert call("export", ID) == lines


def test_an_export_without_its_end_is_an_error(network: Network, call: Caller) -> None:
    network.script = [httpx.Response(200, content=b'{"type":"session","version":2,"name":"s"}\n{"b": 2}\n')]

    with pytest.raises(ExportCutOff, match="no end mark"):
        call("export", ID)


def test_a_file_that_was_cut_off_is_not_even_sent(network: Network, call: Caller, tmp_path: Path) -> None:
    file = tmp_path / "export.ndjson"
    file.write_bytes(b'{"type":"session","version":2,"name":"s"}\n' + b'{"type":"run"}\n' * 1_000)

    with pytest.raises(ExportCutOff, match="no end mark"):
        call("import_file", file)

    assert network.asked == []


def test_an_export_that_the_service_cuts_off_is_an_error_at_its_end(network: Network, call: Caller) -> None:
    said = b'{"type":"error","problem":"erased","detail":"The export ends here. It is gone."}\n'
    network.script = [httpx.Response(200, content=b'{"type":"session"}\n' + said)]

    with pytest.raises(ExportCutOff, match="It is gone"):
        call("export", ID)


def test_an_export_that_is_refused_is_a_problem(network: Network, call: Caller) -> None:
    network.script = [problem("not-found", 404)]

    with pytest.raises(NotFound):
        call("export", ID)


def test_an_import_streams_its_file_and_can_be_sent_again(network: Network, call: Caller, tmp_path: Path) -> None:
    file = tmp_path / "export.ndjson"
    file.write_bytes(b"line\n" * 200_000)
    taken = {"sessions": 1, "manifests": 1, "segments": 1, "skipped": 0, "warnings": []}
    network.script = [problem("overloaded", 503, retryable=True), ok(taken)]

    assert call("import_file", file).sessions == 1
    assert [len(body) for body in network.bodies] == [1_000_000, 1_000_000]


def test_a_service_that_is_not_ready_says_why(network: Network, call: Caller) -> None:
    network.script = [ok({"status": "not-ready", "checks": {"index": "index-unavailable"}}, 503)]

    assert call("readiness")["status"] == "not-ready"


def test_retry_after_may_be_a_date(network: Network, call: Caller) -> None:
    network.script = [
        problem("overloaded", 503, retryable=True, retry_after="Wed, 18 Nov 2020 06:52:11 GMT"),
        ok(SEGMENT),
    ]

    call("segment", "a" * 12)

    # A time that has passed is no time: the client's own stands.
    assert call.waits == [1]
