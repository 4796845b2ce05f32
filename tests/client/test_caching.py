"""The SDK before a cache that does not answer: an agent is told at once, and generates."""

from __future__ import annotations

import json
from collections.abc import Callable

import httpx
import pytest

from coatcheck_client import AsyncCoatcheck, Coatcheck
from coatcheck_client.errors import Forbidden, InvalidRequest, ServiceUnreachable

URL = "http://service.test"
SCOPE = "0" * 64


def problem(slug: str, status: int) -> httpx.Response:
    body = {"type": f"urn:coatcheck:problem:{slug}", "title": slug, "status": status, "detail": "Because.", "instance": "i"}
    retryable = status >= 429
    return httpx.Response(
        status, content=json.dumps({**body, "retryable": retryable}), headers={"content-type": "application/problem+json"}
    )


class Answers:
    """One answer for ever; how often it was asked."""

    def __init__(self, answer: Callable[[], httpx.Response]) -> None:
        self.asked = 0
        self._answer = answer

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked += 1
        return self._answer()


def down() -> httpx.Response:
    raise httpx.ConnectError("refused")


@pytest.mark.parametrize(
    "answer",
    [down, lambda: problem("store-unavailable", 503), lambda: problem("overloaded", 503), lambda: problem("rate-limited", 429)],
    ids=["down", "store down", "overloaded", "over its limit"],
)
def test_what_does_not_answer_is_bypassed_after_one_attempt(answer: Callable[[], httpx.Response]) -> None:
    answers = Answers(answer)
    with Coatcheck(URL, "key", transport=httpx.MockTransport(answers)) as client:
        found = client.cache_lookup("prompt", model="m")
        kept = client.cache_store("prompt", "answer", scope=SCOPE, model="m")

    assert (found.outcome, found.reason, found.answer, found.scope) == ("bypassed", "unavailable", None, None)
    assert (kept.stored, kept.reason) == (False, "unavailable")
    assert answers.asked == 2


async def test_the_awaiting_client_is_told_as_well() -> None:
    async with AsyncCoatcheck(URL, "key", transport=httpx.MockTransport(Answers(down))) as client:
        assert (await client.cache_lookup("prompt")).reason == "unavailable"


@pytest.mark.parametrize(("slug", "status", "error"), [("forbidden", 403, Forbidden), ("invalid-request", 422, InvalidRequest)])
def test_a_refusal_is_no_outage(slug: str, status: int, error: type[Exception]) -> None:
    with Coatcheck(URL, "key", transport=httpx.MockTransport(Answers(lambda: problem(slug, status)))) as client:
        with pytest.raises(error):
            client.cache_lookup("prompt")
        with pytest.raises(error):
            client.cache_store("prompt", "answer", scope=SCOPE)


def test_a_purge_that_does_not_arrive_is_an_error() -> None:
    """Somebody counts on it."""
    with Coatcheck(URL, "key", transport=httpx.MockTransport(Answers(down))) as client, pytest.raises(ServiceUnreachable):
        client.cache_purge(source="contract-17")


def test_without_a_scope_nothing_is_sent() -> None:
    answers = Answers(down)
    with Coatcheck(URL, "key", transport=httpx.MockTransport(answers)) as client:
        kept = client.cache_store("prompt", "answer", scope=None)

    assert (kept.stored, kept.reason, answers.asked) == (False, "scope", 0)


def test_what_is_left_out_is_not_sent_and_what_is_empty_is() -> None:
    sent: list[dict[str, object]] = []

    def note(request: httpx.Request) -> httpx.Response:
        sent.append(json.loads(request.content))
        return httpx.Response(200, json={"outcome": "miss", "reason": "other-prompt"})

    with Coatcheck(URL, "key", transport=httpx.MockTransport(note)) as client:
        client.cache_lookup("prompt", sources=[], tools=[], instructions="", settings={}, session="")

    assert sent == [{"prompt": "prompt", "sources": [], "tools": [], "instructions": "", "settings": {}, "session": ""}]
