"""The operations a credential can grant, and the two roles they come in."""

from __future__ import annotations

from enum import StrEnum


class Operation(StrEnum):
    """What a use case asks for, by name."""

    COMPACT = "compact"
    RECALL = "recall"
    READ = "read"
    SESSIONS = "sessions"
    ERASE = "erase"
    PUBLISH = "publish"
    EXPORT = "export"
    IMPORT = "import"
    KEYS = "keys"
    SCAN = "scan"
    REPAIR = "repair"
    RECONCILE = "reconcile"
    REDACT = "redact"
    TENANTS = "tenants"
    CACHE = "cache"
    CACHE_PUBLISH = "cache:publish"


MEMBER: frozenset[str] = frozenset(
    {
        Operation.COMPACT,
        Operation.RECALL,
        Operation.READ,
        Operation.SESSIONS,
        Operation.ERASE,
        Operation.PUBLISH,
        Operation.EXPORT,
        Operation.CACHE,
    }
)
"""What an agent or a person needs for its own memory."""

EVERYTHING: frozenset[str] = frozenset(Operation)
"""What the local key of a fresh embedded installation grants."""

OPERATOR: frozenset[str] = EVERYTHING - {Operation.TENANTS}
"""All within its own tenant."""
