"""The OpenAPI document: complete (bodies, bounds, problems, security), the same on every machine.

``python -m coatcheck.api.openapi docs/openapi.json`` writes it; the file in the repository is checked against this.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from coatcheck.api.documented import DEADLINE
from coatcheck_client import wire

TITLE = "Coatcheck"
VERSION = "1"
DESCRIPTION = (
    "Hand in the middle of an agent's conversation, carry a small ticket, get the exact text back. "
    "Every error is an RFC 9457 problem; `retryable` says whether the same request helps."
)
READ_BY_US = (
    wire.CompactionRequest,
    wire.RecallRequest,
    wire.SessionPatch,
    wire.ScanRequest,
    wire.RepairRequest,
    wire.KeyCreate,
    wire.TenantCreate,
    wire.CacheLookup,
    wire.CacheStore,
    wire.CachePurge,
    wire.PrincipalCreate,
    wire.PrincipalPatch,
    wire.TeamCreate,
    wire.MembershipCreate,
    wire.DelegationCreate,
    wire.TenantLimits,
    wire.ReceiptIn,
    wire.RetentionPolicy,
    wire.IssuerCreate,
    wire.Problem,
)
"""Models that FastAPI does not see, because we read and write them ourselves."""


def document(app: FastAPI) -> dict[str, Any]:
    """The document of an app with its routers."""
    made: dict[str, Any] = get_openapi(title=TITLE, version=VERSION, description=DESCRIPTION, routes=app.routes)
    _, definitions = models_json_schema(
        [(model, "validation") for model in READ_BY_US], ref_template="#/components/schemas/{model}"
    )
    components = made.setdefault("components", {})
    components["schemas"] = dict(sorted({**components.get("schemas", {}), **definitions["$defs"]}.items()))
    components["securitySchemes"] = {
        "apiKey": {
            "type": "http",
            "scheme": "bearer",
            "description": "`ck_<tenant>_<key id>_<secret>`, a delegation `cd_...`, or a signed token (JWT) of an issuer that the "
            "installation knows",
        }
    }
    made["security"] = [{"apiKey": []}]
    for operation in _operations(made):
        if operation.get("security") != []:
            operation.setdefault("parameters", []).append(DEADLINE)
        for response in operation["responses"].values():
            _drop_empty_json(response)
        operation["responses"] = {
            status: _shared(response, components.setdefault("responses", {})) for status, response in operation["responses"].items()
        }
    return made


def write(path: Path, app: FastAPI) -> None:
    """Writes the document for the repository: stable, readable, ending in a newline."""
    path.write_text(json.dumps(document(app), indent=2, ensure_ascii=True) + "\n", "utf-8")


def _operations(made: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for path in made["paths"].values():
        yield from path.values()


def _shared(response: dict[str, Any], shared: dict[str, Any]) -> dict[str, Any]:
    """A reference, for problem responses: the same few stand at every operation."""
    if "application/problem+json" not in response.get("content", {}):
        return response
    name = "_".join(re.findall(r"`([a-z-]+)`:", response["description"]))
    shared[name] = response
    return {"$ref": f"#/components/responses/{name}"}


def _drop_empty_json(response: dict[str, Any]) -> None:
    """FastAPI adds an empty application/json beside the media type that we name."""
    content = response.get("content", {})
    if len(content) > 1 and not content.get("application/json", {}).get("schema"):
        content.pop("application/json", None)


if __name__ == "__main__":
    from coatcheck.api.app import routed_app

    write(Path(sys.argv[1]), routed_app())
