"""Every error a caller can meet, typed once: its problem type, its status, and whether the same request helps.

The class docstring is the problem's title. A detail never repeats content of a message, nor a secret.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class FieldError:
    """One thing wrong at one place of the request; ``pointer`` is a JSON pointer (RFC 6901)."""

    pointer: str
    detail: str


class CoatcheckError(Exception):
    """Something went wrong."""

    slug: ClassVar[str] = "internal"
    status: ClassVar[int] = 500
    retryable: ClassVar[bool] = False
    retry_after_s: int | None = None

    def __init__(self, detail: str = "", *, errors: Sequence[FieldError] = ()) -> None:
        super().__init__(detail)
        self.detail = detail or self.title
        self.errors = tuple(errors)

    @property
    def title(self) -> str:
        return (type(self).__doc__ or "").strip().splitlines()[0].rstrip(".")


class MalformedJson(CoatcheckError):
    """The request is malformed."""

    slug, status = "malformed", 400


class Unauthenticated(CoatcheckError):
    """A valid credential is needed."""

    slug, status = "unauthenticated", 401


class Forbidden(CoatcheckError):
    """The credential does not grant this operation."""

    slug, status = "forbidden", 403


class NotFound(CoatcheckError):
    """There is nothing here that you may read."""

    slug, status = "not-found", 404


class MethodNotAllowed(CoatcheckError):
    """The resource does not know this method."""

    slug, status = "method-not-allowed", 405


class RequestTimeout(CoatcheckError):
    """The request did not arrive in time."""

    slug, status, retryable, retry_after_s = "request-timeout", 408, True, 1


class InProgress(CoatcheckError):
    """The same request is being worked on."""

    slug, status, retryable, retry_after_s = "in-progress", 409, True, 2


class VisibilityConflict(CoatcheckError):
    """The session exists with another visibility."""

    slug, status = "visibility-conflict", 409


class Erased(CoatcheckError):
    """What was here has been erased."""

    slug, status = "erased", 410


class TooLarge(CoatcheckError):
    """The request is larger than this service takes."""

    slug, status = "too-large", 413


class InvalidRequest(CoatcheckError):
    """The request does not fit the contract."""

    slug, status = "invalid-request", 422


class InvalidWindow(CoatcheckError):
    """The window cannot be taken out of its conversation as it stands."""

    slug, status = "invalid-window", 422


class EmptyWindow(CoatcheckError):
    """The window is empty."""

    slug, status = "empty-window", 422


class NoProgress(CoatcheckError):
    """The handoff would not be shorter than the window."""

    slug, status = "no-progress", 422


class IdempotencyConflict(CoatcheckError):
    """The idempotency key was used for another request."""

    slug, status = "idempotency-conflict", 422


class RateLimited(CoatcheckError):
    """The tenant has taken as much as it may for now."""

    slug, status, retryable, retry_after_s = "rate-limited", 429, True, 60

    def __init__(self, detail: str = "", *, wait_s: float = 60.0) -> None:
        super().__init__(detail)
        self.retry_after_s = max(1, math.ceil(wait_s - 1e-6))


class QuotaExceeded(CoatcheckError):
    """The tenant has stored as much as it may; room comes from erasing, from retention, or from a higher limit."""

    slug, status = "quota-exceeded", 429

    def __init__(self, detail: str = "", *, beyond_bytes: int = 0) -> None:
        """``beyond_bytes``: how many fewer would have fitted; 0 where fewer bytes would not have helped."""
        super().__init__(detail)
        self.beyond_bytes = beyond_bytes


class Overloaded(CoatcheckError):
    """The service has more work than it can take on."""

    slug, status, retryable, retry_after_s = "overloaded", 503, True, 5


class Draining(Overloaded):
    """The service is shutting down."""

    slug = "draining"


class StorageFull(Overloaded):
    """The service has no room left: nothing comes in before there is some; reading and erasing go on."""

    slug, retry_after_s = "storage-full", 30


class ProjectionPending(CoatcheckError):
    """Everything is kept, but not yet searchable: keep the window and send the same request again."""

    slug, status, retryable, retry_after_s = "projection-pending", 503, True, 5


class ErasePending(CoatcheckError):
    """The erasure is recorded and completes by itself; what was erased can already not be read."""

    slug, status, retryable, retry_after_s = "erase-pending", 503, True, 5


class StoreUnavailable(CoatcheckError):
    """The database cannot be reached."""

    slug, status, retryable, retry_after_s = "store-unavailable", 503, True, 5


class StoreFull(StoreUnavailable):
    """The database has no room left."""

    slug, retry_after_s = "storage-full", 30


class IndexUnavailable(CoatcheckError):
    """The index cannot be reached."""

    slug, status, retryable, retry_after_s = "index-unavailable", 503, True, 5


class IssuerUnavailable(CoatcheckError):
    """The keys of the token's issuer cannot be had for now."""

    slug, status, retryable, retry_after_s = "issuer-unavailable", 503, True, 30


class OutboundFailed(CoatcheckError):
    """An address outside of the service could not be fetched from."""

    slug, status, retryable, retry_after_s = "outbound-failed", 503, True, 30


class OutboundRefused(CoatcheckError):
    """The address is not one that this service fetches from."""

    slug, status = "outbound-refused", 422


class StageUnavailable(CoatcheckError):
    """A stage of the pipeline has no model, or its model failed or was late."""

    slug, status, retryable, retry_after_s = "stage-unavailable", 503, True, 5


class StageFailed(StageUnavailable):
    """A stage of the pipeline has a model, and it failed or gave what is no answer."""


class StageUnfit(StageFailed):
    """A stage of the pipeline has a model that is none for it, and stays so until its files or its settings are others."""


class RedactionFailed(CoatcheckError):
    """Redaction did not finish, so nothing was stored."""

    slug, status, retryable, retry_after_s = "redaction-failed", 503, True, 5


class RedactionTooCostly(RedactionFailed):
    """Taking the secrets out of this text takes longer than one request may; hand in less at a time."""

    slug, status, retryable = "redaction-too-costly", 413, False


class RefusedToStart(CoatcheckError):
    """The service refuses to start."""

    slug = "refused-to-start"


class FenceLost(CoatcheckError):
    """The lease on this work was taken over."""

    slug, status, retryable, retry_after_s = "in-progress", 409, True, 2


class GpuRefused(CoatcheckError):
    """The accelerated runtime does not take this."""

    slug, status = "gpu-refused", 422


class GpuUnfit(GpuRefused):
    """The accelerated runtime does not take this model, however often it is asked."""


class GpuUnsupported(CoatcheckError):
    """This machine, or this generation of GPU, cannot do this."""

    slug, status = "gpu-unsupported", 501
