"""``qa``: the synthetic comparison. Full history, the handoff alone, handoff and recall, handoff and exact texts by hash.

The measures without a model are taken always: whether the designated record is among what an arm hands to a model, whether the
exact value stands there, and how many characters it costs. With ``--endpoint`` a model answers, and answers are scored.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Literal

from benchmark.answers import INSTRUCTION, AnsweringModel, Scored, as_prompt, is_correct, open_client, summarise
from benchmark.corpus import Corpus, Question, build
from benchmark.report import Cell, Picture, Report, Table, rounded
from benchmark.service import DEADLINE_S, effective, running, settings_for
from benchmark.stats import quantile
from coatcheck.domain.canonical import JsonObject, JsonValue, sha256_of
from coatcheck_client.client import AsyncCoatcheck
from coatcheck_client.wire import CompactionResponse

NAME = "qa"
ARMS = ("full", "handoff", "recall", "verbatim")
TOP_K = 5
SESSION = "operations"
_STATED_PASSWORD = re.compile(r"(?i)\bpass(?:word|phrase|wd)\b\s*(?:is|was|=|:)\s*(?!never\b|not\b|kept\b|unknown\b)\S")


@dataclass(frozen=True, slots=True)
class Material:
    """What one arm hands to the model for one question. ``searched`` is the part in which evidence and value are looked for."""

    arm: str
    question: Question
    text: str
    searched: str
    evidence_present: bool
    evidence_rank: int | None = None
    """The designated record's place among the recalled, from 1; None where nothing was recalled or it was not found."""
    recall_ms: float | None = None

    @property
    def input_chars(self) -> int:
        """Of the whole prompt: instruction, material and question."""
        return len(INSTRUCTION) + len(as_prompt(self.text, self.question.text))

    @property
    def value_present(self) -> bool:
        """The exact value; for the question that nobody can answer: any password at all."""
        if self.question.value is None:
            return _STATED_PASSWORD.search(self.searched) is not None
        return self.question.value in self.searched


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seed", type=int, default=1, help="of the corpus (default %(default)s)")
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=list(ARMS))
    parser.add_argument("--rerank", choices=("auto", "on", "off"), default="off")
    parser.add_argument("--embedder", default="auto", help="as COATCHECK_EMBEDDER (default %(default)s)")
    parser.add_argument("--endpoint", help="base URL of an OpenAI-compatible server; without it no question is answered")
    parser.add_argument("--model", help="the served model's name (default: the first that the endpoint lists)")
    parser.add_argument("--key-file", type=Path, help="file with the endpoint's key")
    parser.add_argument("--repeat", type=int, default=1, help="ask each question so many times (default %(default)s)")


def run(options: argparse.Namespace) -> Report:
    """Stores the corpus, recalls for every question, and asks the model where there is one."""
    return asyncio.run(_run(options))


async def _run(options: argparse.Namespace) -> Report:
    corpus = build(options.seed)
    with tempfile.TemporaryDirectory(prefix="coatcheck-qa-") as folder:
        settings = settings_for(Path(folder), embedder=options.embedder)
        async with running(settings) as service:
            client, revisions = service.client, service.revisions
            compacted = await client.compact(
                corpus.messages(), session=SESSION, format="openai-chat", times=corpus.times(), deadline_s=DEADLINE_S
            )
            results, notes = await check_retained(client, corpus, compacted)
            materials = await gather(client, corpus, compacted, options.rerank)
    materials = [material for material in materials if material.arm in options.arms]
    scored: dict[str, list[Scored]] = {}
    if options.endpoint:
        scored, model = await _answers(options, materials)
        revisions = revisions | {"answering-model": f"{model} (the name it is served under)"}
    else:
        notes.append("No --endpoint: the retrieval part ran alone, no question was answered.")
    results["arms"] = {arm: _summary([m for m in materials if m.arm == arm], scored.get(arm), corpus.seed) for arm in options.arms}
    chars = {arm: sum(m.input_chars for m in materials if m.arm == arm) for arm in options.arms}
    if "full" in chars and "recall" in chars:
        results |= rounded({"recall_input_share": chars["recall"] / chars["full"]})
    return Report(
        NAME,
        results,
        effective(settings) | {"top_k": TOP_K, "rerank": options.rerank, "repeat": options.repeat},
        {"seed": corpus.seed, "sha256": corpus.sha256, "records": len(corpus.records), "text_chars": corpus.text_chars},
        revisions,
        (_arms_table(materials, scored), _questions_table(materials)),
        Picture("Input for twelve questions", "characters", tuple(chars), {"input": list(chars.values())}),
        tuple(notes),
    )


async def check_retained(service: AsyncCoatcheck, corpus: Corpus, compacted: CompactionResponse) -> tuple[JsonObject, list[str]]:
    """How many of the tool results come back whole, by manifest and by hash, and what the compaction counted."""
    entries = await service.entries(compacted.manifest_id, text=True)
    results_at = {entry.message_index: entry for entry in entries if entry.role == "tool"}
    by_manifest = by_hash = 0
    for number, record in enumerate(corpus.records):
        entry = results_at.get(2 * number + 1)
        if entry is None or entry.sha256 is None:
            continue
        by_manifest += entry.text == record.text and entry.sha256 == sha256_of(record.text)
        by_hash += (await service.segment(entry.sha256)).text == record.text
    notes = [] if compacted.redactions.total == 0 else [f"Redaction changed the corpus: {compacted.redactions.by_kind}."]
    retained: JsonObject = {
        "segments": len({entry.sha256 for entry in entries if entry.role == "tool" and entry.sha256}),
        "by_hash": by_hash,
        "by_manifest": by_manifest,
        "window_chars": compacted.window.chars,
        "handoff_chars": compacted.handoff.chars,
        "passages": compacted.index.passages,
        "routes": {"keep": compacted.segments.keep, "compress": compacted.segments.compress, "drop": compacted.segments.drop},
        "compaction_ms": dict[str, JsonValue](compacted.timings_ms),
    }
    return retained, notes


async def gather(
    service: AsyncCoatcheck, corpus: Corpus, compacted: CompactionResponse, rerank: Literal["auto", "on", "off"]
) -> list[Material]:
    """What every arm hands over for every question; the question itself is the query, and nothing of the answer is used."""
    texts = {record.key: record.text for record in corpus.records}
    handoff, history = compacted.handoff.text, corpus.as_history()
    materials: list[Material] = []
    for question in corpus.questions:
        evidence = texts[question.evidence]
        start = perf_counter()
        answer = await service.recall(question.text, session=compacted.session_id, top_k=TOP_K, rerank=rerank)
        took = (perf_counter() - start) * 1_000
        hashes = [hit.sha256 for hit in answer.hits]
        rank = hashes.index(sha256_of(evidence)) + 1 if sha256_of(evidence) in hashes else None
        exact = "\n\n".join([(await service.segment(sha)).text for sha in hashes])
        materials += (
            Material("full", question, history, history, evidence in history),
            Material("handoff", question, handoff, handoff, evidence in handoff),
            Material("recall", question, f"{handoff}\n\n{answer.rendered}", answer.rendered, rank is not None, rank, took),
            Material("verbatim", question, f"{handoff}\n\n{exact}", exact, evidence in exact, rank, took),
        )
    return materials


async def _answers(options: argparse.Namespace, materials: Sequence[Material]) -> tuple[dict[str, list[Scored]], str]:
    """Arms interleaved question by question, so that a slow or warm server weighs on all alike."""
    scored: dict[str, list[Scored]] = {}
    key = options.key_file.read_text(encoding="utf-8").strip() if options.key_file else None
    async with open_client(options.endpoint, key) as client:
        model = await AnsweringModel.connect(client, options.model)
        for _ in range(options.repeat):
            for material in materials:
                answer = await model.answer(material.text, material.question.text)
                correct = is_correct(answer.text, material.question.answer)
                scored.setdefault(material.arm, []).append(Scored(material.question.key, answer, correct))
    return scored, model.model


def _summary(materials: Sequence[Material], scored: Sequence[Scored] | None, seed: int) -> JsonObject:
    summary: JsonObject = {
        "input_chars": sum(material.input_chars for material in materials),
        "evidence_top5": sum(material.evidence_present for material in materials),
        "value_present": sum(material.value_present for material in materials if material.question.value is not None),
        "unknown_value_present": any(material.value_present for material in materials if material.question.value is None),
    }
    ranks: JsonObject = {m.question.key: m.evidence_rank for m in materials if m.evidence_rank is not None}
    times = [material.recall_ms for material in materials if material.recall_ms is not None]
    if times:
        summary["evidence_rank"] = ranks
        summary |= rounded({"recall_p50_ms": quantile(times, 0.5), "recall_p95_ms": quantile(times, 0.95)}, 1)
    if scored:
        summary["answers"] = summarise(scored, seed)
    return summary


def _arms_table(materials: Sequence[Material], scored: dict[str, list[Scored]]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for arm in dict.fromkeys(material.arm for material in materials):
        own, answers = [m for m in materials if m.arm == arm], scored.get(arm, [])
        known = [m for m in own if m.question.value is not None]
        tokens = [one.answer.input_tokens for one in answers if one.answer.input_tokens is not None]
        rows.append(
            (
                arm,
                f"{sum(one.correct for one in answers)}/{len(answers)}" if answers else None,
                sum(tokens) if answers and len(tokens) == len(answers) else None,
                sum(m.input_chars for m in own),
                f"{sum(m.evidence_present for m in own)}/{len(own)}",
                f"{sum(m.value_present for m in known)}/{len(known)}",
                "stated" if any(m.value_present for m in own if m.question.value is None) else "absent",
            )
        )
    columns = ("arm", "correct", "input tokens", "input chars", "evidence in top 5", "value present", "unknown value")
    return Table("Twelve questions", columns, tuple(rows))


def _questions_table(materials: Sequence[Material]) -> Table:
    recalled = [material for material in materials if material.arm == "recall"]
    rows = tuple((m.question.key, m.question.text, m.evidence_rank, "yes" if m.value_present else "no") for m in recalled)
    return Table("Recall, question by question", ("question", "asked", "rank of the evidence", "value present"), rows)
