"""``/livez``, ``/readyz``, ``/progressz``, ``/metrics``: no credential, and nothing but names and figures."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import cast

from fastapi import APIRouter, Request, Response

from coatcheck.api.documented import PUBLIC, VERBOSE, told
from coatcheck.api.gate import Gate
from coatcheck.api.responses import AsciiJson
from coatcheck.memory.readiness import ReadinessReport
from coatcheck.ops.metrics import CONTENT_TYPE, Metrics
from coatcheck.ops.progress import ProgressBoard

router = APIRouter(tags=["probes"])

RECENT_S = 1.0


class RecentReadiness:
    """The readiness, asked for at most once a second: a probe needs no credential, so strangers can ask it too."""

    def __init__(
        self,
        ask: Callable[[], Awaitable[ReadinessReport]],
        *,
        recent_s: float = RECENT_S,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ask = ask
        self._recent_s = recent_s
        self._monotonic = monotonic
        self._one_at_a_time = asyncio.Lock()
        self._last: tuple[float, ReadinessReport] | None = None

    async def report(self) -> ReadinessReport:
        async with self._one_at_a_time:
            if self._last is None or self._monotonic() - self._last[0] >= self._recent_s:
                self._last = self._monotonic(), await self._ask()
            return self._last[1]


@router.get(
    "/livez", openapi_extra=PUBLIC, response_class=AsciiJson, responses=told({503: {"description": "A vital stage is stuck."}})
)
async def livez(request: Request) -> Response:
    """Whether this process can make progress. Asks nothing else than the process itself."""
    stuck = _board(request).stuck(vital=True)
    return AsciiJson({"status": "stuck" if stuck else "alive", "stuck": list(stuck)}, 503 if stuck else 200)


@router.get(
    "/readyz", openapi_extra=VERBOSE, response_class=AsciiJson, responses=told({503: {"description": "It takes no requests now."}})
)
async def readyz(request: Request) -> Response:
    """Whether this process takes requests: ``ready``, ``degraded`` (without an optional stage, or nothing comes in), or 503."""
    draining = cast(Gate, request.app.state.gate).draining
    board = _board(request)
    stuck, failing, loading = board.stuck(vital=False), board.failing(), board.loading_long()
    report = await cast(RecentReadiness, request.app.state.readiness).report()
    ready = report.ready and not draining
    impaired = bool(stuck or failing or loading) or report.degraded
    status = "draining" if draining else "not-ready" if not report.ready else "degraded" if impaired else "ready"
    body: dict[str, object] = {"status": status}
    if "verbose" in request.query_params:
        body |= {
            "checks": {**report.checks, "drain": "draining" if draining else report.checks.get("drain", "ok")},
            "durability": report.durability,
            "stuck": list(stuck),
            "failing": list(failing),
            "loading": list(loading),
            "disk": {"free_bytes": report.free_bytes},
            "queue": {
                "pending": report.pending,
                "quarantined": report.quarantined,
                "oldest_age_s": round(report.queue_age_s, 1),
            },
        }
    return AsciiJson(body, 200 if ready else 503)


@router.get("/progressz", openapi_extra=PUBLIC, response_class=AsciiJson, responses=told({}))
async def progressz(request: Request) -> Response:
    """Each stage: pieces in flight, the oldest one's age, completions, the last one's age."""
    stages = {
        report.name: {
            "vital": report.vital,
            "in_flight": report.in_flight,
            "oldest_age_s": _rounded(report.oldest_age_s),
            "completions": report.completions,
            "last_completion_age_s": _rounded(report.last_completion_age_s),
            "stuck": report.stuck,
            "failing": report.failing,
            "loading": report.loading,
        }
        for report in _board(request).reports()
    }
    return AsciiJson({"stages": stages})


@router.get(
    "/metrics",
    openapi_extra=PUBLIC,
    response_class=Response,
    responses={200: {"description": "Prometheus exposition.", "content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(request: Request) -> Response:
    """Counters and gauges for Prometheus."""
    return Response(cast(Metrics, request.app.state.metrics).render(), headers={"Content-Type": CONTENT_TYPE})


def _board(request: Request) -> ProgressBoard:
    return cast(ProgressBoard, request.app.state.progress)


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)
