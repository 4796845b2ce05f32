"""Rewrites texts until a search finds nothing more, so that redacting what is redacted changes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from coatcheck.compaction.redaction.detector import Detector
from coatcheck.compaction.redaction.filters import OPERATORS_RANK
from coatcheck.compaction.redaction.finder import Covered, Leaf, find
from coatcheck.compaction.redaction.nested import inner_strings, parse_container, rewritten
from coatcheck.compaction.redaction.shapes import is_opaque
from coatcheck.compaction.redaction.wordlists import words
from coatcheck.domain.canonical import JsonValue, Path
from coatcheck.domain.errors import RedactionFailed
from coatcheck.domain.placeholders import PlaceholderKeys
from coatcheck.domain.values import value

MAX_ROUNDS = 12
"""A text settles in two; more only where somebody nested secrets by hand."""
MAX_DEPTH = 3
"""JSON in JSON in JSON."""

_GUESSABLE = words("password passphrase cookie url-password basic-auth seed-phrase unjudged")
_STRONG_CHARS = 20


@value
class Settled:
    """A text without its secrets, and how many of each kind went."""

    text: str
    counts: Mapping[str, int]


NO_SECRETS: Mapping[str, int] = MappingProxyType({})


@dataclass(slots=True)
class _Node:
    """A text and the strings of the JSON document that it is, if it is one."""

    leaf: Leaf
    document: JsonValue = None
    inner: list[tuple[Path, _Node]] = field(default_factory=list)


def settle(detector: Detector, leaves: Sequence[Leaf], keys: PlaceholderKeys) -> list[Settled]:
    """The leaves without their secrets. Raises RedactionFailed when a text will not settle."""
    return settle_beside(detector, leaves, (), keys)[0]


def settle_beside(
    detector: Detector, leaves: Sequence[Leaf], watched: Sequence[Leaf], keys: PlaceholderKeys
) -> tuple[list[Settled], list[list[Covered]]]:
    """As ``settle``; and what stands in texts that are only watched and never rewritten, from the same scan.

    What comes again and again (a tool's name, a key, an id) is searched once.
    """
    distinct, places = _distinct(leaves)
    distinct_watched, watched_places = _distinct(watched)
    settled, seen = _settle(detector, distinct, distinct_watched, keys)
    return [settled[place] for place in places], [seen[place] for place in watched_places]


def _distinct(leaves: Sequence[Leaf]) -> tuple[list[Leaf], list[int]]:
    """Each leaf once, and which of them stands at each place."""
    numbers: dict[Leaf, int] = {}
    places = [numbers.setdefault(leaf, len(numbers)) for leaf in leaves]
    return list(numbers), places


def _settle(
    detector: Detector, leaves: Sequence[Leaf], watched: Sequence[Leaf], keys: PlaceholderKeys
) -> tuple[list[Settled], list[list[Covered]]]:
    texts = [leaf.text for leaf in leaves]
    counts: dict[int, Counter[str]] = {}
    seen: list[list[Covered]] = []
    pending: Sequence[int] = range(len(leaves))
    for turn in range(MAX_ROUNDS):
        nodes = [_node(Leaf(texts[number], leaves[number].key), 0) for number in pending]
        found, beside = _found(detector, nodes, () if turn else watched)
        seen = seen or beside
        changed = []
        for number, node in zip(pending, nodes, strict=True):
            if not node.inner and not found[id(node)]:
                continue
            text = _rewritten(node, found, keys, counts.setdefault(number, Counter()))
            if text != texts[number]:
                texts[number] = text
                changed.append(number)
        if not changed:
            return [Settled(text, counts.get(number, NO_SECRETS)) for number, text in enumerate(texts)], seen
        pending = changed
    raise RedactionFailed("A text holds secrets in more layers than can be taken apart.")


def _node(leaf: Leaf, depth: int) -> _Node:
    document = parse_container(leaf.text) if depth < MAX_DEPTH else None
    node = _Node(leaf, document)
    if document is not None:
        node.inner = [(inner.path, _node(Leaf(inner.text, inner.key), depth + 1)) for inner in inner_strings(document, leaf.text)]
    return node


def _found(
    detector: Detector, nodes: Sequence[_Node], watched: Sequence[Leaf]
) -> tuple[dict[int, list[Covered]], list[list[Covered]]]:
    """What has to be covered in each node, by the node's identity, and in the watched leaves: in one scan."""
    flat: list[_Node] = []
    pending = list(nodes)
    while pending:
        node = pending.pop()
        flat.append(node)
        pending.extend(inner for _, inner in node.inner)
    covered = find(detector, [*(node.leaf for node in flat), *watched])
    return {id(node): covers for node, covers in zip(flat, covered, strict=False)}, covered[len(flat) :]


def _rewritten(node: _Node, found: dict[int, list[Covered]], keys: PlaceholderKeys, counts: Counter[str]) -> str:
    texts = {}
    for path, inner in node.inner:
        text = _rewritten(inner, found, keys, counts)
        if text != inner.leaf.text:
            texts[path] = text
    if texts:
        return rewritten(node.leaf.text, node.document, texts)
    pieces: list[str] = []
    position = 0
    for cover in found[id(node)]:
        pieces += (node.leaf.text[position : cover.start], placeholder(cover, keys))
        position = cover.end
        counts[cover.kind] += 1
    return "".join(pieces) + node.leaf.text[position:]


def placeholder(cover: Covered, keys: PlaceholderKeys) -> str:
    """What stands in for a secret. One that can be guessed is tagged under the session's key."""
    strong = len(cover.secret) >= _STRONG_CHARS and is_opaque(cover.secret, _STRONG_CHARS)
    guessable = cover.kind in _GUESSABLE or not (strong or OPERATORS_RANK < cover.rank <= 1)
    return keys.placeholder(cover.kind, cover.secret, guessable=guessable)
