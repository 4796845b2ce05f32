"""Rounds of overlapping chat completions: each begins at once and ends before the next, and each answer is looked at.

An answer counts when it came within its time, with status 200, a finish reason, and a text that is not empty. What it says is not
judged. None is read beyond ``MOST_BYTES``: an endpoint that never ends its answer is to end as a finding, not this process.
"""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass

import httpx

MOST_BYTES = 16 * 1024 * 1024
"""Of one answer, unpacked; 700 tokens are some kilobytes."""
MODELS_LIMIT_S = 10.0
_SHOWN = 40


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
    """The first model that the endpoint serves. Raises httpx.HTTPError, TimeoutError or ValueError where it names none."""
    async with asyncio.timeout(MODELS_LIMIT_S), client.stream("GET", f"{endpoint}/models") as answer:
        answer.raise_for_status()
        read = await _body(answer)
    try:
        return str(json.loads(read or b"")["data"][0]["id"])
    except (LookupError, TypeError, RecursionError) as error:
        raise ValueError("no model is named") from error


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
            status, answer = await _posted(client, f"{endpoint}/chat/completions", body, load.limit_s)
        reason, chars, problem = _judged(status, answer)
    except (TimeoutError, httpx.TimeoutException):
        problem = f"no whole answer within {load.limit_s:g} s"
    except httpx.HTTPError as error:
        problem = f"the connection failed: {type(error).__name__}"
    return Answer(began, time.monotonic(), reason, chars, problem)


async def _posted(client: httpx.AsyncClient, address: str, body: object, limit_s: float) -> tuple[int, bytes | None]:
    """Status and body; None for a body that is too long."""
    async with client.stream("POST", address, json=body, timeout=limit_s) as answer:
        return answer.status_code, await _body(answer)


async def _body(answer: httpx.Response) -> bytes | None:
    read = bytearray()
    async for piece in answer.aiter_bytes():
        read += piece
        if len(read) > MOST_BYTES:
            return None
    return bytes(read)


def _judged(status: int, answer: bytes | None) -> tuple[str | None, int, str | None]:
    """Finish reason, characters, and what is wrong with it."""
    if status != httpx.codes.OK:
        return None, 0, f"status {status}"
    if answer is None:
        return None, 0, f"an answer of more than {MOST_BYTES:,} bytes"
    try:
        [choice, *_] = json.loads(answer)["choices"]
        reason, text = choice.get("finish_reason"), choice["message"].get("content")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None, 0, "no chat completion in the answer"
    chars = len(text.strip()) if isinstance(text, str) else 0
    if not isinstance(reason, str):
        return None, chars, "no finish reason"
    # The server's words, for a terminal: short, and without what moves its cursor.
    reason = "".join(char if char.isprintable() else "?" for char in reason[:_SHOWN])
    return reason, chars, None if chars else f"an empty answer (finish reason {reason})"
