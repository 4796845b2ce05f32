"""Issuers and their subjects in memory, for tests of tokens themselves; the store's own are tested with the store."""

from __future__ import annotations

import dataclasses
from uuid import UUID

from coatcheck.domain.identifiers import utc_now
from coatcheck.identity.key_sets import KeySets
from coatcheck.identity.operations import Role
from coatcheck.identity.ports import IssuerRecord, RightsRecord
from coatcheck.identity.tokens import TokenVerifier
from tests.identity.issuing import AUDIENCE, ISSUER, key_set, public_jwk

TENANT, ADA = UUID(int=0xA), UUID(int=0xADA)
URI = "https://login.example.org/jwks"


class Issuers:
    """One issuer, which speaks for one tenant and one subject in it, until a test changes what is known."""

    def __init__(self) -> None:
        self.issuer: IssuerRecord | None = IssuerRecord(ISSUER, TENANT, URI, AUDIENCE)
        self.subject: RightsRecord | None = RightsRecord(
            TENANT, ADA, Role.MEMBER, True, True, frozenset({UUID(int=7)}), 3, 2, None, None, None, None
        )  # fmt: skip
        self.asked: list[tuple[object, ...]] = []
        self.now = utc_now
        self.verifier = TokenVerifier(self, KeySets(self._fetch, lambda: 1_000.0), lambda: self.now())

    def knows(self, **changes: object) -> None:
        """The subject, changed."""
        assert self.subject is not None
        self.subject = dataclasses.replace(self.subject, **changes)  # type: ignore[arg-type]

    async def find_issuer(self, issuer: str) -> IssuerRecord | None:
        return self.issuer if self.issuer is not None and issuer == self.issuer.issuer else None

    async def find_subject(self, tenant_id: UUID, issuer: str, subject: str) -> RightsRecord | None:
        self.asked.append((tenant_id, issuer, subject))
        return self.subject if (tenant_id, issuer, subject) == (TENANT, ISSUER, "ada") else None

    async def _fetch(self, url: str) -> bytes:
        assert url == URI
        return key_set(public_jwk("ES256", "one"), public_jwk("EdDSA", "ed"))
