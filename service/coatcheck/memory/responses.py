"""Stored values as the contract's bodies."""

from __future__ import annotations

from typing import Literal

from coatcheck.domain.entries import Entry
from coatcheck.domain.runs import Run
from coatcheck.domain.segments import Reduction
from coatcheck.formats import get
from coatcheck_client.wire import (
    CompactionResponse,
    EntryOut,
    HandoffOut,
    IndexCounts,
    ManifestOut,
    RedactionCounts,
    SegmentCounts,
    TokenCount,
    WarningOut,
    WindowCounts,
)


def compaction_response(run: Run) -> CompactionResponse:
    """The answer to a compaction, the same for the request that made the run and for every repetition."""
    return CompactionResponse(
        manifest_id=run.manifest_id,
        session_id=run.session_id,
        parent_manifest_id=run.parent_manifest_id,
        handoff=_handoff(run),
        window=_window(run),
        segments=_segments(run),
        redactions=_redactions(run),
        index=IndexCounts(generation=run.generation, passages=run.passages),
        warnings=[WarningOut(**warning) for warning in run.warnings],
        timings_ms=run.timings_ms,
    )


def manifest_response(run: Run, session_name: str) -> ManifestOut:
    return ManifestOut(
        manifest_id=run.manifest_id,
        session_id=run.session_id,
        session=session_name,
        parent_manifest_id=run.parent_manifest_id,
        status=run.status.value,
        format=run.window_format,
        created_at=run.created_at,
        acknowledged_at=run.acknowledged_at,
        handoff=_handoff(run),
        window=_window(run),
        segments=_segments(run),
        redactions=_redactions(run),
        index=IndexCounts(generation=run.generation, passages=run.passages),
        revisions=run.revisions,
        warnings=[WarningOut(**warning) for warning in run.warnings],
    )


def entry_response(entry: Entry, reduction: Reduction | None, text: str | None) -> EntryOut:
    return EntryOut(
        ordinal=entry.ordinal,
        message_index=entry.message_index,
        part_index=entry.part_index,
        segment_index=entry.segment_index,
        role=entry.role,
        kind=entry.kind.value,
        route=entry.decision.route.value,
        reason=entry.decision.reason,
        protection=entry.decision.protection,
        scores=dict(entry.decision.scores) or None,
        sha256=entry.segment_sha256,
        dropped_sha256=entry.dropped_sha256,
        reduced_sha256=reduction.sha256 if reduction else None,
        verdicts=reduction.verdicts if reduction else None,
        blob_sha256=entry.blob_sha256,
        handoff_manifest_id=entry.handoff_manifest_id,
        call_id=entry.call_id,
        group_id=entry.group_id,
        name=entry.name,
        occurred_at=entry.occurred_at,
        chars=entry.chars,
        text=text,
    )


def _handoff(run: Run) -> HandoffOut:
    handoff = run.handoff
    source: Literal["generated", "excerpt"] = "generated" if handoff.overview_source == "generated" else "excerpt"
    message = get(run.window_format).handoff_message(handoff.text)
    return HandoffOut(text=handoff.text, chars=handoff.chars, sha256=handoff.sha256, overview_source=source, message=message)


def _window(run: Run) -> WindowCounts:
    counts = run.counts
    tokens = TokenCount(count=counts.tokens, counter=counts.token_counter, estimated=counts.tokens_estimated)
    return WindowCounts(messages=counts.messages, parts=counts.parts, chars=counts.chars, tokens=tokens)


def _segments(run: Run) -> SegmentCounts:
    counts = run.counts
    return SegmentCounts(
        total=counts.segments, keep=counts.keep, compress=counts.compress, drop=counts.drop, already_stored=counts.already_stored
    )


def _redactions(run: Run) -> RedactionCounts:
    by_kind = run.counts.redactions_by_kind
    return RedactionCounts(total=sum(by_kind.values()), by_kind=by_kind)
