"""``recall``: evidence recall on labelled conversations, through the public routes, with the legs switched off one by one.

Each conversation is one session, each turn one message and so one segment. A question asks its own session; a hit counts for
the turns whose stored text it is. Figures for the tuning half and the held-out half of the conversations stand apart.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from time import perf_counter
from uuid import UUID

from benchmark.conversations import Conversation, LabelledQuestion, Turn, read_conversations
from benchmark.report import Cell, Picture, Report, Table, rounded
from benchmark.service import DEADLINE_S, effective, running, settings_for
from benchmark.stats import evidence_recall, ndcg, quantile
from coatcheck.domain.canonical import JsonObject, sha256_hex
from coatcheck_client.client import AsyncCoatcheck

NAME = "recall"
CUTS = (1, 5, 10)
_EVERYTHING = 200_000
"""As many characters as a recall may answer with: no hit is cut here."""


@dataclass(frozen=True, slots=True)
class Arm:
    """One way to search: the settings that differ, and whether the reranker runs."""

    name: str
    settings: Mapping[str, float]
    rerank: bool = False


ARMS = (
    Arm("dense", {"fusion_lexical_weight": 0.0}),
    Arm("lexical", {"fusion_dense_weight": 0.0}),
    Arm("fused", {}),
)
RERANKED = Arm("reranked", {"rerank_limit_s": DEADLINE_S / 2}, rerank=True)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One question, asked once: the turns that each hit stands for, in order, and the time it took."""

    half: str
    category: str
    evidence: tuple[str, ...]
    found: tuple[frozenset[str], ...]
    milliseconds: float


@dataclass(frozen=True, slots=True)
class Stored:
    """One conversation in the service: its session, and which turns each stored hash stands for."""

    session_id: UUID
    turns_of: Mapping[str, frozenset[str]]
    segments: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, required=True, help="LoCoMo-shaped JSON; it stays outside the repository")
    parser.add_argument("--rerank", choices=("on", "off"), default="off", help="also measure with the reranker")
    parser.add_argument("--window-chars", type=int, default=20_000, help="characters of one compacted window (default %(default)s)")
    parser.add_argument("--tuning", type=int, default=2, help="the first N conversations are the tuning half (default %(default)s)")
    parser.add_argument("--embedder", default="auto", help="as COATCHECK_EMBEDDER (default %(default)s)")


def run(options: argparse.Namespace) -> Report:
    """Stores the conversations once, then asks every question once for each arm."""
    data: Path = options.data
    conversations = read_conversations(data)
    arms = (*ARMS, RERANKED) if options.rerank == "on" else ARMS
    with tempfile.TemporaryDirectory(prefix="coatcheck-recall-") as folder:
        return asyncio.run(
            _measure(
                Path(folder),
                conversations,
                arms,
                options.tuning,
                options.window_chars,
                options.embedder,
                sha256_hex(data.read_bytes()),
            )
        )


async def _measure(
    folder: Path,
    conversations: Sequence[Conversation],
    arms: Sequence[Arm],
    tuning: int,
    window_chars: int,
    embedder: str,
    digest: str,
) -> Report:
    settings = settings_for(folder, embedder=embedder)
    async with running(settings) as service:
        revisions = service.revisions
        start = perf_counter()
        stored = [await store(service.client, conversation, window_chars) for conversation in conversations]
        ingest_s = perf_counter() - start
    outcomes: dict[str, list[Outcome]] = {}
    notes = []
    for arm in arms:
        async with running(settings_for(folder, embedder=embedder, **arm.settings)) as service:
            missing = await _unavailable(service.client, arm)
            if missing:
                notes.append(f"{arm.name}: not measured, {missing}.")
                continue
            outcomes[arm.name] = [
                outcome
                for number, (conversation, kept) in enumerate(zip(conversations, stored, strict=True))
                for outcome in await ask(service.client, conversation, kept, arm, "tuning" if number < tuning else "held_out")
            ]
    turns = sum(len(conversation.turn_ids) for conversation in conversations)
    unknown = sum(1 for c in conversations for q in c.questions if not set(q.evidence) <= c.turn_ids)
    results: JsonObject = {name: dict(_summary(found)) for name, found in outcomes.items()}
    results |= {"questions": sum(len(c.questions) for c in conversations), "questions_with_unknown_evidence": unknown}
    results |= {"turns": turns, "segments": sum(kept.segments for kept in stored), "ingest_s": round(ingest_s, 2)}
    if unknown:
        notes.append(f"{unknown} questions name an evidence turn that the data does not have; it counts as not found.")
    return Report(
        NAME,
        results,
        effective(settings) | {"window_chars": window_chars, "tuning_conversations": tuning},
        {"sha256": digest, "conversations": len(conversations)},
        revisions,
        _tables(outcomes),
        Picture(
            "Evidence recall, all questions",
            "recall",
            tuple(f"@{k}" for k in CUTS),
            {name: [_recall(found, k) for k in CUTS] for name, found in outcomes.items()},
        ),
        tuple(notes),
    )


async def store(service: AsyncCoatcheck, conversation: Conversation, window_chars: int) -> Stored:
    """Compacts the conversation window by window and maps what was stored back to its turns."""
    turns_of: dict[str, set[str]] = defaultdict(set)
    session_id: UUID | None = None
    for window in conversation.windows(window_chars):
        answer = await service.compact(
            [turn.as_message() for turn in window],
            session=conversation.name,
            format="openai-chat",
            times=[turn.at for turn in window],
            deadline_s=DEADLINE_S,
        )
        session_id = answer.session_id
        await _map_entries(service, answer.manifest_id, window, turns_of)
    if session_id is None:
        raise ValueError("a conversation without turns cannot be asked")
    return Stored(session_id, {sha: frozenset(turns) for sha, turns in turns_of.items()}, len(turns_of))


async def ask(service: AsyncCoatcheck, conversation: Conversation, stored: Stored, arm: Arm, half: str) -> list[Outcome]:
    """Every question once, one after the other, each with its session."""
    return [await _ask_one(service, question, stored, arm, half) for question in conversation.questions]


async def _ask_one(service: AsyncCoatcheck, question: LabelledQuestion, stored: Stored, arm: Arm, half: str) -> Outcome:
    start = perf_counter()
    answer = await service.recall(
        question.text,
        session=stored.session_id,
        top_k=max(CUTS),
        max_chars=_EVERYTHING,
        rerank="on" if arm.rerank else "off",
    )
    took = (perf_counter() - start) * 1_000
    found = tuple(stored.turns_of.get(hit.sha256, frozenset[str]()) for hit in answer.hits)
    return Outcome(half, question.category, question.evidence, found, took)


async def _map_entries(service: AsyncCoatcheck, manifest_id: UUID, window: Sequence[Turn], turns_of: dict[str, set[str]]) -> None:
    """By the window's order, not by text: redaction may have changed a turn, and equal turns share one segment."""
    for entry in await service.entries(manifest_id):
        if entry.sha256 is not None:
            turns_of[entry.sha256].add(window[entry.message_index].turn_id)


async def _unavailable(service: AsyncCoatcheck, arm: Arm) -> str:
    """Why this arm cannot be measured; empty when every leg that it needs is in use. Also the arm's warm-up."""
    answer = await service.recall("warm-up", rerank="on" if arm.rerank else "off")
    needed = {"dense": ("dense",), "lexical": ("lexical",), "fused": ("dense", "lexical")}.get(
        arm.name, ("dense", "lexical", "rerank")
    )
    return "; ".join(f"{leg} leg {answer.legs.get(leg, 'absent')}" for leg in needed if answer.legs.get(leg) != "used")


def _summary(outcomes: Sequence[Outcome]) -> JsonObject:
    summary = _figures(outcomes)
    times = [outcome.milliseconds for outcome in outcomes]
    summary |= rounded({"latency_p50_ms": quantile(times, 0.5), "latency_p95_ms": quantile(times, 0.95)}, 2)
    summary["by_category"] = {name: _figures(group) for name, group in _grouped(outcomes, "category").items()}
    return summary | {name: _figures(group) for name, group in _grouped(outcomes, "half").items()}


def _figures(outcomes: Sequence[Outcome]) -> JsonObject:
    figures: JsonObject = {"questions": len(outcomes)}
    figures |= rounded({f"recall@{k}": _recall(outcomes, k) for k in CUTS})
    return figures | rounded({"ndcg@10": fmean(ndcg(one.found, one.evidence, 10) for one in outcomes)})


def _recall(outcomes: Sequence[Outcome], k: int) -> float:
    return fmean(evidence_recall(one.found, one.evidence, k) for one in outcomes)


def _grouped(outcomes: Sequence[Outcome], by: str) -> dict[str, list[Outcome]]:
    groups: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        groups[outcome.category if by == "category" else outcome.half].append(outcome)
    return dict(sorted(groups.items()))


def _tables(outcomes: Mapping[str, Sequence[Outcome]]) -> tuple[Table, ...]:
    rows: list[tuple[Cell, ...]] = []
    for name, found in outcomes.items():
        for part, group in ({"all": list(found)} | _grouped(found, "half")).items():
            times = [one.milliseconds for one in group]
            gain = fmean(ndcg(one.found, one.evidence, 10) for one in group)
            recalls = (_recall(group, k) for k in CUTS)
            rows.append((f"{name}, {part}", len(group), *recalls, gain, quantile(times, 0.5), quantile(times, 0.95)))
    per_category: list[tuple[Cell, ...]] = []
    for name in _grouped(next(iter(outcomes.values()), []), "category"):
        groups = [_grouped(found, "category")[name] for found in outcomes.values()]
        per_category.append((name, len(groups[0]), *(_recall(group, 10) for group in groups)))
    columns = ("", "questions", *(f"recall@{k}" for k in CUTS), "nDCG@10", "p50 ms", "p95 ms")
    return (
        Table("Evidence recall", columns, tuple(rows)),
        Table("Evidence recall@10 by category", ("category", "questions", *outcomes), tuple(per_category)),
    )
