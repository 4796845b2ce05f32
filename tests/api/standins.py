"""Use cases that do what a test says, behind the real edge, routers and authenticator."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import httpx
from starlette.types import ASGIApp

from coatcheck.api.app import create_api
from coatcheck.api.edge import Limits
from coatcheck.api.gate import Gate
from coatcheck.domain.identifiers import uuid7
from coatcheck.identity.authenticate import Authenticator
from coatcheck.memory.readiness import ReadinessReport
from coatcheck.memory.services import Services
from coatcheck.ops.metrics import Metrics
from coatcheck.ops.progress import ProgressBoard, standard_stages
from coatcheck_client.wire import (
    CompactionResponse,
    HandoffOut,
    IndexCounts,
    RedactionCounts,
    SegmentCounts,
    TokenCount,
    WindowCounts,
)
from tests.identity.directory import KEYS, NOW, MemoryDirectory

UseCase = Callable[..., Awaitable[Any]]
READY = ReadinessReport(True, {"postgresql": "ok", "index": "ok"}, {"fsync": "on"}, 0.0, 0, 0)
LATER = datetime(2026, 11, 29, 20, 16, tzinfo=UTC)


@dataclass
class Bench:
    """One app, with what a test needs to look at it from behind."""

    directory: MemoryDirectory
    gate: Gate = field(default_factory=lambda: Gate(8))
    limits: Limits = field(default_factory=lambda: Limits(64 * 1024, 30.0, 600.0, body_pause_s=0.5))
    board: ProgressBoard = field(default_factory=lambda: ProgressBoard(standard_stages(60)))
    use_cases: dict[str, UseCase] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.metrics = Metrics(self.board)

    def app(self) -> ASGIApp:
        return create_api(
            services(**self.use_cases),
            authenticator=Authenticator(self.directory, KEYS, lambda: NOW),
            gate=self.gate,
            limits=self.limits,
            metrics=self.metrics,
            progress=self.board,
            new_id=uuid7,
        )

    def client(self, app: ASGIApp | None = None) -> httpx.AsyncClient:
        return httpx.AsyncClient(transport=httpx.ASGITransport(app or self.app()), base_url="http://coatcheck")


def services(**use_cases: UseCase) -> Services:
    """The use cases given; any other must not be reached."""

    def unreached(name: str) -> UseCase:
        async def refuse(*_args: object, **_options: object) -> object:
            raise AssertionError(f"{name} was reached")

        return refuse

    names = [one.name for one in fields(Services)]
    return Services(**{name: unreached(name) for name in names} | {"readiness": _ready} | use_cases)


def raising(error: BaseException) -> UseCase:
    """A use case that fails."""

    async def fail(*_args: object, **_options: object) -> object:
        raise error

    return fail


def giving(value: object) -> UseCase:
    """A use case that answers."""

    async def give(*_args: object, **_options: object) -> object:
        return value

    return give


def a_compaction(text: str = "[CONTEXT HANDOFF]") -> CompactionResponse:
    """A complete answer to a compaction."""
    return CompactionResponse(
        manifest_id=UUID(int=1),
        session_id=UUID(int=2),
        parent_manifest_id=None,
        handoff=HandoffOut(
            text=text, chars=len(text), sha256="0" * 64, overview_source="excerpt", message={"role": "user", "content": text}
        ),
        window=WindowCounts(messages=1, parts=1, chars=1, tokens=TokenCount(count=1, counter="words", estimated=True)),
        segments=SegmentCounts(total=1, keep=1, compress=0, drop=0, already_stored=0),
        redactions=RedactionCounts(total=0, by_kind={}),
        index=IndexCounts(generation=1, passages=1),
        warnings=[],
        timings_ms={"plan": 1},
    )


async def _ready() -> ReadinessReport:
    return READY
