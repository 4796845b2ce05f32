"""Answers from a model behind an OpenAI-compatible endpoint, at temperature zero, and how they are scored."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from time import perf_counter

import httpx
from pydantic import BaseModel

from benchmark.corpus import UNKNOWN
from benchmark.report import rounded
from benchmark.stats import bootstrap_interval, quantile
from coatcheck.domain.canonical import JsonObject

INSTRUCTION = (
    "Answer the question from the material alone. Answer with the exact value and nothing else: no sentence, no quotation marks. "
    f"A correction replaces what it corrects. If the material does not hold the value, answer {UNKNOWN}."
)
_THINKING = re.compile(r"<think>.*?</think>", re.DOTALL)
_TIMEOUT_S = 300.0


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer. ``input_tokens`` is the endpoint's own usage count; None where it gives none."""

    text: str
    input_tokens: int | None
    milliseconds: float


@dataclass(frozen=True, slots=True)
class Scored:
    """One answer with its question's key and whether it is right."""

    question: str
    answer: Answer
    correct: bool


class AnsweringModel:
    """A chat-completions endpoint. The served name is all that is known of the model behind it."""

    def __init__(self, client: httpx.AsyncClient, model: str) -> None:
        self._client = client
        self.model = model

    @classmethod
    async def connect(cls, client: httpx.AsyncClient, model: str | None) -> AnsweringModel:
        """Takes the first model that the endpoint lists where none is named. Raises httpx.HTTPError, ValueError."""
        if model is None:
            response = await client.get("models")
            listed = _Models.model_validate_json(response.raise_for_status().content).data
            if not listed:
                raise ValueError("the endpoint lists no model: name one with --model")
            model = listed[0].id
        return cls(client, model)

    async def answer(self, material: str, question: str) -> Answer:
        """Raises httpx.HTTPError, also for a refusal: a missing answer must not look like a wrong one."""
        body = {
            "model": self.model,
            "temperature": 0,
            "max_tokens": 512,
            "messages": [{"role": "system", "content": INSTRUCTION}, {"role": "user", "content": as_prompt(material, question)}],
        }
        start = perf_counter()
        response = await self._client.post("chat/completions", json=body)
        took = (perf_counter() - start) * 1_000
        completion = _Completion.model_validate_json(response.raise_for_status().content)
        text = _THINKING.sub("", completion.choices[0].message.content or "").strip()
        return Answer(text, completion.usage.prompt_tokens if completion.usage else None, took)


def open_client(endpoint: str, key: str | None) -> httpx.AsyncClient:
    """``endpoint`` is the base URL, mostly ending in /v1."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return httpx.AsyncClient(base_url=endpoint.rstrip("/") + "/", headers=headers, timeout=_TIMEOUT_S)


def as_prompt(material: str, question: str) -> str:
    """The user's message of every arm."""
    return f"Material:\n{material}\n\nQuestion: {question}"


def is_correct(answer: str, expected: str) -> bool:
    """Equal after white space, case and terminal punctuation are evened out."""
    return _evened(answer) == _evened(expected)


def summarise(scored: Sequence[Scored], seed: int) -> JsonObject:
    """Correct answers, tokens and times of one arm; the interval resamples questions, each with the mean of its repeats."""
    by_question: dict[str, list[bool]] = {}
    for one in scored:
        by_question.setdefault(one.question, []).append(one.correct)
    shares = [fmean(correct) for correct in by_question.values()]
    low, high = bootstrap_interval(shares, seed)
    summary: JsonObject = {"asked": len(scored), "correct": sum(one.correct for one in scored)}
    summary |= rounded({"accuracy": fmean(shares), "accuracy_low": low, "accuracy_high": high})
    counted = [one.answer.input_tokens for one in scored if one.answer.input_tokens is not None]
    if len(counted) == len(scored):
        summary["input_tokens"] = sum(counted)
    times = [one.answer.milliseconds for one in scored]
    summary |= rounded({"latency_p50_ms": quantile(times, 0.5), "latency_p95_ms": quantile(times, 0.95)}, 1)
    wrong: JsonObject = {one.question: one.answer.text[:200] for one in scored if not one.correct}
    return summary | {"wrong": wrong}


def _evened(text: str) -> str:
    return " ".join(text.split()).casefold().rstrip(".!?;,。 ")


class _Model(BaseModel):
    id: str


class _Models(BaseModel):
    data: list[_Model]


class _Message(BaseModel):
    content: str | None = None


class _Choice(BaseModel):
    message: _Message


class _Usage(BaseModel):
    prompt_tokens: int


class _Completion(BaseModel):
    choices: list[_Choice]
    usage: _Usage | None = None
