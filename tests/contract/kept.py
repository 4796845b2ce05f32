"""A window handed in and read back, as bytes: what went over the wire, not what a JSON reader makes of it."""

from __future__ import annotations

import json
from typing import Any

import httpx

from coatcheck.domain.canonical import JsonValue, parse, to_bytes


async def hand_in(
    http: httpx.AsyncClient, session: str, window: dict[str, Any], *, deadline_s: float = 60, **more: object
) -> dict[str, Any]:
    """The answer to a window that must be taken. Sent in ASCII, so that lone surrogates arrive."""
    body = json.dumps({"session": session, "window": window, **more}).encode("ascii")
    answer = await http.post("/v1/compactions", content=body, headers={"Coatcheck-Deadline": str(deadline_s)}, timeout=deadline_s)
    assert answer.status_code in (200, 201), answer.text[:2_000]
    made = parse(answer.content)
    assert isinstance(made, dict)
    return made


async def read_back(http: httpx.AsyncClient, manifest_id: object) -> dict[str, Any]:
    """The window as the service gives it."""
    answer = await http.get(f"/v1/manifests/{manifest_id}/window")
    assert answer.status_code == 200, answer.text[:2_000]
    body = parse(answer.content)
    assert isinstance(body, dict)
    return body


async def entries(http: httpx.AsyncClient, manifest_id: object) -> list[dict[str, Any]]:
    """All entries with their texts, page after page."""
    found: list[dict[str, Any]] = []
    token = ""
    while True:
        page = (await http.get(f"/v1/manifests/{manifest_id}/entries?text=true&page_size=200{token}")).json()
        found += page["entries"]
        if page["next_page_token"] is None:
            return found
        token = f"&page_token={page['next_page_token']}"


def same(one: JsonValue, other: JsonValue) -> bool:
    """Equal byte for byte: keys in their order, whole numbers whole, floats with their last digit."""
    return to_bytes(one) == to_bytes(other)
