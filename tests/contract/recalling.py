"""Asking over the routes what was said."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import httpx

DAY = datetime(2026, 11, 1, 12, tzinfo=UTC)


def said(text: str, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": text}


async def recall(http: httpx.AsyncClient, query: str, **more: object) -> dict[str, Any]:
    answer = await http.post("/v1/recall", json={"query": query, **more})
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def hits(http: httpx.AsyncClient, query: str, **more: object) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await recall(http, query, **more))["hits"]
    return found
