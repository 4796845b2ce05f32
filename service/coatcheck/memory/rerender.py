"""A handoff rendered again without what it quotes of an erased manifest."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal
from uuid import UUID

from coatcheck.compaction.navigation import HandoffIdentity, Overview, render_handoff
from coatcheck.domain.runs import Handoff, Run


def without_manifest(run: Run, session_name: str, public_url: str | None, manifest_id: UUID, erased: Collection[str]) -> Handoff:
    """The run's handoff less the lines of that manifest; an overview that rests on an erased segment goes whole."""
    source: Literal["generated", "excerpt"] = "generated" if run.handoff.overview_source == "generated" else "excerpt"
    overview = Overview(run.handoff.overview, source, run.handoff.overview_sha256s)
    if set(run.handoff.overview_sha256s) & set(erased):
        overview = Overview("", "excerpt")
    follows = run.parent_manifest_id if run.parent_manifest_id != manifest_id else None
    identity = HandoffIdentity(run.manifest_id, run.session_id, session_name, run.created_at, public_url, follows)
    lines = [line for line in run.handoff.lines if line.manifest_id != manifest_id and line.sha256 not in erased]
    return render_handoff(identity, run.counts, overview, lines, run.max_handoff_chars)
