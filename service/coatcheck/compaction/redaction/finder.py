"""The secrets of many texts, found together: views, one scan, judgement, private keys, and the way back to the originals."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from coatcheck.compaction import effort
from coatcheck.compaction.redaction.assignments import kind_under_key
from coatcheck.compaction.redaction.detector import Detector, Hit
from coatcheck.compaction.redaction.encoded import ENCODINGS, MAX_LAYERS, revealed
from coatcheck.compaction.redaction.extending import extended
from coatcheck.compaction.redaction.filters import Secret, cover_unasked, judge
from coatcheck.compaction.redaction.names import NameClass, classify
from coatcheck.compaction.redaction.private_keys import find_private_keys
from coatcheck.compaction.redaction.rows import find_in_columns, find_in_inserts
from coatcheck.compaction.redaction.tables import find_in_tables
from coatcheck.compaction.redaction.values import MAX_BARE_CHARS, read
from coatcheck.compaction.redaction.view import View, decoded, joined, joint_at, plain
from coatcheck.compaction.redaction.wrapped import NARROWEST, Unwrapped, unwrapped
from coatcheck.domain.placeholders import PLACEHOLDER
from coatcheck.domain.values import value

JUDGED_AT_LEAST = 2_000
CHARS_PER_JUDGED = 100
"""A text gets this many matches judged, and one more for each so many characters; what is beyond is covered unasked."""

_PRIVATE_KEY = "coatcheck.private-key"
_JOINT = "coatcheck.joint"
_TABLE = "coatcheck.table"
_ROWS = {"coatcheck.insert": find_in_inserts, "coatcheck.columns": find_in_columns, _TABLE: find_in_tables}
_LOOK_CLOSER = frozenset((_PRIVATE_KEY, _JOINT, *ENCODINGS, *_ROWS))
"""Rules that find no secret, but a place to look closer."""

_READ_ON = ("coatcheck.assignment", "coatcheck.flag", "coatcheck.header", "coatcheck.url", "coatcheck.prose")
"""Families whose matches are where a value begins, which is then read to its end."""

_QUOTES = ('"', "'", "`", "\\")


@value
class Covered:
    """A stretch of a text that has to go. ``secret`` is what a reader would have read there."""

    start: int
    end: int
    kind: str
    secret: str
    rank: int


class Leaf(NamedTuple):
    """A text to search, and the key that it stands under, if any."""

    text: str
    key: str | None = None


def find(detector: Detector, leaves: Sequence[Leaf]) -> list[list[Covered]]:
    """For each leaf what has to be covered: in order, without overlaps, without what already is a placeholder."""
    found: list[list[Covered]] = [[] for _ in leaves]
    views = [(number, view) for number, leaf in enumerate(leaves) for view in _views(leaf.text)]
    for layer in range(1 + MAX_LAYERS):
        further: list[tuple[int, View | Unwrapped]] = []
        texts = [view.text if isinstance(view, View) else view.view.text for _, view in views]
        for (number, view), hits in zip(views, detector.scan(texts), strict=True):
            if not hits:
                continue
            if isinstance(view, Unwrapped):
                secrets = _secrets(view.view.text, hits)
                found[number].extend(_covered(view.view, (one for one in secrets if view.spans_a_break(one.start, one.end))))
                continue
            found[number].extend(_covered(view, _secrets(view.text, hits)))
            if layer < MAX_LAYERS:
                further.extend((number, one) for one in _read_again(view, hits, layer))
        if not further:
            break
        views = further
    return [_settled(leaf, covered) for leaf, covered in zip(leaves, found, strict=True)]


def _views(text: str) -> list[View | Unwrapped]:
    effort.check()
    view = plain(text)
    other = decoded(view)
    views: list[View | Unwrapped] = [view] if other is None else [view, other]
    if len(view.text) > NARROWEST and "\n" in view.text:
        views.extend(unwrapped(view))
    return views


def _read_again(view: View, hits: Sequence[Hit], layer: int) -> Iterable[View]:
    """What of the view reads otherwise: literals put together, which they are at the first reading, and what is encoded."""
    if not layer and any(_is_split(view.text, hit) for hit in hits):
        whole = joined(view)
        if whole is not None:
            yield whole
    encoded = [hit for hit in hits if hit.rule in ENCODINGS]
    shown = revealed(view, encoded) if encoded else None
    if shown is not None:
        yield shown


def _is_split(text: str, hit: Hit) -> bool:
    """Whether a match's value is a string literal that code concatenates with another one."""
    if hit.rule == _JOINT:
        return True
    if not hit.rule.startswith(("coatcheck.assignment", "coatcheck.token")):
        return False
    is_token = hit.rule.startswith("coatcheck.token")
    if not is_token and text[hit.start - 1 : hit.start] not in _QUOTES:
        return False
    end = hit.end if is_token else read(text, hit.start).end
    return text[end : end + 1] in _QUOTES and joint_at(text, end)


def _secrets(text: str, hits: Sequence[Hit]) -> list[Secret]:
    secrets: list[Secret] = []
    if any(hit.rule == _PRIVATE_KEY for hit in hits):
        secrets.extend(Secret(start, end, "private-key", 0) for start, end in find_private_keys(text))
    for rule in _ROWS.keys() & {hit.rule for hit in hits}:
        places = [hit.start for hit in hits if hit.rule == rule]
        secrets.extend(Secret(cell.start, cell.end, cell.kind, 3) for cell in _ROWS[rule](text, places))
    allowed = JUDGED_AT_LEAST + len(text) // CHARS_PER_JUDGED
    reached = 0
    for hit in sorted(hits, key=lambda hit: (hit.start, -hit.end)):
        reads = hit.rule.startswith(_READ_ON)
        if hit.rule in _LOOK_CLOSER or (reads and hit.start < reached):
            continue  # a place to look closer, or inside of a secret already
        effort.check()
        allowed -= 1
        secret = judge(text, hit) if allowed >= 0 else cover_unasked(text, hit)
        if secret is not None:
            secret = extended(text, secret, cut=hit.cut or secret.end - secret.start >= MAX_BARE_CHARS)
            secrets.append(secret)
            if reads:
                reached = max(reached, secret.end)
    return secrets


def _covered(view: View, secrets: Iterable[Secret]) -> list[Covered]:
    result = []
    for secret in secrets:
        start, end = view.origin(secret.start, secret.end)
        read = view.text[secret.start : secret.end]
        result.append(Covered(start, end, _kind_that_repeats_nothing(secret, read), read, secret.rank))
    return result


def _kind_that_repeats_nothing(secret: Secret, read: str) -> str:
    """A token's kind, or plain "token" where its kind would repeat six characters of it: ``github_pat_...``, ``rubygems_...``."""
    kind = secret.kind
    repeats = secret.rank <= 1 and any(kind[at : at + 6] in read for at in range(len(kind) - 5))
    return "token" if repeats else kind


def _settled(leaf: Leaf, covered: list[Covered]) -> list[Covered]:
    if leaf.key is not None and not covered:
        covered = _under_key(leaf.text, leaf.key)
    elif not covered:
        return covered
    placeholders = [found.span() for found in PLACEHOLDER.finditer(leaf.text)] if "[REDACTED:" in leaf.text else []
    if not placeholders:
        return _united(leaf.text, covered)
    united = _united(leaf.text, [cover for cover in covered if not _begins_inside(cover, placeholders)])
    return [piece for cover in united for piece in _outside(leaf.text, cover, placeholders)]


def _begins_inside(cover: Covered, placeholders: list[tuple[int, int]]) -> bool:
    """Whether what names a secret here is a placeholder's own kind: ``[REDACTED:url-password:<tag>]@host`` names no password."""
    at = bisect_left(placeholders, (cover.start, 0)) - 1
    return at >= 0 and placeholders[at][0] < cover.start < placeholders[at][1]


def _under_key(text: str, key: str) -> list[Covered]:
    """A value that its key alone makes a secret."""
    if classify(key)[0] is NameClass.NOTHING:
        return []
    content = PLACEHOLDER.sub("", text).strip()
    kind = kind_under_key(key, content[:MAX_BARE_CHARS]) if content else None
    if not kind:
        return []
    start = len(text) - len(text.lstrip())
    return [Covered(start, len(text.rstrip()), kind, text.strip(), 3)]


def _united(text: str, covered: list[Covered]) -> list[Covered]:
    """Overlapping and touching stretches as one; the kind is the best known one's that makes up most of it."""
    covered.sort(key=lambda cover: (cover.start, -cover.end))
    united: list[list[Covered]] = []
    reach = -1
    for cover in covered:
        if united and cover.start < reach:
            united[-1].append(cover)
        else:
            united.append([cover])
        reach = max(reach, cover.end)
    return [group[0] if len(group) == 1 else _union(text, group) for group in united]


def _union(text: str, group: list[Covered]) -> Covered:
    start, end = group[0].start, max(cover.end for cover in group)
    most = [cover for cover in group if (cover.end - cover.start) * 5 >= (end - start) * 3] or group
    best = min(most, key=lambda cover: (cover.rank, cover.start - cover.end, cover.kind))
    secret = best.secret if (best.start, best.end) == (start, end) else text[start:end]
    return Covered(start, end, best.kind, secret, best.rank)


def _outside(text: str, cover: Covered, placeholders: list[tuple[int, int]]) -> Iterable[Covered]:
    """The parts of a stretch that stand outside of placeholders and hold something."""
    position = cover.start
    first = max(0, bisect_left(placeholders, (cover.start, 0)) - 1)
    touched = False
    for at in range(first, len(placeholders)):
        start, end = placeholders[at]
        if start >= cover.end:
            break
        if end > position:
            touched = True
            yield from _holding_something(text, position, start, cover)
            position = end
    if not touched:
        yield cover
    else:
        yield from _holding_something(text, position, cover.end, cover)


def _holding_something(text: str, start: int, end: int, cover: Covered) -> Iterable[Covered]:
    if sum(char.isalnum() for char in text[start:end]) >= 3:
        yield Covered(start, end, cover.kind, text[start:end], cover.rank)
