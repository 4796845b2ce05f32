"""Signed bearer tokens (JWT in the manner of RFC 9068): whose they are, and what of their principal's rights they use.

The issuer decides the tenant, its subject the principal, the principal's role the operations; a ``scope`` narrows them. Nothing
else in a token counts: not a tenant, a role or a group that it names, nor a key or an address of keys in its header.
"""

from __future__ import annotations

import base64
import re
from datetime import UTC, datetime
from typing import Any

from coatcheck.domain.canonical import JsonObject, parse
from coatcheck.domain.errors import CoatcheckError, Unauthenticated
from coatcheck.domain.ports import Clock
from coatcheck.identity.context import LEEWAY, Credential, CredentialKind, RequestContext
from coatcheck.identity.doors import Door
from coatcheck.identity.key_sets import ALGORITHMS, KeySets
from coatcheck.identity.ports import IssuerRecord, TokenDirectory
from coatcheck.identity.standing import context_of

TYPES = frozenset({None, "jwt", "at+jwt", "application/at+jwt"})
"""No identity of another kind that the same issuer signs: a logout, a DPoP proof, a security event."""
REQUIRED = ["iss", "sub", "aud", "exp", "iat"]
MAX_KID_CHARS = 256
_PARTS = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.[A-Za-z0-9_-]+")
"""Header and claims, and a signature: no other character, which a lenient reader would pass over."""
_ISSUER = re.compile(r"[\x21-\x7e]{1,500}")
_SUBJECT = re.compile(r"[\x20-\x7e]{1,255}")


class TokenVerifier:
    """Turns a token into its principal's context. The principal's rights are read anew for each request."""

    def __init__(self, directory: TokenDirectory, key_sets: KeySets, clock: Clock) -> None:
        self._directory = directory
        self._key_sets = key_sets
        self._clock = clock

    async def context_of(self, token: str, door: Door = Door.API) -> RequestContext:
        """Raises Unauthenticated, always with the same detail; StoreUnavailable; IssuerUnavailable."""
        named = _named_in(token)
        if named is None:
            raise Unauthenticated
        kid, issuer_name = named
        issuer = await self._directory.find_issuer(issuer_name)
        if issuer is None:
            raise Unauthenticated
        key = await self._key_sets.find(issuer.jwks_uri, kid)
        credential = _verified(token, key, issuer, door, self._clock()) if key is not None else None
        if credential is None:
            raise Unauthenticated
        rights = await self._directory.find_subject(issuer.tenant_id, issuer.issuer, credential.subject)
        if rights is None:
            raise Unauthenticated
        return context_of(credential, rights, self._clock())


def _named_in(token: str) -> tuple[str, str] | None:
    """The key and the issuer that a token names, before anything of it is proven. None for what cannot be one of ours."""
    parts = _PARTS.fullmatch(token)
    try:
        header, claimed = (_object_in(part) for part in parts.groups()) if parts else (None, None)
    except (CoatcheckError, ValueError):
        return None
    if header is None or claimed is None:
        return None
    issuer = claimed.get("iss")
    algorithm, kind, kid = header.get("alg"), header.get("typ"), header.get("kid")
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS or "crit" in header or "b64" in header:
        return None
    if not (kind is None or isinstance(kind, str)) or (kind.lower() if kind else None) not in TYPES:
        return None
    if not isinstance(kid, str) or not 0 < len(kid) <= MAX_KID_CHARS:
        return None
    return (kid, issuer) if isinstance(issuer, str) and _ISSUER.fullmatch(issuer) else None


def _object_in(part: str) -> JsonObject | None:
    """A part's JSON object. Raises MalformedJson, also for a name that stands twice: two readers could take different ones."""
    document = parse(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return document if isinstance(document, dict) else None


def _verified(token: str, key: Any, issuer: IssuerRecord, door: Door, now: datetime) -> Credential | None:
    """What is proven, of a token whose time has come. The key's own algorithm is used, whatever the token says."""
    import jwt

    try:
        claims = jwt.decode(
            token,
            key,
            algorithms=[key.algorithm_name],
            audience=issuer.audience,
            issuer=issuer.issuer,
            options={"require": REQUIRED, "verify_exp": False, "verify_iat": False, "verify_nbf": False},
        )
        if not _has_begun(claims, now):
            return None
        expires_at = datetime.fromtimestamp(claims["exp"], UTC)
    except (jwt.PyJWTError, ValueError, TypeError, OverflowError, OSError, RecursionError):
        return None
    subject, scope = claims["sub"], claims.get("scope")
    if not isinstance(subject, str) or not _SUBJECT.fullmatch(subject):
        return None
    if "scope" in claims and not isinstance(scope, str):
        return None
    narrowed_to = None if scope is None else frozenset(scope.split(" "))
    return Credential(CredentialKind.TOKEN, issuer.issuer, expires_at, door, subject, narrowed_to)


def _has_begun(claims: dict[str, Any], now: datetime) -> bool:
    """By this service's clock, which everything else is measured by. A time that is no number is none."""
    times = {name: claims[name] for name in ("exp", "iat", "nbf") if name in claims}
    if not all(isinstance(at, int | float) and not isinstance(at, bool) for at in times.values()):
        return False
    return bool(max(at for name, at in times.items() if name != "exp") <= (now + LEEWAY).timestamp())
