"""A summariser behind an OpenAI-compatible chat endpoint, reached by the guarded client alone, within the window's budget."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from typing import Annotated
from uuid import UUID

from pydantic import BaseModel, Field, SecretStr, ValidationError

from coatcheck.domain.budgets import Budget
from coatcheck.domain.errors import OutboundFailed, OutboundRefused, RefusedToStart, StageUnavailable
from coatcheck.models import sentences
from coatcheck.models.briefing import REVISION, briefing
from coatcheck.models.native import native
from coatcheck.outbound.client import Outbound

STAGE = "summariser"
MAX_INPUT_CHARS = 24_000
"""Some 6,000 tokens: what a model of 8,192 reads beside its task and its answer."""
MAX_TEXT_CHARS = 1_600
TIMEOUT_S = 60.0
_MAX_ANSWER_BYTES = 128 * 1024
_LEAST_TOKENS = 256
_HEADER_SAFE = re.compile(r"[!-~]+")
_THINKING = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)


class _Message(BaseModel):
    content: str


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None


class _Completion(BaseModel):
    choices: Annotated[list[_Choice], Field(min_length=1)]


class EndpointSummariser:
    """Summariser port. Neither texts nor the key are ever logged, nor repeated in an error."""

    def __init__(
        self,
        base_url: str,
        model: str,
        key: SecretStr | None,
        outbound: Outbound,
        *,
        timeout_s: float = TIMEOUT_S,
        max_input_chars: int = MAX_INPUT_CHARS,
    ) -> None:
        """``base_url`` is what ``/chat/completions`` is put behind, mostly ending in ``/v1``. ``outbound`` decides which addresses
        may be asked. Raises RefusedToStart for one that never may, and for a key that no header can carry.
        """
        self.revision = f"{model}/{REVISION}"
        self._url = base_url.rstrip("/") + "/chat/completions"
        self._model = model
        self._bearer = None if key is None else SecretStr(key.get_secret_value().strip())
        self._outbound = outbound
        self._timeout_s = timeout_s
        self._max_input_chars = max_input_chars
        if self._bearer is not None and not _HEADER_SAFE.fullmatch(self._bearer.get_secret_value()):
            raise RefusedToStart("The summariser's key is empty, or holds characters that no header carries.")
        try:
            outbound.check(self._url)
        except OutboundRefused as error:
            raise RefusedToStart(f"The summariser's endpoint cannot be asked: {error.detail}") from error

    def summarise(self, texts: Sequence[str], max_chars: int, budget: Budget) -> str:
        """Raises StageUnavailable for everything but an answer in time. Must not be called from an event loop's thread."""
        limit_s = min(self._timeout_s, budget.left_s())
        if limit_s <= 0:
            raise StageUnavailable("No time is left for the summariser.")
        question = self._question(budget.owner, texts, max_chars)
        bearer = self._bearer.get_secret_value() if self._bearer is not None else None
        with native(STAGE):
            try:
                answer = asyncio.run(
                    self._outbound.post_json(self._url, question, bearer=bearer, max_bytes=_MAX_ANSWER_BYTES, timeout_s=limit_s)
                )
            except (OutboundFailed, OutboundRefused) as error:
                raise StageUnavailable(f"The summariser's endpoint gave no answer: {error.detail}") from None
        return _said(answer, max_chars)

    def _question(self, owner: UUID, texts: Sequence[str], max_chars: int) -> bytes:
        task, data = briefing(owner, texts, max_chars, self._max_input_chars, MAX_TEXT_CHARS)
        document = {
            "model": self._model,
            "temperature": 0,
            "max_tokens": max(_LEAST_TOKENS, max_chars),
            "stream": False,
            "messages": [{"role": "system", "content": task}, {"role": "user", "content": data}],
        }
        return json.dumps(document).encode()


def _said(answer: bytes, max_chars: int) -> str:
    """What the model wrote, as far as it came to the end of a sentence, and no more than was asked for."""
    try:
        choice = _Completion.model_validate_json(answer).choices[0]
    except ValidationError:  # which would repeat what it was given
        raise StageUnavailable("The summariser's endpoint answered with what is no completion.") from None
    text = _THINKING.sub("", choice.message.content).strip()
    if choice.finish_reason == "length":  # half a sentence may say the opposite of the whole
        text = sentences.without_last(text)
    if len(text) > max_chars:
        text = sentences.head(text, max_chars)
    if not text:
        raise StageUnavailable("The summariser's endpoint answered with nothing.")
    return text
