"""Windows, requests and models for the pipeline's tests. The models are small, deterministic and real implementations of ports."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID

from coatcheck.compaction.navigation import HandoffIdentity
from coatcheck.compaction.planner import PlanRequest
from coatcheck.compaction.policy import Policy
from coatcheck.compaction.policy_document import shipped
from coatcheck.domain.budgets import Budget
from coatcheck.domain.canonical import JsonObject, JsonValue, decode, to_text
from coatcheck.domain.entries import Entry
from coatcheck.domain.errors import StageUnavailable
from coatcheck.domain.messages import WindowFormat
from coatcheck.domain.placeholders import PlaceholderKeys
from coatcheck.domain.plans import Plan
from coatcheck.domain.routes import Entailment, Route, RouteScore
from coatcheck.domain.runs import HandoffLine
from coatcheck.formats import get

NOW = datetime(2026, 11, 29, 20, 15, tzinfo=UTC)
KEYS = PlaceholderKeys(b"t" * 32, b"s" * 32)
SESSION_ID = UUID("6f0c1111-2222-4333-8444-555566667777")
LARGE = 5 * 1024 * 1024


def manifest(number: int = 1) -> UUID:
    return UUID(int=0x019A_0000_0000_7000_8000_0000_0000_0000 + number)


def identity(number: int = 1, name: str = "checkout-bot/42", public_url: str | None = None) -> HandoffIdentity:
    return HandoffIdentity(manifest(number), SESSION_ID, name, NOW, public_url)


def request(
    messages: Sequence[JsonValue],
    *,
    wire: WindowFormat = "openai-chat",
    system: JsonValue = None,
    times: Sequence[datetime | None] | None = None,
    max_handoff_chars: int = 1_900,
    focus: str | None = None,
    number: int = 1,
    known_handoffs: Mapping[str, UUID] | None = None,
    earlier_lines: Sequence[HandoffLine] = (),
    max_message_bytes: int = LARGE,
    budget: Budget | None = None,
) -> PlanRequest:
    return PlanRequest(
        wire=get(wire),
        messages=messages,
        system=system,
        times=times,
        received_at=NOW,
        max_handoff_chars=max_handoff_chars,
        focus=focus,
        identity=identity(number),
        known_handoffs=known_handoffs or {},
        keys=KEYS,
        max_message_bytes=max_message_bytes,
        earlier_lines=earlier_lines,
        budget=budget or Budget.of(UUID(int=1), 60),
    )


# --- messages


def user(text: str) -> JsonObject:
    return {"role": "user", "content": text}


def assistant(text: str) -> JsonObject:
    return {"role": "assistant", "content": text}


def call(call_id: str, name: str = "bash", arguments: JsonValue = None, text: str | None = None) -> JsonObject:
    function: JsonObject = {"name": name, "arguments": to_text(arguments if arguments is not None else {"command": "ls"})}
    return {"role": "assistant", "content": text, "tool_calls": [{"id": call_id, "type": "function", "function": function}]}


def result(call_id: str, text: str) -> JsonObject:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def prose(sentences: int = 40) -> str:
    """Plain English that holds no evidence of any kind, no two sentences alike."""
    things = ("river", "garden", "market", "teacher", "window", "story", "winter", "kitchen", "painter", "harbour")
    doings = ("follows", "remembers", "describes", "surrounds", "welcomes", "reflects", "carries", "softens")
    return " ".join(
        f"The {things[number % 10]} slowly {doings[number % 8]} the {things[(number * 7 + number // 10 + 3) % 10]} again."
        for number in range(sentences)
    )


# --- reading a plan


def text_of(plan: Plan) -> Callable[[Entry], str | None]:
    texts = {segment.sha256: decode(segment.raw) for segment in plan.segments}
    texts |= {blob.sha256: decode(blob.raw) for blob in plan.blobs}
    return lambda entry: texts.get(entry.segment_sha256 or entry.blob_sha256 or "")


def quoted_lines(plan: Plan) -> list[str]:
    return [line.text for line in plan.handoff.lines]


# --- models


def dropping(max_chars: int = 400) -> Policy:
    """The shipped policy with DROP switched on."""
    policy = shipped()
    return dataclasses.replace(policy, drop=dataclasses.replace(policy.drop, enabled=True, max_chars=max_chars))


def scores(wanted: RouteScore, policy: Policy | None = None) -> dict[str, float]:
    """A distribution over the policy's labels whose opinion is the one that is wanted."""
    labels = (policy or shipped()).labels.values()
    return {label.text: wanted.score if label.route is wanted.route else wanted.score - wanted.margin for label in labels}


@dataclass
class TableRouter:
    """Routes by what a text contains; everything else is kept."""

    rules: Mapping[str, RouteScore]
    policy: Policy = field(default_factory=shipped)
    revision: str = "table-router/1"
    seen: list[str] = field(default_factory=list)

    def route(self, texts: Sequence[str], labels: Sequence[str], budget: Budget) -> list[Mapping[str, float]]:
        self.seen += texts
        keep = RouteScore(Route.KEEP, 0.99, 0.98)
        return [scores(next((score for word, score in self.rules.items() if word in text), keep), self.policy) for text in texts]


@dataclass
class WordDropper:
    """Leaves words out, as LLMLingua does."""

    words: tuple[str, ...]
    revision: str = "word-dropper/1"

    def compress(self, texts: Sequence[str], rate: float, budget: Budget) -> list[str]:
        return [" ".join(word for word in text.split() if word.strip(".,").lower() not in self.words) for text in texts]


@dataclass
class Replies:
    """A compressor or summariser that answers what it was told to."""

    answer: str
    revision: str = "replies/1"

    def compress(self, texts: Sequence[str], rate: float, budget: Budget) -> list[str]:
        return [self.answer] * len(texts)

    def summarise(self, texts: Sequence[str], max_chars: int, budget: Budget) -> str:
        return self.answer


@dataclass
class OverlapGate:
    """Entails what consists of the premise's own words."""

    margin: float = 0.9
    revision: str = "overlap-gate/1"
    asked: int = 0

    def judge(self, pairs: Sequence[tuple[str, str]], budget: Budget) -> list[Entailment]:
        self.asked += len(pairs)
        verdicts = []
        for premise, hypothesis in pairs:
            entailed = set(hypothesis.lower().replace(".", " ").split()) <= set(premise.lower().replace(".", " ").split())
            verdicts.append(Entailment(entailed, self.margin))
        return verdicts


@dataclass
class Absent:
    """Every port at once, late or out of order."""

    error: Exception = field(default_factory=lambda: StageUnavailable("overloaded"))
    revision: str = "absent/1"
    name: str = "absent"

    def route(self, texts: Sequence[str], labels: Sequence[str], budget: Budget) -> list[Mapping[str, float]]:
        raise self.error

    def compress(self, texts: Sequence[str], rate: float, budget: Budget) -> list[str]:
        raise self.error

    def judge(self, pairs: Sequence[tuple[str, str]], budget: Budget) -> list[Entailment]:
        raise self.error

    def summarise(self, texts: Sequence[str], max_chars: int, budget: Budget) -> str:
        raise self.error

    def count(self, texts: Sequence[str]) -> int:
        raise self.error
