"""Prompts as the response cache compares them, and the nearest of the entries that are eligible already.

By meaning a prompt is compared by its closing text alone; everything before it is the frame and has to be the same. Two gates, each
of which can only refuse: the vectors are alike enough, and the normal forms are equal (``cache_guard``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from coatcheck.domain.canonical import JsonValue, scalar_text
from coatcheck.domain.errors import Overloaded, RateLimited, RedactionFailed, StageUnavailable
from coatcheck.domain.response_cache import CacheEntry, CacheScope, PromptPrint
from coatcheck.identity.cache_scopes import prompt_print
from coatcheck.identity.context import RequestContext
from coatcheck.identity.fingerprints import Fingerprints
from coatcheck.memory.cache_guard import GUARD_REVISION, normal_form
from coatcheck.memory.collaborators import Collaborators
from coatcheck.ops.slots import FairSlots
from coatcheck.store import response_cache
from coatcheck.store.database import ReadTransaction
from coatcheck.store.response_cache import Comparable, Embedded
from coatcheck_client.wire import CacheCircumstances

FLOATS = "<f4"
"""How a vector is stored, on whatever machine: 32 bits, the lowest byte first."""


@dataclass(frozen=True, slots=True)
class Nearest:
    """The entry whose prompt means the same, or why there is none."""

    reason: str
    entry: CacheEntry | None = None
    similarity: float = 0.0


class Matcher:
    """Compares by meaning, within a scope alone."""

    def __init__(self, parts: Collaborators, computing: FairSlots) -> None:
        """``computing``: the slots in which prompts are read; tenants take turns for them."""
        self._parts = parts
        self._computing = computing

    async def read(self, context: RequestContext, prints: Fingerprints, owner: str, asked: CacheCircumstances) -> PromptPrint:
        """The prompt as it is compared: by meaning where it is asked for, allowed, and the prompt has a form."""
        by_meaning = asked.semantic and self._parts.settings.response_cache_semantic and self._parts.lanes is not None
        return await self._computing.in_thread(
            context.tenant_id, lambda: self._read(context, prints, owner, asked.prompt, by_meaning)
        )

    async def embedded(self, context: RequestContext, prompt: PromptPrint) -> Embedded | None:
        """The vector of a prompt that may be compared by meaning; None where it has none, the tenant no time of the embedder left,
        or no embedder answers: the very prompt is compared all the same."""
        import numpy as np

        lanes = self._parts.lanes
        if prompt.text is None or lanes is None:
            return None
        try:
            await self._parts.limiter.require_embedding(context.tenant_scope)
            vector = await lanes.embed_query(context.tenant_scope, prompt.text)
        except (StageUnavailable, Overloaded, RateLimited):
            return None
        return Embedded(lanes.revision, np.asarray(vector, FLOATS).tobytes())

    async def nearest(self, context: RequestContext, scope: CacheScope, prompt: PromptPrint) -> Nearest:
        """The eligible entry that means the same. Nothing is embedded while there is nothing to compare with."""
        lanes, frame = self._parts.lanes, prompt.frame
        if frame is None or lanes is None:
            return Nearest("other-prompt")
        limit, revision = self._parts.settings.response_cache_max_entries, lanes.revision

        async def eligible(tx: ReadTransaction) -> list[Comparable]:
            return await response_cache.comparable(tx, scope, frame, revision, self._parts.clock(), limit)

        entries = await self._parts.database.read(context.scope, eligible)
        asked = await self.embedded(context, prompt) if entries else None
        if asked is None:
            return Nearest("no-embedder" if entries else "other-prompt")
        chosen, similarity = best(entries, asked.embedding, prompt.guard or "", self._parts.settings.response_cache_similarity)
        if chosen is None:
            return Nearest("guard" if similarity >= self._parts.settings.response_cache_similarity else "dissimilar")
        entry = await self._parts.database.read(
            context.scope, lambda tx: response_cache.find_by_id(tx, scope, chosen, self._parts.clock())
        )
        return Nearest("other-prompt") if entry is None else Nearest("", entry, similarity)

    def _read(self, context: RequestContext, prints: Fingerprints, owner: str, prompt: JsonValue, by_meaning: bool) -> PromptPrint:
        exact = prompt_print(prints, owner, "prompt", prompt)
        frame, text = closing_text(prompt)
        form = normal_form(text) if by_meaning and text is not None else None
        if form is None or text is None or self._holds_secret(context, text):
            return PromptPrint(exact)
        return PromptPrint(
            exact,
            frame=prompt_print(prints, owner, "frame", frame),
            guard=prompt_print(prints, owner, "guard", {"revision": GUARD_REVISION, "form": form}),
            text=scalar_text(text),
        )

    def _holds_secret(self, context: RequestContext, text: str) -> bool:
        """A text with a secret is never embedded: its vector would be kept."""
        keys = self._parts.keyring.placeholder_keys(context.tenant_id, context.principal_id)
        try:
            return bool(self._parts.redactor.redact_text(text, keys).counts)
        except RedactionFailed:
            return True


def closing_text(prompt: JsonValue) -> tuple[JsonValue, str | None]:
    """What a user said last, and all the rest of the prompt; None where the last thing is no plain text of the user's."""
    if isinstance(prompt, str):
        return {}, prompt
    if not isinstance(prompt, list) or not prompt or not isinstance(prompt[-1], dict):
        return prompt, None
    last = dict(prompt[-1])
    content = last.pop("content", None)
    if last.get("role") != "user" or not isinstance(content, str):
        return prompt, None
    return {"before": prompt[:-1], "last": last}, content


def best(entries: Sequence[Comparable], asked: bytes, guard: str, threshold: float) -> tuple[UUID | None, float]:
    """The most alike entry among those that are alike enough and have the same guard, or None; and the highest similarity met."""
    import numpy as np

    vectors = np.frombuffer(b"".join(entry.embedding for entry in entries), FLOATS).reshape(len(entries), -1)
    similarities = vectors @ np.frombuffer(asked, FLOATS)
    highest = float(similarities.max())
    for position in np.argsort(-similarities, kind="stable"):
        similarity = float(similarities[position])
        if similarity < threshold:
            break
        if entries[position].guard == guard:
            return entries[position].entry_id, similarity
    return None, highest
