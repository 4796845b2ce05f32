"""What one tenant may take, in numbers. None is no limit."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TenantLimits:
    """Rates are refilled evenly and allow a minute's worth at once; maxima count what is stored."""

    requests_per_minute: float | None = None
    bytes_per_minute: float | None = None
    """Of request bodies."""
    embedding_seconds_per_minute: float | None = None
    """Of the embedder's own work, for queries and for what is stored, and of the reranker's."""
    max_segments: int | None = None
    max_bytes: int | None = None
    """Of segments and blobs, as they were handed in after redaction, and of cached answers."""

    def over(self, defaults: TenantLimits) -> TenantLimits:
        """These, and the defaults where these say nothing."""
        return TenantLimits(*(getattr(self if getattr(self, n) is not None else defaults, n) for n in TenantLimits.__slots__))

    @property
    def counts_stored(self) -> bool:
        return self.max_segments is not None or self.max_bytes is not None


@dataclass(frozen=True, slots=True)
class StoredUsage:
    """What a tenant has stored."""

    segments: int
    bytes: int

    def exceeds(self, limits: TenantLimits) -> bool:
        return (limits.max_segments is not None and self.segments > limits.max_segments) or (
            limits.max_bytes is not None and self.bytes > limits.max_bytes
        )

    def beyond_bytes(self, limits: TenantLimits) -> int:
        """By how many bytes it exceeds the limits; 0 where fewer bytes would not help."""
        if limits.max_bytes is None or (limits.max_segments is not None and self.segments > limits.max_segments):
            return 0
        return max(0, self.bytes - limits.max_bytes)

    def without_bytes(self, size: int) -> StoredUsage:
        return StoredUsage(self.segments, self.bytes - size)

    def fills(self, limits: TenantLimits) -> bool:
        """Whether nothing more fits."""
        return (limits.max_segments is not None and self.segments >= limits.max_segments) or (
            limits.max_bytes is not None and self.bytes >= limits.max_bytes
        )
