"""The synthetic history of the comparison: 49 tool results with their calls, twelve questions, all from one seed.

The make-up is that of "Smaller Context, Recoverable History": operational facts, one explicit later correction, 36 distracting
records, about 50,000 characters, every record in the tool role. The texts stand in corpora/operations.yaml.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from string import Template

import yaml
from pydantic import BaseModel, ConfigDict

from coatcheck.domain.canonical import JsonObject, JsonValue, sha256_hex, to_bytes, to_text

UNKNOWN = "UNKNOWN"
"""The right answer where the designated record says that nobody wrote the value down."""
TEXT_CHARS = 50_000
"""About how long the tool results are together."""
START = datetime(2026, 9, 1, 8, 0, tzinfo=UTC)

_FILE = Path(__file__).parent / "corpora" / "operations.yaml"
_LONGEST_RECORD = 3_400
_BLANK = re.compile(r"\{(?:(?P<low>\d+)-(?P<high>\d+)|(?P<hex64>hex64)|(?P<choices>[^{}|\n]+(?:\|[^{}|\n]+)+))\}")


@dataclass(frozen=True, slots=True)
class Record:
    """One tool result of the history: which tool answered, and what."""

    key: str
    tool: str
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question with the key of the one record that answers it. ``value`` None: UNKNOWN is right."""

    key: str
    text: str
    value: str | None
    evidence: str

    @property
    def answer(self) -> str:
        return UNKNOWN if self.value is None else self.value


@dataclass(frozen=True, slots=True)
class Corpus:
    """The records in the order of the history, and the questions about them."""

    seed: int
    records: tuple[Record, ...]
    questions: tuple[Question, ...]

    @property
    def text_chars(self) -> int:
        """Code points of the tool results alone."""
        return sum(len(record.text) for record in self.records)

    @property
    def sha256(self) -> str:
        """Of the messages and the questions with their answers, as canonical JSON."""
        asked: list[JsonValue] = [[q.text, q.answer, q.evidence] for q in self.questions]
        return sha256_hex(to_bytes([self.messages(), asked]))

    def messages(self) -> list[JsonValue]:
        """OpenAI chat messages: each tool result behind the assistant's call for it."""
        return [
            message for number, record in enumerate(self.records) for message in call_and_result(number, record.tool, record.text)
        ]

    def times(self) -> list[datetime]:
        """One a message, a minute apart."""
        return [START + timedelta(minutes=position) for position in range(2 * len(self.records))]

    def as_history(self) -> str:
        """The whole history as one text, for the arm that carries all of it."""
        return "\n".join(f"[{record.tool} {_arguments(number)}]\n{record.text}" for number, record in enumerate(self.records))


def build(seed: int) -> Corpus:
    """49 records: 13 with facts at seeded places among 36 others; the correction stands after what it corrects."""
    source = _Source.load()
    draw = random.Random(f"values:{seed}")
    values = {name: _filled(template, draw) for name, template in source.values.items()}
    facts = [Record(fact.key, fact.tool, Template(fact.text).substitute(values)) for fact in source.facts]
    records = _lengthened([*facts, *_distractors(source, seed)], source.tail, seed)
    random.Random(f"order:{seed}").shuffle(records)
    earlier, later = (
        next(place for place, record in enumerate(records) if record.key == key) for key in ("superseded", "revision")
    )
    if earlier > later:
        records[earlier], records[later] = records[later], records[earlier]
    questions = (Question(q.key, q.text, values[q.value] if q.value else None, q.evidence) for q in source.questions)
    return Corpus(seed, tuple(records), tuple(questions))


def diagnostics_window(seed: int, results: int = 24, chars: int = 56_443) -> list[JsonValue]:
    """A window as in the article's planner test: tool results with an exact endpoint, port, command and repeated prose."""
    source = _Source.load()
    draw = random.Random(f"diagnostics:{seed}")
    messages: list[JsonValue] = []
    for number in range(results):
        address = _filled("10.{16-249}.{16-249}.{16-249}:{1024-64999}", draw)
        head = f"endpoint https://{address}/health\ncommand: probectl check --target {address} --attempts {draw.randrange(2, 9)}\n"
        wanted = chars * (number + 1) // results - chars * number // results
        text = head
        while len(text) < wanted:
            text += _filled(draw.choice(source.diagnostics), draw)
        messages += call_and_result(number, "probe", text[:wanted])
    return messages


def call_and_result(number: int, tool: str, text: str) -> tuple[JsonObject, JsonObject]:
    """The assistant's call and the tool's answer, as OpenAI chat writes them."""
    call_id = f"call_{number:03d}"
    call: JsonObject = {"id": call_id, "type": "function", "function": {"name": tool, "arguments": _arguments(number)}}
    return (
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": text},
    )


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Fact(_Shape):
    key: str
    tool: str
    text: str


class _Asked(_Shape):
    key: str
    text: str
    evidence: str
    value: str | None


class _Family(_Shape):
    tool: str
    text: str
    rows: list[dict[str, str]]


class _Source(_Shape):
    """The file's shape."""

    values: dict[str, str]
    facts: list[_Fact]
    questions: list[_Asked]
    distractors: list[_Family]
    mentions: list[str]
    tail: list[str]
    diagnostics: list[str]

    @classmethod
    def load(cls) -> _Source:
        return cls.model_validate(yaml.safe_load(_FILE.read_text(encoding="utf-8")))


def _distractors(source: _Source, seed: int) -> list[Record]:
    draw = random.Random(f"distractors:{seed}")
    rows = [(family, row) for family in source.distractors for row in family.rows]
    mentions = dict(zip(draw.sample(range(len(rows)), len(source.mentions)), source.mentions, strict=True))
    records: list[Record] = []
    for number, (family, row) in enumerate(rows):
        text = _filled(Template(family.text).substitute(row), draw)
        mention = f"{mentions[number]}\n" if number in mentions else ""
        records.append(Record(f"distractor-{number}", family.tool, text + mention))
    return records


def _lengthened(records: Sequence[Record], tail: Sequence[str], seed: int) -> list[Record]:
    """The records with lines below them, as tools add them: most are short, a few long, together about TEXT_CHARS."""
    draw = random.Random(f"tails:{seed}")
    weights = [draw.lognormvariate(0, 0.45) for _ in records]
    scale = TEXT_CHARS / sum(weights)
    longer: list[Record] = []
    for record, weight in zip(records, weights, strict=True):
        text = record.text
        while len(text) < min(_LONGEST_RECORD, weight * scale) - 40:
            text += _filled(draw.choice(tail), draw) + "\n"
        longer.append(Record(record.key, record.tool, text))
    return longer


def _filled(template: str, draw: random.Random) -> str:
    def fill(blank: re.Match[str]) -> str:
        groups: Mapping[str, str | None] = blank.groupdict()
        if groups["low"] is not None and groups["high"] is not None:
            return str(draw.randint(int(groups["low"]), int(groups["high"])))
        return draw.choice(groups["choices"].split("|")) if groups["choices"] is not None else f"{draw.getrandbits(256):064x}"

    return _BLANK.sub(fill, template)


def _arguments(number: int) -> str:
    return to_text({"record": number})
