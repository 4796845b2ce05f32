"""``compaction``: the planner by stage against the floor, and a whole compaction against the bare encode of its texts.

The floor is the same bytes hashed and copied once. The whole compaction goes through the public route, warm; each round has a
window of its own, so that nothing is remembered from the round before, and both sides take turns in going first.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import math
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from time import perf_counter
from uuid import UUID

from benchmark.corpus import START, build, call_and_result, diagnostics_window
from benchmark.report import Cell, Picture, Report, Table, rounded
from benchmark.service import DEADLINE_S, effective, running, settings_for
from benchmark.stats import interleaved_seconds, middle
from coatcheck.compaction import pieces, protection, reading, window
from coatcheck.compaction.navigation import HandoffIdentity
from coatcheck.compaction.planner import Planner, PlanRequest
from coatcheck.compaction.redaction.redactor import Redactor
from coatcheck.domain.budgets import Budget
from coatcheck.domain.canonical import JsonObject, JsonValue, encode, sha256_hex, to_bytes
from coatcheck.domain.placeholders import PlaceholderKeys
from coatcheck.domain.ports import Embedder
from coatcheck.formats.registry import get
from coatcheck.models.registry import build_embedder
from coatcheck_client.client import AsyncCoatcheck

NAME = "compaction"
_HISTORIES = 20
"""Synthetic histories in the window that the planner's stages are timed on: about a megabyte."""
_KEYS = PlaceholderKeys(b"t" * 32, b"s" * 32)
_MAX_MESSAGE_BYTES = 5 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Stages:
    """Median seconds of each stage alone over one window; ``floor`` is the bytes hashed and copied."""

    size_bytes: int
    segments: int
    seconds: dict[str, float]

    def megabytes_per_s(self, stage: str) -> float:
        return self.size_bytes / self.seconds[stage] / 1e6

    def as_json(self) -> JsonObject:
        stages: JsonObject = {
            stage: rounded(
                {
                    "ms": seconds * 1_000,
                    "mb_per_s": self.megabytes_per_s(stage),
                    "segments_per_s": self.segments / seconds,
                    "times_floor": seconds / self.seconds["floor"],
                },
                2,
            )
            for stage, seconds in self.seconds.items()
        }
        return {"bytes": self.size_bytes, "segments": self.segments, "stages": stages}


@dataclass(frozen=True, slots=True)
class Whole:
    """Median milliseconds of a whole compaction and of the bare encode, round by round on the same texts.

    ``encode`` gives each segment's text to the embedder as it is, which cuts off what is beyond its input; ``encode_all`` gives it
    every token, in pieces of its input's size.
    """

    stages: dict[str, float]
    wall: float
    encode: float
    encode_all: float
    segments: int
    passages: int
    fewest_passages: int

    @property
    def compaction(self) -> float:
        return sum(self.stages.values())

    def as_json(self) -> JsonObject:
        return rounded(
            {f"{name}_ms": value for name, value in self.stages.items()}
            | {
                "compaction_ms": self.compaction,
                "wall_ms": self.wall,
                "encode_ms": self.encode,
                "encode_all_ms": self.encode_all,
                "ratio": self.compaction / self.encode,
                "ratio_to_encode_all": self.compaction / self.encode_all,
                "passages_ratio": self.passages / self.fewest_passages,
            },
            3,
        ) | {"segments": self.segments, "passages": self.passages, "fewest_passages": self.fewest_passages}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=7, help="of each side, interleaved (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--embedder", default="auto", help="as COATCHECK_EMBEDDER (default %(default)s)")


def run(options: argparse.Namespace) -> Report:
    """The planner alone, then whole compactions; without an embedder the second part is left out, and the report says so."""
    messages = _long_window(options.seed)
    planned = {
        "histories": measure_stages(messages, options.rounds),
        "diagnostics": measure_stages(diagnostics_window(options.seed), options.rounds),
    }
    results: JsonObject = {"planner": {name: stages.as_json() for name, stages in planned.items()}}
    tables = [_stages_table(name, stages) for name, stages in planned.items()]
    notes: list[str] = []
    settings: JsonObject = {"rounds": options.rounds}
    embedder = build_embedder(options.embedder)
    if embedder.model is None:
        notes.append(f"No whole compaction was measured: no embedder, {embedder.reason}.")
    else:
        with tempfile.TemporaryDirectory(prefix="coatcheck-compaction-") as folder:
            service_settings = settings_for(Path(folder), embedder=options.embedder)
            settings |= effective(service_settings)

            async def measured(bare: Embedder) -> Whole:
                async with running(service_settings) as service:
                    return await measure_whole(service.client, bare, options.seed, options.rounds)

            whole = asyncio.run(measured(embedder.model))
        results["whole"] = whole.as_json()
        tables.append(_whole_table(whole))
    shown = [stage for stage in planned["histories"].seconds if stage != "floor"]
    speeds = {name: [stages.megabytes_per_s(stage) for stage in shown] for name, stages in planned.items()}
    return Report(
        NAME,
        results,
        settings,
        {"seed": options.seed, "sha256": sha256_hex(to_bytes(messages)), "messages": len(messages)},
        {} if embedder.model is None else {"embedder": embedder.model.revision},
        tuple(tables),
        Picture("Planner by stage", "MB/s", tuple(shown), speeds),
        tuple(notes),
    )


def measure_stages(messages: Sequence[JsonValue], rounds: int) -> Stages:
    """Each stage alone on the same window, then the whole plan; what the stages need is worked out once, before."""
    wire, redactor, keys = get("openai-chat"), Redactor(), _KEYS
    redactor.warm()
    planner = Planner(redactor)
    request = PlanRequest(
        wire=wire, messages=messages, system=None, times=None, received_at=START, max_handoff_chars=1_900, focus=None,
        identity=HandoffIdentity(UUID(int=1), UUID(int=2), "benchmark", START), known_handoffs={}, keys=keys,
        max_message_bytes=_MAX_MESSAGE_BYTES, budget=Budget.of(UUID(int=3), 600),
    )  # fmt: skip
    checked = window.check(wire, messages, None, _MAX_MESSAGE_BYTES)
    times: list[datetime] = window.moments(None, START, len(checked.messages))
    opened = reading.read(checked, times, wire, redactor, keys, {})
    cut = pieces.cut(opened)
    raws = [encode(piece.text) for piece in cut]

    sides: dict[str, Callable[[], object]] = {
        "floor": lambda: [(hashlib.sha256(raw).digest(), bytes(bytearray(raw))) for raw in raws],
        "window checks": lambda: window.check(wire, messages, None, _MAX_MESSAGE_BYTES),
        "redaction": lambda: redactor.redact_messages(
            wire, checked.messages, keys, at=("window", "messages"), readings=checked.readings
        ),
        "redaction and parts": lambda: reading.read(checked, times, wire, redactor, keys, {}),
        "segmentation": lambda: pieces.cut(opened),
        "protection": lambda: [protection.protect(piece.part.role, piece.part.kind, piece.text) for piece in cut],
        "whole plan": lambda: planner.plan(request),
    }
    seconds = interleaved_seconds(sides, rounds)
    return Stages(sum(map(len, raws)), len(set(raws)), {name: middle(values) for name, values in seconds.items()})


async def measure_whole(service: AsyncCoatcheck, bare: Embedder, seed: int, rounds: int) -> Whole:
    """Round 0 warms both sides up and is not counted."""
    stages: dict[str, list[float]] = {"plan": [], "persist": [], "project": []}
    wall: list[float] = []
    encodes: list[float] = []
    encodes_all: list[float] = []
    redactor = Redactor()
    for number in range(rounds + 1):
        messages = diagnostics_window(seed + number)
        texts = segment_texts(messages, redactor)
        if number % 2:
            encode_ms, encode_all_ms, fewest = await asyncio.to_thread(_encode_ms, bare, texts)
        start = perf_counter()
        answer = await service.compact(messages, session=f"round-{number}", format="openai-chat", deadline_s=DEADLINE_S)
        wall_ms = (perf_counter() - start) * 1_000
        if number % 2 == 0:
            encode_ms, encode_all_ms, fewest = await asyncio.to_thread(_encode_ms, bare, texts)
        if number:
            wall.append(wall_ms)
            encodes.append(encode_ms)
            encodes_all.append(encode_all_ms)
            for name, values in stages.items():
                values.append(answer.timings_ms[name])
    medians = {name: middle(values) for name, values in stages.items()}
    return Whole(medians, middle(wall), middle(encodes), middle(encodes_all), answer.segments.total, answer.index.passages, fewest)


def _encode_ms(bare: Embedder, texts: Sequence[str]) -> tuple[float, float, int]:
    """Milliseconds for the texts as they are, and for all their tokens; and the fewest passages that hold all tokens."""
    offsets = bare.token_offsets(texts)
    size = bare.input_tokens
    whole = [
        text[spans[start][0] : spans[min(start + size, len(spans)) - 1][1]]
        for text, spans in zip(texts, offsets, strict=True)
        for start in range(0, len(spans), size)
    ]
    start_s = perf_counter()
    bare.embed_passages(texts)
    as_they_are = perf_counter() - start_s
    start_s = perf_counter()
    bare.embed_passages(whole)
    all_tokens = perf_counter() - start_s
    return as_they_are * 1_000, all_tokens * 1_000, sum(max(1, math.ceil(len(spans) / size)) for spans in offsets)


def segment_texts(messages: Sequence[JsonValue], redactor: Redactor) -> list[str]:
    """The texts of the segments that a compaction of this window stores, each once."""
    wire = get("openai-chat")
    checked = window.check(wire, messages, None, _MAX_MESSAGE_BYTES)
    times = window.moments(None, START, len(checked.messages))
    cut = pieces.cut(reading.read(checked, times, wire, redactor, _KEYS, {}))
    return list(dict.fromkeys(piece.text for piece in cut if piece.is_segment))


def _long_window(seed: int) -> list[JsonValue]:
    records = [record for number in range(_HISTORIES) for record in build(seed + number).records]
    return [message for number, record in enumerate(records) for message in call_and_result(number, record.tool, record.text)]


def _stages_table(name: str, stages: Stages) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (stage, seconds * 1_000, stages.megabytes_per_s(stage), int(stages.segments / seconds), seconds / stages.seconds["floor"])
        for stage, seconds in stages.seconds.items()
    ]
    title = f"Planner, {name}: {stages.size_bytes:,} bytes in {stages.segments:,} segments (medians)"
    return Table(title, ("stage", "ms", "MB/s", "segments/s", "times floor"), tuple(rows))


def _whole_table(whole: Whole) -> Table:
    rows: list[tuple[Cell, ...]] = [(name, value, value / whole.encode) for name, value in whole.stages.items()]
    rows += [
        ("plan + persist + project", whole.compaction, whole.compaction / whole.encode),
        ("request, from the client", whole.wall, whole.wall / whole.encode),
        ("bare encode of the segment texts", whole.encode, 1.0),
        ("bare encode of all their tokens", whole.encode_all, whole.encode_all / whole.encode),
    ]
    title = f"24 tool results, {whole.passages} passages, at least {whole.fewest_passages} (medians)"
    return Table(title, ("", "ms", "of the bare encode"), tuple(rows))
