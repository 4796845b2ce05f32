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

_GREETING = re.compile(r"(?:hi|hello|hey)(?: there)?[,.!]+ ", re.IGNORECASE)
_REQUEST = re.compile(
    r"(?:please|kindly),? |(?:can|could|would|will) you,? please,? (?!not\b)|i(?: would|'d) like you to |i (?:want|need) you to ",
    re.IGNORECASE,
)
_FOR_ME = re.compile(r"(?:can|could|would|will) you (?!not\b)(.+) for me[?.]?$", re.IGNORECASE)
"""Without "please" or "for me" it may be a question: can you delete it?"""
_THANKS = re.compile(r"(?:(?<=[?.!])|,) (?:please|thanks|thank you|thanks in advance)[?.!]*$", re.IGNORECASE)
_SUBORDINATE = re.compile(r"\b(?:what|which|who|whom|whose|when|where|why|how|whether|if|that|than)\b", re.IGNORECASE)
"""After one of these "for me" may belong to what is asked about, and not to the asking."""
_ASKS = re.compile(r"(?:what|which|who|whom|whose|when|where|why|how)\b", re.IGNORECASE)
_FULL_STOP = re.compile(r"(?<=[^\W\d_]{2})[.。]$")
_QUESTION_MARK = re.compile(r"(?<=[^\W_])[?？]$")

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
_SHOW_ME = re.compile(r"^show me ")
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
    form, is_request = _without_courtesies(form)
    form = _FULL_STOP.sub("", form)
    if is_request or _ASKS.match(form):
        form = _QUESTION_MARK.sub("", form)
    form = _uncapitalised(form)
    form = _SHOW_ME.sub("show ", _BY_NOUN.sub(lambda said: f"{_NOUNS[said[1]]} ", form))
    for contraction, words in _CONTRACTIONS:
        form = contraction.sub(words, form)
    form = _THE.sub("", _BRITISH.sub(r"\1iz\2", form))
    return form or None


def _without_courtesies(form: str) -> tuple[str, bool]:
    """The text itself, and whether it is a request in the form of a question."""
    greeting = _GREETING.match(form)
    form = form[greeting.end() :] if greeting is not None else form
    form = _THANKS.sub("", form)
    for_me = _FOR_ME.match(form)
    if for_me is not None and not _SUBORDINATE.search(for_me[1]):
        return for_me[1].removeprefix("please "), True
    request = _REQUEST.match(form)
    return (
        (form, False)
        if request is None
        else (form[request.end() :], request[0].lower().startswith(("can", "could", "would", "will")))
    )


def _uncapitalised(form: str) -> str:
    """A sentence's first capital says nothing; an acronym's, a name's inside or a lone letter's may."""
    return form[:1].lower() + form[1:] if form[1:2].islower() else form
