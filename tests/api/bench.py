"""The edge in front of routes that a test makes up: what a request meets before and after any of our own."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

import httpx
from fastapi import FastAPI
from starlette.types import ASGIApp

from coatcheck.api import problems
from coatcheck.api.edge import Edge, Limits, TenantAdmission
from coatcheck.api.gate import Gate
from coatcheck.domain.identifiers import uuid7
from coatcheck.identity.authenticate import Authenticator
from coatcheck.ops.metrics import Metrics
from coatcheck.ops.progress import ProgressBoard, standard_stages
from tests.identity.directory import KEYS, NOW, MemoryDirectory


class Unlimited:
    """Admits everybody and charges nobody."""

    async def admit(self, tenant_id: UUID, announced_bytes: int) -> None: ...

    def arrived(self, tenant_id: UUID, size: int) -> None: ...

    def owe(self, tenant_id: UUID, size: int) -> None: ...


@dataclass
class Bench:
    """One edge, with what a test needs to look at it from behind. The test puts its routes on ``inner``."""

    directory: MemoryDirectory
    gate: Gate = field(default_factory=lambda: Gate(8))
    limits: Limits = field(default_factory=lambda: Limits(64 * 1024, 30.0, 600.0, body_pause_s=0.5))
    tenants: TenantAdmission = field(default_factory=Unlimited)
    board: ProgressBoard = field(default_factory=lambda: ProgressBoard(standard_stages(60)))

    def __post_init__(self) -> None:
        self.metrics = Metrics(self.board)
        self.inner = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
        problems.install(self.inner)

    def edge(self, inner: ASGIApp | None = None) -> Edge:
        return Edge(
            inner or self.inner,
            authenticator=Authenticator(self.directory, KEYS, lambda: NOW),
            admission=self.tenants,
            gate=self.gate,
            limits=self.limits,
            metrics=self.metrics,
            new_id=uuid7,
        )

    def client(self, edge: Edge | None = None) -> httpx.AsyncClient:
        return httpx.AsyncClient(transport=httpx.ASGITransport(edge or self.edge()), base_url="http://coatcheck")
