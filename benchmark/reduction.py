"""``reduction``: how far a compressor shortens the texts of transcripts, and what of that the fact guard lets through.

The texts are the segments of users and assistants that no rule protects: what a router may send to a compressor. The entailment
gate is not asked. Both sides have the same model; one chooses among the words that the guard lets go, the other among all.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from uuid import UUID

from benchmark.corpus import START
from benchmark.report import Picture, Report, Table
from coatcheck.compaction import expendable, pieces, protection, reading, window
from coatcheck.compaction.expendable import Word
from coatcheck.compaction.fact_guard import compare
from coatcheck.compaction.policy_document import shipped
from coatcheck.compaction.redaction.redactor import Redactor
from coatcheck.domain.budgets import Budget
from coatcheck.domain.canonical import JsonObject, sha256_hex
from coatcheck.domain.messages import PartKind
from coatcheck.domain.placeholders import PlaceholderKeys
from coatcheck.domain.ports import Compressor
from coatcheck.formats.registry import get
from coatcheck_client.transcripts import read_transcript

NAME = "reduction"
_KEYS = PlaceholderKeys(b"t" * 32, b"s" * 32)
_MAX_MESSAGE_BYTES = 32 * 1024 * 1024
_LIMIT_S = 3_600


@dataclass(frozen=True, slots=True)
class Shortened:
    """What became of the texts. ``accepted`` are proposals that are shorter and keep every fact; ``saved_chars`` is theirs."""

    texts: int
    chars: int
    proposed: int
    proposed_chars: int
    accepted: int
    saved_chars: int
    refusals: dict[str, int]
    cpu_s: float

    def as_json(self) -> JsonObject:
        return {
            "texts": self.texts,
            "chars": self.chars,
            "proposed": self.proposed,
            "proposed_chars": self.proposed_chars,
            "accepted": self.accepted,
            "accepted_share": round(self.accepted / self.texts, 3),
            "saved_chars": self.saved_chars,
            "saved_share": round(self.saved_chars / self.chars, 3),
            "refusals": dict(self.refusals),
            "chars_per_cpu_s": round(self.chars / self.cpu_s),
        }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", type=Path, required=True, help="folder of a checkpoint of LLMLingua-2's kind")
    parser.add_argument("--data", type=Path, nargs="+", required=True, help="transcripts; they stay outside the repository")
    parser.add_argument("--rate", type=float, default=shipped().reduction_rate, help="of the tokens stay (default %(default)s)")


def run(options: argparse.Namespace) -> Report:
    """Needs coatcheck[models]."""
    from coatcheck.models.llmlingua import LlmlinguaCompressor

    data: Sequence[Path] = options.data
    texts = texts_of(data)
    sides: dict[str, Callable[[str], list[Word]]] = {"what the guard lets go": expendable.words, "any word": any_word}
    found = {
        name: measure(LlmlinguaCompressor(options.model, choice=choice), texts, options.rate) for name, choice in sides.items()
    }
    columns = ("chosen among", "texts", "shortened", "accepted", "share", "characters saved", "of all")
    rows = tuple(
        (name, one.texts, one.proposed, one.accepted, one.accepted / one.texts, one.saved_chars, one.saved_chars / one.chars)
        for name, one in found.items()
    )
    return Report(
        NAME,
        {name: one.as_json() for name, one in found.items()},
        {"rate": options.rate},
        {"sha256": sha256_hex(b"".join(path.read_bytes() for path in data)), "files": len(data)},
        {"compressor": options.model.name},
        (Table(f"{len(texts)} segments that no rule protects, {sum(map(len, texts)):,} characters", columns, rows),),
        Picture("Accepted", "share", tuple(found), {"accepted": [one.accepted / one.texts for one in found.values()]}),
    )


def measure(compressor: Compressor, texts: Sequence[str], rate: float) -> Shortened:
    """The compressor's proposals for these texts, held against the fact guard."""
    started = process_time()
    proposals = compressor.compress(texts, rate, Budget.of(UUID(int=1), _LIMIT_S))
    cpu_s = process_time() - started
    shorter = [(text, proposal) for text, proposal in zip(texts, proposals, strict=True) if 0 < len(proposal.strip()) < len(text)]
    verdicts = [compare(text, proposal) for text, proposal in shorter]
    kept = [pair for pair, verdict in zip(shorter, verdicts, strict=True) if verdict.kept]
    return Shortened(
        texts=len(texts),
        chars=sum(map(len, texts)),
        proposed=len(shorter),
        proposed_chars=sum(map(len, proposals)),
        accepted=len(kept),
        saved_chars=sum(len(text) - len(proposal) for text, proposal in kept),
        refusals=dict(Counter(str(verdict.faults[0]) for verdict in verdicts if not verdict.kept).most_common()),
        cpu_s=cpu_s,
    )


def any_word(text: str) -> list[Word]:
    """The words of a text, all of which may go."""
    return [Word(word.start, word.end, True) for word in expendable.words(text)]


def texts_of(paths: Sequence[Path]) -> list[str]:
    """The segments of users and assistants in these transcripts that no rule protects, each once."""
    redactor, policy = Redactor(), shipped()
    found: list[str] = []
    for path in paths:
        transcript = read_transcript(path)
        wire = get(transcript.format)
        checked = window.check(wire, transcript.messages, transcript.system, _MAX_MESSAGE_BYTES)
        times = window.moments(None, START, len(checked.messages))
        found += [
            piece.text
            for piece in pieces.cut(reading.read(checked, times, wire, redactor, _KEYS, {}))
            if piece.is_segment
            and piece.part.kind is PartKind.TEXT
            and protection.protect(piece.part.role, piece.part.kind, piece.text, policy.protections) is None
        ]
    return list(dict.fromkeys(found))
