"""The secrets of many texts, found together: views, one scan, judgement, private keys, and the way back to the originals."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from coatcheck.compaction import effort
from coatcheck.compaction.redaction.assignments import kind_under_key
from coatcheck.compaction.redaction.detector import Detector, Hit
from coatcheck.compaction.redaction.filters import Secret, cover_unasked, judge
from coatcheck.compaction.redaction.names import NameClass, classify
from coatcheck.compaction.redaction.private_keys import find_private_keys
from coatcheck.compaction.redaction.shapes import is_hash_or_uuid, is_opaque
from coatcheck.compaction.redaction.tables import find_in_tables
from coatcheck.compaction.redaction.values import MAX_BARE_CHARS, read
from coatcheck.compaction.redaction.view import View, decoded, joined, joint_at, plain
from coatcheck.domain.placeholders import PLACEHOLDER
from coatcheck.domain.values import value

JUDGED_AT_LEAST = 2_000
CHARS_PER_JUDGED = 100
"""A text gets this many matches judged, and one more for each so many characters; what is beyond is covered unasked."""

_PRIVATE_KEY = "coatcheck.private-key"
_JOINT = "coatcheck.joint"
_TABLE = "coatcheck.table"
"""Rules that find no secret, but a place to look closer."""

_READ_ON = ("coatcheck.assignment", "coatcheck.flag", "coatcheck.header", "coatcheck.url", "coatcheck.prose")
"""Families whose matches are where a value begins, which is then read to its end."""

_QUOTES = ('"', "'", "`", "\\")
_TOKEN_RUN = re.compile(r"[\w+/=.~%-]+")
_WRAP = re.compile(r"\r?\n[ \t]*")
_JOINERS = re.compile(r"[-_.]")
_WRAP_COLUMN = 56
"""Nobody wraps lines earlier than this."""
_TERMINAL_COLUMN = 72
"""A short rest is taken for a token's only where a terminal or a mail would have wrapped the line."""
_AFTER_WRAPPED = ("", "\n", "\r", " ", "\t", '"', "'", "`", "\\", "<", ",", ";", ")", "…")
_LONGEST_LINE = 400


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
    views = [(number, view) for number, leaf in enumerate(leaves) for view in _views(leaf.text)]
    found: list[list[Covered]] = [[] for _ in leaves]
    split = []
    for (number, view), hits in zip(views, detector.scan([view.text for _, view in views]), strict=True):
        if not hits:
            continue
        found[number].extend(_covered(view, _secrets(view.text, hits)))
        if any(_is_split(view.text, hit) for hit in hits):
            whole = joined(view)
            if whole is not None:
                split.append((number, whole))
    if split:
        for (number, view), hits in zip(split, detector.scan([view.text for _, view in split]), strict=True):
            found[number].extend(_covered(view, _secrets(view.text, hits)))
    return [_settled(leaf, covered) for leaf, covered in zip(leaves, found, strict=True)]


def _views(text: str) -> list[View]:
    effort.check()
    view = plain(text)
    other = decoded(view)
    return [view] if other is None else [view, other]


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
    if any(hit.rule == _TABLE for hit in hits):
        secrets.extend(Secret(cell.start, cell.end, cell.kind, 3) for cell in find_in_tables(text))
    allowed = JUDGED_AT_LEAST + len(text) // CHARS_PER_JUDGED
    reached = 0
    for hit in sorted(hits, key=lambda hit: (hit.start, -hit.end)):
        reads = hit.rule.startswith(_READ_ON)
        if hit.rule in (_PRIVATE_KEY, _JOINT, _TABLE) or (reads and hit.start < reached):
            continue  # a place to look closer, or inside of a secret already
        effort.check()
        allowed -= 1
        secret = judge(text, hit) if allowed >= 0 else cover_unasked(text, hit)
        if secret is not None:
            secret = _extended(text, secret, cut=hit.cut or secret.end - secret.start >= MAX_BARE_CHARS)
            secrets.append(secret)
            if reads:
                reached = max(reached, secret.end)
    return secrets


def _extended(text: str, secret: Secret, *, cut: bool) -> Secret:
    """A secret with what a chunk's edge or a hard line break took off it."""
    end = secret.end
    if cut:
        rest = _TOKEN_RUN.match(text, end)
        end = rest.end() if rest else end
    if end - secret.start >= 16:
        low = max(0, secret.start - _LONGEST_LINE)
        line_start = max(text.rfind("\n", low, secret.start) + 1, low)
        while (wrapped := _wrapped_line(text, line_start, end)) is not None:
            line_start, end = wrapped
    return secret if end == secret.end else Secret(secret.start, end, secret.kind, secret.rank)


def _wrapped_line(text: str, line_start: int, end: int) -> tuple[int, int] | None:
    """Where the line that goes on with a token starts and the token ends, when the token was hard-wrapped at ``end``."""
    wrap = _WRAP.match(text, end)
    width = end - line_start
    if not wrap or width < _WRAP_COLUMN:
        return None
    run = _TOKEN_RUN.match(text, wrap.end())
    if not run or text[run.end() : run.end() + 1] not in _AFTER_WRAPPED:
        return None
    rest = run[0]
    if len(rest) < 4 or "=" in rest.rstrip("=") or is_hash_or_uuid(rest):
        return None
    goes_on = is_opaque(_JOINERS.sub("", rest), 12) or (width >= _TERMINAL_COLUMN and _mixed(rest))
    return (wrap.end(), run.end()) if goes_on else None


def _mixed(rest: str) -> bool:
    """A short end of a token: letters and digits, or capitals inside."""
    if len(rest) >= 12:
        return False
    if any(char.isdigit() for char in rest):
        return any(char.isalpha() for char in rest)
    return any(char.isupper() for char in rest[1:]) and any(char.islower() for char in rest)


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
