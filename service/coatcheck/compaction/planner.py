"""The pure pipeline: a window in, everything that a run will store out, decided before anything is stored.

The stages stand below in the order in which text passes through them. No I/O: models are ports, and the same request with the
same models gives the same plan.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from coatcheck.compaction import (
    effort,
    excerpt,
    generated,
    lines,
    pieces,
    protection,
    reading,
    reduction,
    routing,
    tokens,
    window,
)
from coatcheck.compaction.handoffs import handoff_candidates
from coatcheck.compaction.navigation import (
    HandoffIdentity,
    Overview,
    lines_room,
    overview_room,
    render_handoff,
)
from coatcheck.compaction.pieces import Piece
from coatcheck.compaction.policy import Policy
from coatcheck.compaction.policy_document import shipped
from coatcheck.compaction.quotable import Quotable
from coatcheck.compaction.reading import OpenedWindow
from coatcheck.compaction.storing import Stored, quotables_of, store
from coatcheck.domain.budgets import Budget
from coatcheck.domain.canonical import JsonValue
from coatcheck.domain.errors import NoProgress
from coatcheck.domain.messages import PartKind, Role, WireFormat
from coatcheck.domain.placeholders import PlaceholderKeys
from coatcheck.domain.plans import Plan, PlanWarning
from coatcheck.domain.ports import Compressor, EntailmentGate, Redacting, Router, Summariser, TokenCounter
from coatcheck.domain.routes import Decision, Route
from coatcheck.domain.runs import Handoff, HandoffLine, RunCounts
from coatcheck.domain.segments import Reduction

__all__ = ["HandoffIdentity", "PlanRequest", "Planner", "handoff_candidates", "render_handoff"]

PIPELINE_REVISION = "6"
"""Rises with every change in code of what protects, what a gate lets through, where text is cut or what a handoff quotes."""

_LEAST_HANDOFF_CHARS = 600
_HANDOFF_SHARE_OF_WINDOW = 0.75
"""A short window gets a short handoff: one that saves a few characters would only be compacted again."""


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """One window to plan. ``known_handoffs`` maps the hash of an earlier handoff's text to its manifest."""

    wire: WireFormat
    messages: Sequence[JsonValue]
    system: JsonValue
    times: Sequence[datetime | None] | None
    received_at: datetime
    max_handoff_chars: int
    focus: str | None
    identity: HandoffIdentity
    """Where it names no manifest that it follows, that is the newest one whose handoff stands in the window."""
    known_handoffs: Mapping[str, UUID]
    keys: PlaceholderKeys
    max_message_bytes: int
    budget: Budget
    """What the models may take; when it is spent, what they have not said is done without."""
    earlier_lines: Sequence[HandoffLine] = ()
    """The lines of the earlier handoffs as they are stored now, oldest first: the best of them are carried on."""
    may_drop: bool = True
    """False for text that was kept before: an import or a rescan is no occasion to lose it, whatever the policy says."""
    must_gain: bool = True
    """False for a window that is stored already: its handoff stands in somebody's prompt, however long the window is now."""


@dataclass(frozen=True, slots=True)
class _Decided:
    """One decision for each piece, and the accepted reductions by exact text."""

    decisions: list[Decision]
    reductions: dict[str, Reduction]
    warnings: list[PlanWarning]


class Planner:
    """Plans compactions. Holds no state but its models, so that several threads may plan at once."""

    def __init__(
        self,
        redactor: Redacting,
        *,
        policy: Policy | None = None,
        router: Router | None = None,
        compressor: Compressor | None = None,
        entailment: EntailmentGate | None = None,
        summariser: Summariser | None = None,
        count_tokens: TokenCounter | None = None,
        dense_worthy: Callable[[str], bool] | None = None,
    ) -> None:
        """``policy`` is the shipped one where none is given. ``dense_worthy`` says which texts an embedder can make something
        of: the plan warns of those that it cannot.
        """
        self._redactor = redactor
        self._policy = policy or shipped()
        self._router = router
        self._compressor = compressor
        self._entailment = entailment
        self._summariser = summariser
        self._count_tokens = count_tokens
        self._dense_worthy = dense_worthy

    @property
    def revisions(self) -> dict[str, str]:
        """What decided: the policy, the rules and the models by name."""
        models = {
            "router": self._router,
            "compressor": self._compressor,
            "entailment": self._entailment,
            "summariser": self._summariser,
        }
        return {
            "pipeline": PIPELINE_REVISION,
            "policy": self._policy.revision,
            "redaction": self._redactor.revision,
            **{name: model.revision for name, model in models.items() if model is not None},
        }

    def plan(self, request: PlanRequest) -> Plan:
        """Plans one window, whole or not at all.

        Raises TooLarge, InvalidRequest, InvalidWindow, EmptyWindow, NoProgress and RedactionFailed (RedactionTooCostly among it).
        A model never fails a plan.
        """
        checked = window.check(request.wire, request.messages, request.system, request.max_message_bytes)
        times = window.moments(request.times, request.received_at, len(checked.messages))
        effort.step()
        with effort.bounded():
            opened = reading.read(checked, times, request.wire, self._redactor, request.keys, request.known_handoffs)
        effort.step()
        cut = pieces.cut(opened)
        effort.step()
        decided = self._decide(cut, request.budget, self._policy if request.may_drop else self._policy.without_drop())
        effort.step()
        stored = store(opened, cut, decided.decisions, self._redactor.revision)
        effort.step()
        counts, token_warnings = self._count(opened, cut, stored, decided)
        effort.step()
        earlier_handoffs = tuple(dict.fromkeys(p.handoff_manifest_id for p in cut if p.handoff_manifest_id is not None))
        if request.identity.follows is None and earlier_handoffs:
            request = dataclasses.replace(request, identity=dataclasses.replace(request.identity, follows=earlier_handoffs[-1]))
        handoff, handoff_warnings = self._navigate(request, opened, cut, stored, counts)
        return Plan(
            window_format=request.wire.name,
            entries=tuple(stored.entries),
            segments=tuple(stored.segments.values()),
            reductions=tuple(reduction for text, reduction in decided.reductions.items() if text in stored.segments),
            blobs=tuple(stored.blobs.values()),
            handoff=handoff,
            counts=counts,
            earlier_handoffs=earlier_handoffs,
            warnings=tuple(decided.warnings + token_warnings + handoff_warnings + self._lexical_warnings(stored)),
            revisions=self.revisions,
        )

    def _decide(self, cut: Sequence[Piece], budget: Budget, policy: Policy) -> _Decided:
        """Protection, then routing, then reduction; each text once."""
        first_decisions: dict[tuple[Role, PartKind, str], Decision | None] = {}
        for piece in cut:
            key = (piece.part.role, piece.part.kind, piece.text)
            if piece.is_segment and key not in first_decisions:
                name = protection.protect(*key, policy.protections)
                first_decisions[key] = None if name is None else Decision(Route.KEEP, f"protected:{name}", name)
        undecided = list(dict.fromkeys(text for (_, _, text), decision in first_decisions.items() if decision is None))
        routed, warnings = routing.route(undecided, self._router, policy, budget)
        by_text = dict(zip(undecided, routed, strict=True))

        to_compress = [text for text, decision in by_text.items() if decision.route is Route.COMPRESS]
        reduced, reduction_warnings = reduction.reduce(to_compress, self._compressor, self._entailment, policy, budget)
        reductions: dict[str, Reduction] = {}
        for text, result in zip(to_compress, reduced, strict=True):
            by_text[text] = dataclasses.replace(result.decision, scores=by_text[text].scores)
            if result.reduction is not None:
                reductions[text] = result.reduction

        decisions: list[Decision] = []
        for piece in cut:
            if piece.is_segment:
                known = first_decisions[piece.part.role, piece.part.kind, piece.text]
                decisions.append(known if known is not None else by_text[piece.text])
            else:
                decisions.append(_CARRIED["handoff" if piece.handoff_manifest_id else "blob" if piece.text else "empty"])
        return _Decided(decisions, reductions, warnings + reduction_warnings)

    def _count(
        self, opened: OpenedWindow, cut: Sequence[Piece], stored: Stored, decided: _Decided
    ) -> tuple[RunCounts, list[PlanWarning]]:
        texts = [part.text for message in opened.messages for part in message.parts if part.kind is not PartKind.BLOB]
        blobs = sum(1 for piece in cut if piece.part.kind is PartKind.BLOB)
        counted, warnings = tokens.count(texts, blobs, self._count_tokens)
        compressed = sum(1 for text in decided.reductions if text in stored.segments)
        dropped = len(stored.dropped.difference(stored.segments))
        listed = [message for message in opened.messages if not message.is_system_field]
        counts = RunCounts(
            messages=len(listed),
            parts=sum(len(message.parts) for message in opened.messages),
            chars=sum(map(len, texts)),
            tokens=counted.count,
            token_counter=counted.counter,
            tokens_estimated=counted.estimated,
            messages_by_role=dict(Counter(message.said_by for message in listed)),
            segments=len(stored.segments) + dropped,
            keep=len(stored.segments) - compressed,
            compress=compressed,
            drop=dropped,
            already_stored=0,
            redactions_by_kind=dict(sorted(opened.redactions.items())),
        )
        return counts, warnings

    def _navigate(
        self, request: PlanRequest, opened: OpenedWindow, cut: Sequence[Piece], stored: Stored, counts: RunCounts
    ) -> tuple[Handoff, list[PlanWarning]]:
        """The handoff. Raises NoProgress when it would not be shorter than what it replaces."""
        blob_chars = sum(len(piece.text) for piece in cut if piece.part.kind is PartKind.BLOB)
        window_chars = counts.chars + blob_chars
        if all(piece.handoff_manifest_id is not None or not piece.text.strip() for piece in cut):
            raise NoProgress("The window holds nothing but earlier handoffs.")
        max_chars = _limit(request.max_handoff_chars, window_chars, cut)

        quotables = quotables_of(opened, cut, stored)
        room = overview_room(request.identity, counts, max_chars)
        overview, warnings = generated.generate(quotables, self._summariser, self._entailment, room, self._policy, request.budget)
        overview = _excerpt(quotables, cut, room) if overview is None else excerpt.with_landmarks(overview, quotables, room)
        effort.step()
        room = lines_room(request.identity, counts, overview, max_chars)
        chosen = lines.choose(quotables, request.earlier_lines, request.focus, request.identity.manifest_id, room)
        handoff = render_handoff(request.identity, counts, overview, chosen, max_chars)
        if request.must_gain and handoff.chars >= window_chars:
            raise NoProgress(f"The handoff would have {handoff.chars} characters, the window has {window_chars}.")
        return handoff, warnings

    def _lexical_warnings(self, stored: Stored) -> list[PlanWarning]:
        if self._dense_worthy is None:
            return []
        count = sum(1 for text in stored.segments if not self._dense_worthy(text))
        if not count:
            return []
        return [PlanWarning("lexical-only", f"{count} segments of encoded, minified or repeating text are found by words only")]


_CARRIED = {
    "handoff": Decision(Route.KEEP, "earlier-handoff"),
    "blob": Decision(Route.KEEP, "protected:blob", "blob"),
    "empty": Decision(Route.KEEP, "empty"),
}


def _limit(max_handoff_chars: int, window_chars: int, cut: Sequence[Piece]) -> int:
    """A handoff in a row is no longer than the longest that it replaces, so that the tenth is no longer than the first."""
    share = max(_LEAST_HANDOFF_CHARS, int(window_chars * _HANDOFF_SHARE_OF_WINDOW))
    earlier = [len(piece.text) for piece in cut if piece.handoff_manifest_id is not None]
    return min(max_handoff_chars, share, max(earlier, default=max_handoff_chars))


def _excerpt(quotables: Sequence[Quotable], cut: Sequence[Piece], room: int) -> Overview:
    names = [piece.part.name or "" for piece in cut if piece.part.kind is PartKind.TOOL_CALL and piece.segment_index == 0]
    return excerpt.excerpt(quotables, names, room)
