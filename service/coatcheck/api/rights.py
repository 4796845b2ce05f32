"""A caller's rights while its request lasts: verified before anything else, and again where a body or an answer takes its time.

A credential that was revoked, a principal that was deactivated, a membership that ended: none of them outlives that by more than
``Limits.rights_recheck_s``, however slowly a client sends or reads.
"""

from __future__ import annotations

import time

from coatcheck.api.asked import Asked
from coatcheck.domain.errors import Unauthenticated
from coatcheck.identity.authenticate import Authenticator
from coatcheck.identity.context import RequestContext
from coatcheck.identity.doors import Door


class Rights:
    """Of one request."""

    def __init__(self, authenticator: Authenticator, authorization: str | None, door: Door, asked: Asked, recheck_s: float) -> None:
        self._authenticator = authenticator
        self._authorization = authorization
        self._door = door
        self._asked = asked
        self._recheck_s = recheck_s
        self._verified_at = 0.0

    async def verify(self) -> RequestContext:
        """The request's context from now on. Raises Unauthenticated, StoreUnavailable."""
        context = await self._authenticator.authenticate(self._authorization, self._door)
        self._asked.context, self._verified_at = context, time.monotonic()
        return context

    async def verify_if_old(self) -> None:
        """For who has not begun to work: with the rights of now."""
        if self._is_old():
            await self.verify()

    async def still_stand(self) -> None:
        """For who is at work: raises Unauthenticated when anything was taken away since."""
        if self._is_old():
            begun_with = self._asked.context
            if begun_with is None or not (await self.verify()).covers(begun_with):
                raise Unauthenticated

    def _is_old(self) -> bool:
        return time.monotonic() - self._verified_at > self._recheck_s
