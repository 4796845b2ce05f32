"""Rounds of overlapping chat completions: each begins at once and ends before the next, and each answer is looked at.

An answer counts when it came within its time, with status 200, a finish reason, and a text that is not empty. What it says is not
judged.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

import httpx


@dataclass(frozen=True, slots=True)
class Load:
    """What is asked of the endpoint, and how often at once."""

    model: str
    rounds: int
    at_once: int
    max_tokens: int
    temperature: float
    limit_s: float
    """For one answer, from the first byte sent to the last one read."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One request. ``problem`` is None where the answer counts."""

    began_s: float
    ended_s: float
    finish_reason: str | None
    chars: int
    problem: str | None


@dataclass(frozen=True, slots=True)
class Round:
    """One round's answers."""

    number: int
    answers: tuple[Answer, ...]

    @property
    def in_flight(self) -> int:
        """How many requests were under way at one moment, at most."""
        moments = sorted([(one.began_s, 1) for one in self.answers] + [(one.ended_s, -1) for one in self.answers])
        most = now = 0
        for _, change in moments:
            now += change
            most = max(most, now)
        return most

    @property
    def problems(self) -> tuple[str, ...]:
        return tuple(one.problem for one in self.answers if one.problem is not None)


async def run_round(client: httpx.AsyncClient, endpoint: str, load: Load, number: int) -> Round:
    """All of a round's requests at once."""
    asked = (_ask(client, endpoint, load, _prompt(number, which)) for which in range(load.at_once))
    return Round(number, tuple(await asyncio.gather(*asked)))


async def first_model(client: httpx.AsyncClient, endpoint: str) -> str:
    """The first model that the endpoint serves. Raises httpx.HTTPError, ValueError or LookupError where it names none."""
    answer = await client.get(f"{endpoint}/models")
    answer.raise_for_status()
    return str(answer.json()["data"][0]["id"])


def _prompt(number: int, which: int) -> str:
    # Numbered ahead of all else, so that no two share a prefix that a cache would answer for.
    return f"{number}.{which}. Write an essay of about 300 words on distributed systems."


async def _ask(client: httpx.AsyncClient, endpoint: str, load: Load, prompt: str) -> Answer:
    body = {
        "model": load.model,
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": load.max_tokens,
        "temperature": load.temperature,
    }
    began = time.monotonic()
    reason, chars, problem = None, 0, None
    try:
        async with asyncio.timeout(load.limit_s):
            answer = await client.post(f"{endpoint}/chat/completions", json=body, timeout=load.limit_s)
        reason, chars, problem = _judged(answer)
    except (TimeoutError, httpx.TimeoutException):
        problem = f"no whole answer within {load.limit_s:g} s"
    except httpx.HTTPError as error:
        problem = f"the connection failed: {type(error).__name__}"
    return Answer(began, time.monotonic(), reason, chars, problem)


def _judged(answer: httpx.Response) -> tuple[str | None, int, str | None]:
    """Finish reason, characters, and what is wrong with it."""
    if answer.status_code != httpx.codes.OK:
        return None, 0, f"status {answer.status_code}"
    try:
        [choice, *_] = answer.json()["choices"]
        reason, text = choice.get("finish_reason"), choice["message"].get("content")
    except (ValueError, LookupError, TypeError, AttributeError):
        return None, 0, "no chat completion in the answer"
    chars = len(text.strip()) if isinstance(text, str) else 0
    if not isinstance(reason, str):
        return None, chars, "no finish reason"
    return reason, chars, None if chars else f"an empty answer (finish reason {reason})"
