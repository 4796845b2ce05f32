"""What a match means: read the value whole, look at its name and its form, and say what kind of secret it is, or that it is none.

Nothing that stands in the text can switch this off: comments such as "allow" or "ignore" are text like any other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from coatcheck.compaction.redaction import assigned, commands, headers, prose
from coatcheck.compaction.redaction.base64_text import decoded_base64
from coatcheck.compaction.redaction.bundled import bundled_secret, kind_of_rule
from coatcheck.compaction.redaction.detector import Hit
from coatcheck.compaction.redaction.positional import positional
from coatcheck.compaction.redaction.tokens import token_length
from coatcheck.compaction.redaction.values import Found, read

OURS = "coatcheck."
_BUNDLED = ("betterleaks.", "veles.")
OPERATORS_RANK = -1
"""Above all others: what the operator calls a secret is known by no better name. How easily it is guessed, nobody has said."""


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret in a text: ``text[start:end]``, without the quotes around it."""

    start: int
    end: int
    kind: str
    rank: int
    """How well the kind is known, the lowest best: which kind a union of overlapping secrets takes."""


def judge(text: str, hit: Hit) -> Secret | None:
    """The secret that a match found in a text, or None."""
    if hit.decoded is not None:
        return _judge_encoded(text, hit, hit.decoded)
    if not hit.rule.startswith(OURS):
        return _judge_others(text, hit)
    rule = hit.rule.removeprefix(OURS)
    family, _, kind = rule.partition(".")
    if family == "token":
        length = token_length(text, hit.start, hit.end, kind)
        return Secret(hit.start, hit.start + length, kind, 1) if length else None
    found = _READERS[rule](text, hit.start)
    if found is None or found[0].start >= found[0].end:
        return None
    value, kind = found
    return Secret(value.start, value.end, kind, 2 if family in ("url", "header", "flag") else 3)


def cover_unasked(text: str, hit: Hit) -> Secret:
    """What a match covers when there are too many to judge: more rather than less."""
    return Secret(hit.start, max(hit.end, read(text, hit.start).end), "unjudged", 4)


def _judge_others(text: str, hit: Hit) -> Secret | None:
    """A match of a bundled rule, or of one that the operator added, which is taken at its word."""
    if not hit.rule.startswith(_BUNDLED):
        return Secret(hit.start, hit.end, kind_of_rule(hit.rule), OPERATORS_RANK)
    found = bundled_secret(text, hit)
    if found is None:
        return None
    value, kind, rank = found
    return Secret(value.start, value.end, kind, rank)


def _judge_encoded(text: str, hit: Hit, match: str) -> Secret | None:
    """A match inside Base64: judged in the decoded text, covered in the encoded one."""
    inner = decoded_base64(text[hit.start : hit.end])
    at = inner.find(match)
    if at < 0:
        return None
    found = judge(inner, replace(hit, start=at, end=at + len(match), decoded=None))
    return None if found is None else Secret(hit.start, hit.end, found.kind, found.rank)


_READERS: dict[str, Callable[[str, int], Found]] = {
    "assignment.password": assigned.assigned,
    "assignment.secret": assigned.assigned,
    "assignment.key": assigned.assigned,
    "assignment.named": assigned.named,
    "assignment.named-after": assigned.named_after,
    "assignment.input": assigned.form_input,
    "assignment.variable": assigned.variable,
    "assignment.plist": assigned.plist,
    "assignment.element": assigned.element,
    "assignment.directive": assigned.directive,
    "assignment.sql": assigned.in_sql,
    "assignment.sql-user": assigned.of_sql_user,
    "flag.long": commands.long_flag,
    "flag.short": commands.short_flag,
    "flag.piped": commands.short_flag,
    "flag.here": commands.short_flag,
    "flag.positional": positional,
    "flag.user": commands.user_flag,
    "flag.cookie": headers.cookie,
    "flag.jar": headers.of_jar,
    "jwk": assigned.json_web_key,
    "netrc": commands.netrc,
    "pgpass": commands.pgpass,
    "header.authorization": headers.authorization,
    "header.scheme": headers.scheme,
    "header.cookie": headers.cookie,
    "url.password": headers.url_password,
    "url.user": headers.url_user,
    "url.oracle": headers.oracle_password,
    "url.parameter": headers.url_parameter,
    "prose.english": prose.told,
    "prose.slavic": prose.told_abroad,
    "prose.cjk": prose.told_abroad,
    "prose.european": prose.told_abroad,
    "prose.adjacent": prose.adjacent,
    "prose.quoted": prose.quoted,
    "prose.passphrase": prose.passphrase,
    "prose.reversed": prose.told_before,
    "prose.seed": prose.seed_phrase,
    "prose.below": prose.below,
}
