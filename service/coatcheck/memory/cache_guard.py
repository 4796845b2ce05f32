"""What two prompts may differ in and still be one question: a closed list. Everything else has to be the same, in its order.

Vectors cannot tell near-opposites from paraphrases: "Paris to Rome" and "Rome to Paris" lie at 0.99, a real paraphrase at 0.84
(docs/decisions/013), and one changed word in a long prompt changes nothing at all. So a number, unit, date, name, negation,
preposition, plural, tense or language that differs is a miss, whatever the similarity; and no text that is made to lie near
another one (CacheAttack, arXiv 2601.23088) is taken for it.
"""

from __future__ import annotations

import re
import unicodedata

GUARD_REVISION = 1
MAX_CHARS = 1_000
"""Beyond, only the very prompt counts: an embedder would read the beginning alone."""

_LAID_OUT = re.compile(r"[\x00-\x1f\x7f`\"“”„«»「」『』]")
"""Lines, code and quotations, whose very characters may matter."""

_POLITE_BEFORE = re.compile(
    r"(?:(?:hi|hello|hey)(?: there)?[,.!]* |(?:please|kindly),? |(?:can|could|would|will) you(?: please)? (?!not\b)"
    r"|i(?: would|'d) like you to |i (?:want|need) you to )",
    re.IGNORECASE,
)
_ASKS_POLITELY = re.compile(r"(?:can|could|would|will) you\b", re.IGNORECASE)
_POLITE_AFTER = re.compile(r"(?:,? (?:please|thanks|thank you|thanks in advance))[.!]*$", re.IGNORECASE)
_FOR_ME = re.compile(r" for me$", re.IGNORECASE)
_SUBORDINATE = re.compile(r"\b(?:what|which|who|whom|whose|when|where|why|how|whether|if|that|than)\b", re.IGNORECASE)
"""After one of these "for me" may belong to what is asked about, and not to the asking."""
_ASKS = re.compile(r"(?:what|which|who|whom|whose|when|where|why|how)\b", re.IGNORECASE)

_CONTRACTIONS = (
    (re.compile(r"\bcan't\b"), "cannot"),
    (re.compile(r"\bwon't\b"), "will not"),
    (re.compile(r"\b(is|are|was|were|do|does|did|has|have|had|would|should|could|must)n't\b"), r"\1 not"),
    (re.compile(r"\b(what|who|where|when|how|that|there|here|it)'s\b"), r"\1 is"),
    (re.compile(r"\b(you|we|they)'re\b"), r"\1 are"),
    (re.compile(r"\b(i|you|we|they)'ve\b"), r"\1 have"),
)
_NOUNS = {"summary": "summarize", "list": "list", "explanation": "explain", "description": "describe"}
_BY_NOUN = re.compile(r"^(?:give|write|provide|show)(?: me)? an? (summary|list|explanation|description) of ")
_SHOW_ME = re.compile(r"^(show|give|tell) me ")
_BRITISH = re.compile(r"\b([a-z]{4,})is(e|es|ed|ing|ation|ations)\b")
_THE = re.compile(r"\bthe ")


def normal_form(text: str) -> str | None:
    """The text without what may differ: courtesies, contractions, "the", -ise or -ize, the full stop, spaces, the first capital,
    and "give me a summary of" for "summarize".

    None where only the very text counts: laid out, quoting, too long, or empty.
    """
    if len(text) > MAX_CHARS or _LAID_OUT.search(text):
        return None
    form = re.sub(" +", " ", unicodedata.normalize("NFC", text).replace("’", "'")).strip(" ")
    is_request = False
    while (polite := _POLITE_BEFORE.match(form)) is not None:
        is_request = is_request or _ASKS_POLITELY.match(form) is not None
        form = form[polite.end() :]
    while (polite := _POLITE_AFTER.search(form.rstrip("?"))) is not None:
        form = form[: polite.start()] + ("?" if form.endswith("?") else "")
    form = form.rstrip(".!。！ ")
    if is_request or _ASKS.match(form):
        form = form.rstrip("?？ ")
    if is_request and not _SUBORDINATE.search(form):
        form = _FOR_ME.sub("", form)
    form = _uncapitalised(form)
    form = _SHOW_ME.sub(r"\1 ", _BY_NOUN.sub(lambda said: f"{_NOUNS[said[1]]} ", form))
    for contraction, words in _CONTRACTIONS:
        form = contraction.sub(words, form)
    form = _THE.sub("", _BRITISH.sub(r"\1iz\2", form))
    return form or None


def _uncapitalised(form: str) -> str:
    """A sentence's first capital says nothing; an acronym's, a name's inside or a lone letter's may."""
    return form[:1].lower() + form[1:] if form[1:2].islower() else form
