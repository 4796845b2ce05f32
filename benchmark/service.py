"""The product as a benchmark meets it: its own app in this process over ASGI, asked through the SDK, by the public routes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from coatcheck.domain.canonical import JsonObject, JsonValue
from coatcheck.settings import Settings, load
from coatcheck_client.client import AsyncCoatcheck

URL = "http://coatcheck"
"""Nothing listens there: requests go to the app in this process."""
DEADLINE_S = 600.0
"""A benchmark waits for its ingest; a deadline that a slow machine outlives would only add retries to the figures."""
_MEASURED = (
    "embedder",
    "embed_batch",
    "reranker",
    "fusion_dense_weight",
    "fusion_lexical_weight",
    "fusion_rrf_k",
    "recall_over_fetch",
    "pool_size",
    "max_working",
    "max_message_bytes",
)


def settings_for(data_dir: Path, **overrides: object) -> Settings:
    """Embedded storage in a folder of the benchmark's own, reachable as root too."""
    return load(None, data_dir=data_dir, embedded=True, allow_root_home=True, log_level="error", **overrides)


def effective(settings: Settings) -> JsonObject:
    """The settings that figures depend on; no path, no address, no secret."""
    shown: dict[str, JsonValue] = settings.model_dump(mode="json", include=set(_MEASURED))
    return {name: shown[name] for name in _MEASURED if name in shown}


@dataclass(frozen=True, slots=True)
class Service:
    """The running app: its routes behind the SDK, and what decides its figures by revision."""

    client: AsyncCoatcheck
    revisions: dict[str, str]


@asynccontextmanager
async def running(settings: Settings) -> AsyncIterator[Service]:
    """The app, started on these settings and stopped at the end."""
    from coatcheck.app.serve import in_process

    async with (
        in_process(settings) as app,
        AsyncCoatcheck(URL, app.api_key, transport=app.transport) as client,
    ):
        parts = app.app.parts
        generation = {"embedder": parts.generation.embedder_revision, "analyser": parts.generation.analyser_revision}
        reranker = {} if parts.reranker is None else {"reranker": parts.reranker.revision}
        yield Service(client, parts.planning.revisions | generation | reranker)
