"""The operations a credential can grant, and the two roles that a principal can have."""

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
    DELEGATE = "delegate"
    PRINCIPALS = "principals"
    AUDIT = "audit"
    RETENTION = "retention"


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
        Operation.DELEGATE,
    }
)
"""What an agent or a person needs for its own memory."""

EVERYTHING: frozenset[str] = frozenset(Operation)
"""What the local key of a fresh embedded installation grants."""

OPERATOR: frozenset[str] = EVERYTHING - {Operation.TENANTS}
"""All within its own tenant."""

OPERATORS_CORE: frozenset[str] = frozenset(
    {
        Operation.SESSIONS,
        Operation.ERASE,
        Operation.IMPORT,
        Operation.KEYS,
        Operation.SCAN,
        Operation.REPAIR,
        Operation.RECONCILE,
        Operation.REDACT,
    }
)
"""What makes an operator's credential one. It does not grow with the operations: a key made earlier stays an operator's."""

DELEGABLE: frozenset[str] = MEMBER
"""What a delegate can do at most, whoever makes it: nothing that hands out rights, and nothing for the tenant as a whole."""


class Role(StrEnum):
    """What a principal is in its tenant."""

    MEMBER = "member"
    OPERATOR = "operator"

    @property
    def grants(self) -> frozenset[str]:
        """What a token of such a principal may do."""
        return OPERATOR if self is Role.OPERATOR else MEMBER

    @property
    def ceiling(self) -> frozenset[str]:
        """The most that any credential of such a principal may do. The installation's operation is granted by a key alone."""
        return EVERYTHING if self is Role.OPERATOR else MEMBER
