"""Text to the sparse vector of the lexical leg: BM25's term weights; the inverse document frequency is the engine's part.

BM25: Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009. K, B and the average length are Qdrant's defaults.
A word of the context alone counts as most CONTEXT_WEIGHT of what it would count in the text, after saturation, so that
context can add a candidate but takes nothing from the text that says it. Measured on four long conversations (755 questions):
evidence recall@10 of this leg 0.64 to 0.66 without context, 0.76 to 0.78 with two turns of it. On two agent transcripts lookups
of exact lines stayed at 0.87 at rank 1; context added to the text's own frequencies, at half weight, took them to 0.74.
"""

from __future__ import annotations

from collections.abc import Iterable

from coatcheck.domain.passages import SparseVector
from coatcheck.index.tokens import chunks, terms_of

ANALYSER_REVISION = "lexical-1"
"""Part of the index's generation: raised with every change that moves a term or a weight."""

K = 1.2
B = 0.75
AVERAGE_TERMS = 256.0
CONTEXT_WEIGHT = 0.7
QUERY_PART_WEIGHT = 0.5
"""A part of an identifier in a query counts less than the identifier itself."""
CONTEXT_TURN_CHARS = 1_000
"""More of a turn than this adds nothing to a neighbour's context (measured)."""

_Weights = dict[int, float]


def analyse_document(text: str, context: str = "") -> SparseVector:
    """The vector of a passage; ``context`` is what stands around it: who spoke, when, the turns before."""
    weights = _saturated(text)
    if context:
        for term, weight in _saturated(context).items():
            weight *= CONTEXT_WEIGHT
            if weights.get(term, 0.0) < weight:
                weights[term] = weight
    return _vector(weights.items())


def analyse_query(text: str) -> SparseVector:
    """The vector of a query: one for each different term, less for the parts of an identifier."""
    weights: _Weights = {}
    for chunk in chunks(text):
        terms = terms_of(chunk)
        for term in terms.parts:
            weights.setdefault(term, QUERY_PART_WEIGHT)
        for term in terms.whole:
            weights[term] = 1.0
    return _vector(weights.items())


def _saturated(text: str) -> _Weights:
    frequencies: dict[int, int] = {}
    length = 0
    seen = frequencies.get
    for chunk, count in chunks(text).items():
        whole, parts = terms_of(chunk)
        for term in whole:
            frequencies[term] = seen(term, 0) + count
            length += count
        for term in parts:
            frequencies[term] = seen(term, 0) + count
    norm = K * (1 - B + B * length / AVERAGE_TERMS)
    return {term: count * (K + 1) / (count + norm) for term, count in frequencies.items()}


def _vector(weights: Iterable[tuple[int, float]]) -> SparseVector:
    ordered = sorted(weights)
    return SparseVector(tuple(term for term, _ in ordered), tuple(weight for _, weight in ordered))
