"""How a run stands in its row: its handoff's text as bytes, the handoff's sources as canonical JSON beside it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import sqlalchemy as sa

from coatcheck.domain.canonical import JsonObject, decode, encode, parse_text, to_bytes
from coatcheck.domain.runs import Handoff, HandoffLine, Lease, Run, RunCounts, RunStatus


def handoff_columns(handoff: Handoff) -> dict[str, object]:
    """The parameters of the three columns that hold a handoff."""
    sources: JsonObject = {
        "overview_source": handoff.overview_source,
        "overview": handoff.overview,
        "overview_sha256s": list(handoff.overview_sha256s),
        "lines": [{"text": line.text, "sha256": line.sha256, "manifest_id": str(line.manifest_id)} for line in handoff.lines],
    }
    return {"handoff_text": encode(handoff.text), "handoff_sha256": handoff.sha256, "handoff": to_bytes(sources)}


def run_of_row(row: sa.Row[Any]) -> Run:
    """The run that a row of every column of it holds."""
    lease = None
    if row.lease_owner is not None and row.lease_until is not None:
        lease = Lease(row.lease_owner, row.lease_fence, row.lease_until)
    return Run(
        manifest_id=row.manifest_id,
        session_id=row.session_id,
        principal_id=row.principal_id,
        parent_manifest_id=row.parent_manifest_id,
        idempotency_key=row.idempotency_key,
        request_digest=row.request_digest,
        status=RunStatus(row.status),
        lease=lease,
        window_format=row.window_format,
        max_handoff_chars=row.max_handoff_chars,
        handoff=_handoff(row.handoff_text, row.handoff_sha256, row.handoff),
        counts=RunCounts(**row.counts),
        revisions=row.revisions,
        warnings=tuple(row.warnings),
        timings_ms=row.timings_ms,
        created_at=row.created_at,
        acknowledged_at=row.acknowledged_at,
        erased_at=row.erased_at,
        passages=row.passages,
        generation=row.generation,
    )


def _handoff(text: bytes, sha256: str, sources: bytes) -> Handoff:
    # Written by handoff_columns alone, which is what makes this shape certain.
    held: Any = parse_text(decode(sources))
    return Handoff(
        text=decode(text),
        sha256=sha256,
        overview_source=held["overview_source"],
        overview=held["overview"],
        overview_sha256s=tuple(held["overview_sha256s"]),
        lines=tuple(HandoffLine(line["text"], line["sha256"], UUID(line["manifest_id"])) for line in held["lines"]),
    )
