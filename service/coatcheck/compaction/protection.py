"""What is kept before any model runs: tool, system and developer text, what is carried as it is, and recognised evidence."""

from __future__ import annotations

from coatcheck.compaction import evidence, lexicon
from coatcheck.domain.messages import PartKind, Role
from coatcheck.domain.placeholders import PLACEHOLDER

_ROLES: dict[Role, str] = {"system": "system-role", "developer": "developer-role", "tool": "tool-role"}
_KINDS: dict[PartKind, str] = {
    PartKind.THINKING: "thinking",
    PartKind.BLOB: "blob",
    PartKind.OPAQUE: "opaque",
    PartKind.TOOL_CALL: "tool-call",
    PartKind.TOOL_RESULT: "tool-role",
}
_RULES = frozenset((lexicon.Signal.PROHIBITION, lexicon.Signal.DECISION, lexicon.Signal.CORRECTION))

EVIDENCE = evidence.NAMES | {"placeholder"} | {rule.value for rule in _RULES}
"""The names of all that protects a text whatever its role."""


def protect(role: Role, kind: PartKind, text: str, names: frozenset[str] = EVIDENCE) -> str | None:
    """The name of what protects a segment, a short machine name; None where the router may decide.

    ``names`` are of the evidence that counts; roles and kinds always do.
    """
    return _KINDS.get(kind) or _ROLES.get(role) or evidence_of(text, names)


def evidence_of(text: str, names: frozenset[str] = EVIDENCE) -> str | None:
    """The first evidence of these names that a text holds."""
    if "placeholder" in names and "[REDACTED:" in text and PLACEHOLDER.search(text):
        return "placeholder"
    lowered = lexicon.lower(text)
    found = evidence.find(text, lowered, names)
    if found is not None:
        return found
    rule = lexicon.states_a_rule(lowered)
    return rule.value if rule is not None and rule.value in names else None
