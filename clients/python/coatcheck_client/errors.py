"""What can go wrong in the client: one class for each thing a caller handles differently."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from coatcheck_client.wire import Problem


class ClientError(Exception):
    """Everything that this package raises on purpose."""

    retryable: bool = False
    """Whether the same request, sent again later, may succeed."""


class NoServiceConfigured(ClientError):
    """No usable URL and key were given or stand in the environment, and no service is running on the data directory."""


class CannotBeSent(ClientError):
    """What was asked for cannot be written into a request: half a surrogate pair in an address, a line end in a header."""


class ServiceUnreachable(ClientError):
    """The service did not answer. The request may have arrived: sending the same one again is safe."""

    retryable = True


class ExportCutOff(ClientError):
    """An export that ends before its end mark: what there is of it is not the whole session."""


class UnexpectedAnswer(ClientError):
    """Something answered that is not this service, or not this version of it."""


class TranscriptError(ClientError, ValueError):
    """A file is no transcript of a known shape. The message says what was found, never what it holds."""


class ProblemError(ClientError):
    """The service answered with a problem (RFC 9457).

    ``slug`` is the last word of ``type``; ``errors`` are ``{"pointer", "detail"}``; ``retry_after_s`` is null where the
    service named no time.
    """

    slugs: ClassVar[tuple[str, ...]] = ()

    def __init__(self, problem: Problem, retry_after_s: float | None = None) -> None:
        super().__init__(problem.detail or problem.title)
        self.type = problem.type
        self.slug = slug_of(problem.type)
        self.title = problem.title
        self.status = problem.status
        self.detail = problem.detail
        self.instance = problem.instance
        self.retryable = problem.retryable
        self.retry_after_s = retry_after_s
        self.errors: tuple[Mapping[str, str], ...] = tuple(problem.errors)


class Unauthenticated(ProblemError):
    """A valid credential is needed."""

    slugs = ("unauthenticated",)


class Forbidden(ProblemError):
    """The credential does not grant this operation."""

    slugs = ("forbidden",)


class NotFound(ProblemError):
    """There is nothing here that this credential may read."""

    slugs = ("not-found",)


class Erased(ProblemError):
    """What was here has been erased."""

    slugs = ("erased",)


class InvalidRequest(ProblemError):
    """The request, or its window, does not fit the contract; ``errors`` name the places."""

    slugs = ("invalid-request", "invalid-window", "empty-window", "malformed", "too-large")


class NoProgress(ProblemError):
    """The handoff would not be shorter than the window: nothing was stored, keep the window."""

    slugs = ("no-progress",)


class Conflict(ProblemError):
    """The request contradicts one that was made before."""

    slugs = ("idempotency-conflict", "visibility-conflict")


class TryLater(ProblemError):
    """The service kept what it could; the same request again, later, will do. The window must stay where it is."""

    slugs: ClassVar[tuple[str, ...]] = (
        "in-progress",
        "overloaded",
        "draining",
        "storage-full",
        "projection-pending",
        "erase-pending",
        "store-unavailable",
        "index-unavailable",
        "stage-unavailable",
        "redaction-failed",
        "issuer-unavailable",
        "outbound-failed",
        "request-timeout",
    )


class RateLimited(TryLater):
    """The tenant has taken as much as it may for now: ``retry_after_s`` says when there is more."""

    slugs = ("rate-limited",)


class QuotaExceeded(ProblemError):
    """The tenant has stored as much as it may. Nothing of this request was; room has to be made, or the limit raised."""

    slugs = ("quota-exceeded",)


def problem_error(problem: Problem, retry_after_s: float | None = None) -> ProblemError:
    """The error of the class that this problem's type calls for; ProblemError itself for an unknown type."""
    return _BY_SLUG.get(slug_of(problem.type), ProblemError)(problem, retry_after_s)


def slug_of(problem_type: str) -> str:
    """The last word of a problem's type, which is a URI."""
    return problem_type.rstrip("/").replace("#", "/").replace(":", "/").rsplit("/", 1)[-1]


_BY_SLUG: dict[str, type[ProblemError]] = {
    slug: error
    for error in (
        Unauthenticated, Forbidden, NotFound, Erased, InvalidRequest, NoProgress, Conflict, TryLater, RateLimited, QuotaExceeded,
    )
    for slug in error.slugs
}  # fmt: skip
