"""Prompts as the response cache compares them, and the nearest eligible entry."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from coatcheck.domain.canonical import JsonValue
from coatcheck.domain.response_cache import CacheEntry, CacheScope, PromptPrint
from coatcheck.identity.cache_scopes import prompt_print
from coatcheck.identity.context import RequestContext
from coatcheck.identity.fingerprints import Fingerprints
from coatcheck.memory.collaborators import Collaborators
from coatcheck.store.response_cache import Embedded
from coatcheck_client.wire import CacheCircumstances


@dataclass(frozen=True, slots=True)
class Nearest:
    """The entry whose prompt means the same, or why there is none."""

    reason: str
    entry: CacheEntry | None = None
    similarity: float = 0.0


class Matcher:
    """Compares by meaning, within a scope alone."""

    def __init__(self, parts: Collaborators) -> None:
        self._parts = parts

    async def read(self, context: RequestContext, prints: Fingerprints, owner: str, asked: CacheCircumstances) -> PromptPrint:
        """The prompt as it is compared."""
        prompt: JsonValue = asked.prompt
        return PromptPrint(await asyncio.to_thread(prompt_print, prints, owner, "prompt", prompt))

    async def embedded(self, prompt: PromptPrint) -> Embedded | None:
        """The vector of a prompt that may be compared by meaning."""
        return None

    async def nearest(self, scope: CacheScope, prompt: PromptPrint) -> Nearest:
        """The eligible entry that means the same."""
        return Nearest("other-prompt")
