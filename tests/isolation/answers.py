"""Answers without what names the one request: what is left must be equal, byte for byte."""

from __future__ import annotations

from dataclasses import dataclass

import httpx


@dataclass(frozen=True, slots=True)
class Said:
    """All of an answer but the id of its request."""

    status: int
    body: bytes
    headers: frozenset[tuple[str, str]]


def said(answer: httpx.Response) -> Said:
    """Status, body and headers; the request's id is overwritten wherever it stands."""
    request_id = answer.headers["x-request-id"]
    fields = frozenset((name, value.replace(request_id, "")) for name, value in answer.headers.items())
    return Said(answer.status_code, answer.content.replace(request_id.encode(), b""), fields)
