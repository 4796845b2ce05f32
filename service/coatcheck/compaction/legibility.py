"""Text that an embedder can make nothing of: base64, minified code, endless repetition. It is indexed lexically only."""

from __future__ import annotations

_LEAST_CHARS = 1_000
_LONGEST_MEAN_WORD = 60
"""Prose has 5 to 7 characters a word, source code 8 to 12, base64 and minified code hundreds."""
_LEAST_WORDS = 60
_LEAST_DIFFERENT = 0.06
_BEGINNING_CHARS = 24
_FEW_CHARACTERS = 4


def illegible(text: str) -> str | None:
    """Why a text is indexed lexically only: ``unbroken`` or ``repetitive``; None for text that can be embedded."""
    if len(text) < _LEAST_CHARS:
        return None
    breaks = text.count(" ") + text.count("\n")
    if breaks * _LONGEST_MEAN_WORD < len(text):
        return "unbroken" if _is_mostly_ascii(text) else _repetitive(text)
    return _repetitive(text)


def _repetitive(text: str) -> str | None:
    """What repeats endlessly holds its own beginning again; only then are the words counted."""
    if text.find(text[:_BEGINNING_CHARS], 1) < 0:
        return None
    words = text.split()
    few_words = len(words) >= _LEAST_WORDS and len(set(words)) < len(words) * _LEAST_DIFFERENT
    return "repetitive" if few_words or len(set(text)) <= _FEW_CHARACTERS else None


def _is_mostly_ascii(text: str) -> bool:
    """Scripts that are written without spaces are no base64."""
    return text.isascii() or len(text.encode("ascii", "ignore")) > 0.9 * len(text)
