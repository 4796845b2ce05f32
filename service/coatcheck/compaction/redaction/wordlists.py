"""Word lists, written as one text."""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    """The words of a text that white space separates."""
    return frozenset(text.split())
