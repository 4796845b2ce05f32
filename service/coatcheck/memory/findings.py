"""What a scan finds: the kinds of damage by name, one thing found, and the report that counts them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

MAX_FINDINGS = 1_000
"""Findings that are kept to be shown; all are counted."""

TEXT_MISSING = "text-missing"
EXACT_HASH = "exact-hash-mismatch"
REDUCED_HASH = "reduced-hash-mismatch"
PROJECTION_MISSING = "projection-missing"
POINT_MISSING = "point-missing"
POINT_TENANT = "point-wrong-tenant"
POINT_SESSION = "point-wrong-session"
POINT_HASH = "point-wrong-hash"
POINT_ACL = "point-wrong-acl"
POINT_ORPHAN = "point-orphan"
MISLABELLED = frozenset({POINT_TENANT, POINT_SESSION, POINT_HASH})
"""Such a point says that it stands for something else than its row: seen from there, it would be one without a row."""

_DETAILS = {
    TEXT_MISSING: "the exact text is gone",
    EXACT_HASH: "the stored text has another SHA-256 than its name",
    REDUCED_HASH: "the reduced text has another SHA-256 than is recorded",
    PROJECTION_MISSING: "no projection is recorded, and none is outstanding",
    POINT_MISSING: "a recorded point is not in the index",
    POINT_TENANT: "the point names another tenant",
    POINT_SESSION: "the point names another session",
    POINT_HASH: "the point carries another hash",
    POINT_ACL: "the point carries another acl",
    POINT_ORPHAN: "the point stands for no row",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be, at one segment or point."""

    kind: str
    session_id: UUID
    sha256: str
    point_id: UUID | None = None

    @property
    def detail(self) -> str:
        return _DETAILS[self.kind]


@dataclass(slots=True)
class ScanReport:
    """What a scan counted and found."""

    segments: int = 0
    points: int = 0
    findings_by_kind: dict[str, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    @property
    def findings_total(self) -> int:
        return sum(self.findings_by_kind.values())

    def add(self, finding: Finding) -> None:
        self.findings_by_kind[finding.kind] = self.findings_by_kind.get(finding.kind, 0) + 1
        if len(self.findings) < MAX_FINDINGS:
            self.findings.append(finding)


Progress = Callable[[ScanReport], None]
