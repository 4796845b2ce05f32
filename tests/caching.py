"""Look-ups and stores over HTTP: circumstances that are known whole, and what a test changes of them."""

from __future__ import annotations

import json
from typing import Any

import httpx

PROMPT = "Summarize the renewal terms"


def circumstances(**changes: object) -> dict[str, Any]:
    """A body whose every dimension is known: a conversation of its own, one source, one tool."""
    known: dict[str, object] = {
        "session": "renewals",
        "conversation_revision": "7",
        "sources": [{"id": "contract-17", "revision": "3"}],
        "model": "small-1",
        "instructions": "Answer from the contract alone.",
        "tools": [{"name": "search", "parameters": {"type": "object"}}],
        "settings": {"temperature": 0},
        "prompt": PROMPT,
    }
    return {**known, **changes}


async def lookup(http: httpx.AsyncClient, **changes: object) -> dict[str, Any]:
    """What the look-up answers."""
    found = await _posted(http, "lookup", circumstances(**changes))
    assert found.status_code == 200, found.text
    body: dict[str, Any] = found.json()
    return body


async def store(http: httpx.AsyncClient, answer: object, *, ttl_s: Any = None, **changes: object) -> dict[str, Any]:
    """What the store answers. Its scope is that of a look-up just before, as a framework's is."""
    scope = (await lookup(http, **changes))["scope"]
    body = {**circumstances(**changes), "answer": answer, "scope": scope, "ttl_s": ttl_s}
    kept = await _posted(http, "store", body)
    assert kept.status_code == 200, kept.text
    said: dict[str, Any] = kept.json()
    return said


def why(found: dict[str, Any]) -> str:
    """Outcome and reason, as the metric counts them."""
    return f"{found['outcome']}:{found['reason']}" if found["reason"] else str(found["outcome"])


async def _posted(http: httpx.AsyncClient, what: str, body: dict[str, Any]) -> httpx.Response:
    """In ASCII: the client's own JSON takes no lone surrogate."""
    headers = {"Content-Type": "application/json"}
    return await http.post(f"/v1/cache/{what}", content=json.dumps(body), headers=headers)
