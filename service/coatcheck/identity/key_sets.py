"""The public keys of token issuers (JWKS, RFC 7517), remembered for a while.

A key set is fetched again when it is old, and when a token names a key that is not in it, but no more often than once in
``RETRY_S``: who sends made-up key ids makes nobody fetch. One fetch at a time for each issuer. An issuer that is down is believed
for ``STALE_S`` at most; a key that it has taken out counts no more after ``TTL_S``.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from coatcheck.domain.canonical import parse
from coatcheck.domain.errors import CoatcheckError, IssuerUnavailable, OutboundFailed, OutboundRefused
from coatcheck.identity.ports import Fetch

if TYPE_CHECKING:
    from jwt import PyJWK

ALGORITHMS = frozenset({"RS256", "ES256", "EdDSA"})
"""Public keys alone: with ``none`` or a shared secret whoever verifies could also have signed."""
TTL_S = 300.0
STALE_S = 3_600.0
RETRY_S = 30.0
PATIENCE_S = 1.0
"""How long a request waits for a fetch while older keys are at hand."""
MAX_SETS = 1_000
MAX_KEYS = 100
RSA_BITS = range(2_048, 8_193)
"""Shorter ones can be broken; much longer ones make each verification slow."""
P_256 = "secp256r1"
"""The one curve of ES256 (RFC 7518, 3.4)."""

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Known:
    """What is known of one address. Times by the monotonic clock."""

    keys: Mapping[str, PyJWK]
    fetched_at: float | None = None
    tried_at: float | None = None
    fetching: asyncio.Task[None] | None = None


class KeySets:
    """The keys by the address they come from."""

    def __init__(self, fetch: Fetch, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._fetch = fetch
        self._now = monotonic
        self._known: OrderedDict[str, _Known] = OrderedDict()

    async def find(self, uri: str, kid: str) -> PyJWK | None:
        """The key, or None where the issuer has none of this name. Raises IssuerUnavailable where nothing is known of it."""
        known = self._of(uri)
        if self._age(known) > TTL_S and self._may_try(known):
            await self._refresh(uri, known, PATIENCE_S if self._age(known) <= STALE_S else None)
        if kid not in known.keys and self._may_try(known):
            await self._refresh(uri, known, None)
        if self._age(known) > STALE_S:
            raise IssuerUnavailable
        return known.keys.get(kid)

    async def close(self) -> None:
        """Ends what is being fetched."""
        tasks = [known.fetching for known in self._known.values() if known.fetching is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _of(self, uri: str) -> _Known:
        known = self._known.setdefault(uri, _Known({}))
        self._known.move_to_end(uri)
        while len(self._known) > MAX_SETS:
            _, forgotten = self._known.popitem(last=False)
            if forgotten.fetching is not None:
                forgotten.fetching.cancel()
        return known

    def _age(self, known: _Known) -> float:
        return float("inf") if known.fetched_at is None else self._now() - known.fetched_at

    def _may_try(self, known: _Known) -> bool:
        return known.fetching is not None or known.tried_at is None or self._now() - known.tried_at >= RETRY_S

    async def _refresh(self, uri: str, known: _Known, patience_s: float | None) -> None:
        """Joins the fetch under way, or begins one. A request that goes away takes nothing from the others that wait."""
        if known.fetching is None:
            known.tried_at = self._now()
            known.fetching = asyncio.create_task(self._get(uri, known))
        await asyncio.wait({known.fetching}, timeout=patience_s)

    async def _get(self, uri: str, known: _Known) -> None:
        try:
            known.keys = keys_of(await self._fetch(uri))
            known.fetched_at = self._now()
        except (OutboundFailed, OutboundRefused, ValueError) as error:
            log.warning("key_set.not_fetched", problem=error.detail if isinstance(error, CoatcheckError) else "no key set")
        finally:
            known.fetching = None


def keys_of(raw: bytes) -> dict[str, PyJWK]:
    """The keys that may verify, by id. What else is in the set is passed over. Raises ValueError for what is no key set."""
    try:
        document = parse(raw)
    except CoatcheckError as error:
        raise ValueError("no JSON") from error
    listed = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise ValueError("no key set")
    found: dict[str, PyJWK] = {}
    for described in listed[:MAX_KEYS]:
        key = _key_of(described)
        if key is not None and isinstance(key.key_id, str):
            found.setdefault(key.key_id, key)
    return found


def _key_of(described: object) -> PyJWK | None:
    from jwt import PyJWK, PyJWTError

    if not isinstance(described, dict) or "d" in described or described.get("use", "sig") != "sig":
        return None
    may, algorithm = described.get("key_ops", ["verify"]), described.get("alg")
    if not isinstance(may, list) or "verify" not in may or algorithm not in (None, *ALGORITHMS):
        return None
    try:
        key = PyJWK(described)
    except (PyJWTError, ValueError, TypeError, KeyError, AttributeError, NotImplementedError):
        return None
    if key.algorithm_name not in ALGORITHMS:
        return None
    if key.algorithm_name == "ES256" and key.key.curve.name != P_256:  # the library takes the set's word for what a key is for
        return None
    return None if key.algorithm_name == "RS256" and key.key.key_size not in RSA_BITS else key
