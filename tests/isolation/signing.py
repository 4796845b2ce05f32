"""Issuers for the matrix: one that speaks for the owner's tenant, one for another, and tokens as each of them signs them."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import jwt

from tests.identity.issuing import AUDIENCE, claims, key_set, public_jwk, token, unsigned
from tests.isolation import secret
from tests.outbound.network import web_server


@asynccontextmanager
async def issuer_of(operator: httpx.AsyncClient) -> AsyncIterator[str]:
    """An issuer that speaks for the operator's tenant, with one member of it as its subject ``ada``."""
    issuer = f"https://{secret.word(12).lower()}.example/"
    async with web_server() as server:
        server.says(key_set(public_jwk("ES256", "one")))
        for path, asked in (
            ("issuers", {"issuer": issuer, "jwks_uri": server.url, "audience": AUDIENCE}),
            ("principals", {"name": "ada", "role": "member", "issuer": issuer, "subject": "ada"}),
        ):
            made = await operator.post(f"/v1/admin/{path}", json=asked)
            assert made.status_code == 201, made.text
        yield issuer


def signed(issuer: str, **changes: object) -> str:
    """A good token of the issuer's, but for the changes."""
    return token(claims("ada", iss=issuer, **changes))


def refused(issuer: str) -> dict[str, str]:
    """Tokens that prove nothing, by the name of the matrix's column."""
    said: dict[str, Any] = claims(iss=issuer)
    return {
        "a token without an algorithm": unsigned(said),
        "a token signed with a shared secret": jwt.encode(said, "x" * 64, algorithm="HS256", headers={"kid": "one"}),
        "a token signed by another key": token(said, number=7),
        "a token for another audience": signed(issuer, aud="https://other.example.org"),
        "a token that has expired": signed(issuer, exp=int(time.time()) - 120),
        "a token of another time to come": signed(issuer, nbf=int(time.time()) + 600),
        "a token of an issuer that nobody named": signed("https://evil.example/"),
        "a token of somebody whom nobody entered": signed(issuer, sub="mallory"),
    }
