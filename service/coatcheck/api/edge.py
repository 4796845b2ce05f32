"""The edge: pure ASGI ahead of routing and of any parsing.

    request id -> drain -> authentication -> the tenant's limits -> admission -> deadline -> body limit -> the app

A stranger's request is answered before its body is read; what the app raises leaves as a problem; every answer is counted and
logged by its route's template, never by its path.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

import structlog
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from coatcheck.api import headers
from coatcheck.api.asked import Asked, put
from coatcheck.api.gate import Gate
from coatcheck.api.problems import respond
from coatcheck.api.rights import Rights
from coatcheck.domain.errors import CoatcheckError, MalformedJson, RequestTimeout, TooLarge
from coatcheck.domain.ports import IdFactory
from coatcheck.identity.authenticate import Authenticator
from coatcheck.identity.context import RequestContext
from coatcheck.identity.doors import Door
from coatcheck.identity.operations import Operation
from coatcheck.ops.metrics import Metrics

PROBES = frozenset({"/livez", "/readyz", "/progressz", "/metrics"})
"""Paths that ask for no credential, and say nothing but counts and names. This is the whole list."""
STREAMED = frozenset({"/v1/import"})
"""Paths whose body is read by the use case, line by line, and may be of any length."""
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
LIMITS = re.compile(r"/v1/admin/tenants/[^/]+/limits")
"""What limits are set by is not under them: whoever may set them always reaches it, and can undo what was set too low."""
DOORS = {"/mcp": Door.MCP}
"""Every other path is the API's."""
UNROUTED = "unrouted"
HELD_FROM_BYTES = 64 * 1024
"""An answer from this size on is in flight until its client has read it, since it stays in memory for so long."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may ask for."""

    max_body_bytes: int
    deadline_s: float
    max_deadline_s: float
    body_pause_s: float = 30.0
    """The longest a body may stand still while it arrives; all that comes slower than ``body_bytes_per_s`` counts as well."""
    body_bytes_per_s: float = 8 * 1024
    rights_recheck_s: float = 5.0
    """How old verified rights may be while a body arrives or an answer is streamed."""


class TenantAdmission(Protocol):
    """What a tenant may take, asked before any of its request's body is read. ``memory.limits.Limiter`` is one."""

    async def admit(self, tenant_id: UUID, announced_bytes: int) -> None:
        """Raises RateLimited."""
        ...

    def arrived(self, tenant_id: UUID, size: int) -> None:
        """Bytes that were not announced. Raises RateLimited."""
        ...

    def owe(self, tenant_id: UUID, size: int) -> None:
        """The same, of a request that is not broken off for it."""
        ...


class Edge:
    """The outermost ASGI app."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        authenticator: Authenticator,
        admission: TenantAdmission,
        gate: Gate,
        limits: Limits,
        metrics: Metrics,
        new_id: IdFactory,
    ) -> None:
        self._app = app
        self._authenticator = authenticator
        self._admission = admission
        self._gate = gate
        self._limits = limits
        self._metrics = metrics
        self._new_id = new_id

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = Asked(self._new_id())
        put(scope, asked)
        answer = _Answer(send, asked)
        started = time.perf_counter()
        with structlog.contextvars.bound_contextvars(request_id=str(asked.request_id)):
            try:
                await self._let_in(scope, receive, answer, asked)
            except _ClientGone:
                answer.status = answer.status or 499
            except CoatcheckError as error:
                await answer.replace(scope, receive, error)
            except Exception as error:
                cause = error.__cause__
                # The framework's own, around what came too late to be told. What nobody foresaw has been answered with 500 by now.
                if 0 < answer.status < 500 and isinstance(cause, CoatcheckError):
                    log.warning("answer broken off", problem=cause.slug)
                else:
                    log.exception("request failed")
                await answer.replace(scope, receive, CoatcheckError())
            finally:
                self._account(scope, asked, answer.status, time.perf_counter() - started)

    async def _let_in(self, scope: Scope, receive: Receive, answer: _Answer, asked: Asked) -> None:
        if headers.has_two_lengths(scope["headers"]):
            # A proxy that took the other one for true has sent somebody else's request behind this one's end, or ours within it.
            answer.ends_connection = True
            raise MalformedJson("The request says twice, and in two ways, where its body ends.")
        if scope["path"] in PROBES:
            await self._app(scope, receive, answer.send)
            return
        self._gate.check_open()
        authorization, door = headers.authorization(scope["headers"]), DOORS.get(scope["path"], Door.API)
        rights = Rights(self._authenticator, authorization, door, asked, self._limits.rights_recheck_s)
        context, streamed = await rights.verify(), scope["path"] in STREAMED
        tenant_id, sets_limits = context.tenant_id, _sets_limits(context, scope["path"])
        announced = headers.announced_length(scope["headers"])
        most = announced or 0 if streamed else min(announced or 0, self._limits.max_body_bytes)
        if not sets_limits:
            await self._admission.admit(tenant_id, most)
        with self._gate.pass_through(tenant_id), self._metrics.in_flight.track_inprogress():
            asked.deadline_s = headers.deadline_s(scope["headers"], self._limits.deadline_s, self._limits.max_deadline_s)
            charge = self._admission.owe if streamed or sets_limits else self._admission.arrived
            body = _Body(receive, announced, self._limits, lambda size: charge(tenant_id, size))
            answer.rights = rights
            if streamed:
                await self._app(scope, lambda: body.next_while(rights), answer.send)
            else:
                await body.read_whole()
                await rights.verify_if_old()
                await self._app(scope, body.replay, answer.send)

    def _account(self, scope: Scope, asked: Asked, status: int, seconds: float) -> None:
        method = scope["method"] if scope["method"] in METHODS else "OTHER"
        # What is mounted has no route of the router's own; its path is one of a few.
        route = getattr(scope.get("route"), "path", scope["path"] if scope["path"] in DOORS else UNROUTED)
        self._metrics.requests.labels(method, route, str(status)).inc()
        self._metrics.request_seconds.labels(method, route).observe(seconds)
        note = log.debug if scope["path"] in PROBES else log.info
        note(
            "request",
            method=method,
            route=route,
            status=status,
            ms=round(seconds * 1_000, 1),
            tenant_id=asked.context.tenant_id if asked.context else None,
            principal_id=asked.context.principal_id if asked.context else None,
        )


class _ClientGone(Exception):
    """The client hung up before its request had arrived."""


class _Answer:
    """The way out: remembers what was sent, and adds what every answer carries."""

    def __init__(self, send: Send, asked: Asked) -> None:
        self._send = send
        self._asked = asked
        self.status = 0
        self.ends_connection = False
        self.rights: Rights | None = None

    async def send(self, message: Message) -> None:
        if message.get("more_body") and self.rights is not None:
            await self.rights.still_stand()
        if message["type"] == "http.response.start":
            self.status = int(message["status"])  # a library's enumeration would be logged by its name
            fields = MutableHeaders(scope=message)
            fields["X-Request-Id"] = str(self._asked.request_id)
            fields["X-Content-Type-Options"] = "nosniff"
            fields.setdefault("Cache-Control", "no-store")
            if self.ends_connection:
                fields["Connection"] = "close"
        if not message.get("more_body") and len(message.get("body", b"")) >= HELD_FROM_BYTES:
            # The server waits, before it takes more, until most of what it has is with the client.
            await self._send({**message, "more_body": True})
            message = {"type": "http.response.body", "body": b"", "more_body": False}
        await self._send(message)

    async def replace(self, scope: Scope, receive: Receive, error: CoatcheckError) -> None:
        """The problem, where nothing was sent yet; a begun answer is left unfinished, which the client sees."""
        if not self.status:
            await respond(error, self._asked.request_id)(scope, receive, self.send)


class _Body:
    """The way in: counts what really arrives, whatever the headers announce."""

    def __init__(self, receive: Receive, announced: int | None, limits: Limits, charge: Callable[[int], None]) -> None:
        self._receive = receive
        self._limits = limits
        self._announced = announced
        self._charge = charge
        self._patience_s = limits.body_pause_s
        """Waiting takes of it, and what arrives gives back: a byte now and then keeps no request alive."""
        self._whole: bytes | None = None

    async def next(self) -> Message:
        """The next message of a body of any length. Raises RequestTimeout when none comes in time, RateLimited."""
        began = time.monotonic()
        try:
            async with asyncio.timeout(self._patience_s):
                message = await self._receive()
        except TimeoutError as error:
            raise RequestTimeout from error
        size = len(message.get("body", b""))
        left_s = self._patience_s - (time.monotonic() - began) + size / self._limits.body_bytes_per_s
        self._patience_s = min(self._limits.body_pause_s, left_s)
        if self._announced is None and size:
            self._charge(size)
        return message

    async def next_while(self, rights: Rights) -> Message:
        """As ``next``, for whoever works while the body arrives. Raises Unauthenticated when the rights for it are gone."""
        message = await self.next()
        await rights.still_stand()
        return message

    async def read_whole(self) -> None:
        """Raises TooLarge as soon as the body is known to be, RequestTimeout when it stands still."""
        limit = self._limits.max_body_bytes
        if (self._announced or 0) > limit:
            raise _too_large(limit, self._announced)
        chunks: list[bytes] = []
        size, more = 0, True
        while more:
            message = await self.next()
            if message["type"] == "http.disconnect":
                raise _ClientGone
            chunk = message.get("body", b"")
            size += len(chunk)
            if size > limit:
                raise _too_large(limit)
            chunks.append(chunk)
            more = message.get("more_body", False)
        self._whole = b"".join(chunks)

    async def replay(self) -> Message:
        """The whole body at once; then whatever the connection says."""
        if self._whole is not None:
            whole, self._whole = self._whole, None
            return {"type": "http.request", "body": whole, "more_body": False}
        return await self._receive()


def _sets_limits(context: RequestContext, path: str) -> bool:
    return LIMITS.fullmatch(path) is not None and Operation.TENANTS in context.operations and context.sessions is None


def _too_large(limit: int, announced: int | None = None) -> TooLarge:
    has = f"The body has {announced:,} bytes" if announced else "The body has more"
    return TooLarge(f"{has}, and {limit:,} are taken (COATCHECK_MAX_BODY_BYTES).")
