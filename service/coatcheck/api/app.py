"""The HTTP application: the edge around the routers."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import FastAPI, Request, Response
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Scope

from coatcheck.api import (
    audit,
    cache,
    compactions,
    delegations,
    erasures,
    imports,
    issuers,
    jobs,
    keys,
    manifests,
    openapi,
    people,
    probes,
    problems,
    recall,
    retention,
    segments,
    sessions,
    tenants,
)
from coatcheck.api.counting import counted
from coatcheck.api.dependencies import Caller
from coatcheck.api.edge import Edge, Limits, TenantAdmission
from coatcheck.api.gate import Gate
from coatcheck.api.responses import AsciiJson
from coatcheck.domain.ports import IdFactory
from coatcheck.identity.authenticate import Authenticator
from coatcheck.memory.services import Services
from coatcheck.ops.metrics import Metrics
from coatcheck.ops.progress import ProgressBoard

ROUTERS = (
    compactions,
    recall,
    manifests,
    segments,
    sessions,
    erasures,
    imports,
    jobs,
    keys,
    tenants,
    retention,
    people,
    issuers,
    audit,
    delegations,
    cache,
    probes,
)


def create_api(
    services: Services,
    *,
    authenticator: Authenticator,
    admission: TenantAdmission,
    gate: Gate,
    limits: Limits,
    metrics: Metrics,
    progress: ProgressBoard,
    new_id: IdFactory,
    mounts: Mapping[str, ASGIApp] | None = None,
) -> ASGIApp:
    """The whole ASGI app. ``mounts`` (MCP) are ASGI apps at exact paths, behind the same edge."""
    app = routed_app()
    app.state.services = counted(services, metrics)
    app.state.gate = gate
    app.state.metrics = metrics
    app.state.progress = progress
    app.state.readiness = probes.RecentReadiness(services.readiness)
    for path, mounted in (mounts or {}).items():
        app.router.routes.append(_Mounted(path, mounted))
    return Edge(app, authenticator=authenticator, admission=admission, gate=gate, limits=limits, metrics=metrics, new_id=new_id)


def routed_app() -> FastAPI:
    """The routers and the problem handlers, without anything behind or in front of them."""
    app = FastAPI(
        title=openapi.TITLE,
        version=openapi.VERSION,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
    )
    for module in ROUTERS:
        app.include_router(module.router)
    app.add_api_route("/openapi.json", _openapi, include_in_schema=False)
    problems.install(app)
    return app


class _Mounted(Route):
    """An ASGI app at one path, which names itself as the routes of the framework do: by this its requests are counted."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, child_scope = super().matches(scope)
        return match, {**child_scope, "route": self}


async def _openapi(request: Request, _caller: Caller) -> Response:
    return AsciiJson(openapi.document(request.app))
