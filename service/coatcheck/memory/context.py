"""What the lexical leg knows of a segment beside its own words: who spoke, when, with which tool, and the turns before."""

from __future__ import annotations

from coatcheck.domain.canonical import scalar_text
from coatcheck.index.lexical import CONTEXT_TURN_CHARS
from coatcheck.store.segment_contexts import SegmentContext


def lexical_context(context: SegmentContext) -> str:
    """The context as words. It goes into the lexical vector alone, so that a passage is encoded once (design: data)."""
    words = [context.role, context.name or ""]
    if context.occurred_at is not None:
        words.append(context.occurred_at.strftime("%-d %B %Y %Y-%m-%d"))
    words += [text[:CONTEXT_TURN_CHARS] for text in context.previous_texts]
    return scalar_text("\n".join(word for word in words if word))
