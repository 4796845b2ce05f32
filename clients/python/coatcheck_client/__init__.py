"""The Python client of Coatcheck: the SDK, message-safe windows, transcript readers, and the contract as types (``wire``).

The names below are loaded when they are first asked for (PEP 562): the service imports ``wire`` and has no use for the SDK.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coatcheck_client.client import AsyncCoatcheck, Coatcheck
    from coatcheck_client.errors import (
        CannotBeSent,
        ClientError,
        Conflict,
        Erased,
        ExportCutOff,
        Forbidden,
        InvalidRequest,
        NoProgress,
        NoServiceConfigured,
        NotFound,
        ProblemError,
        QuotaExceeded,
        RateLimited,
        ServiceUnreachable,
        TranscriptError,
        TryLater,
        Unauthenticated,
        UnexpectedAnswer,
    )
    from coatcheck_client.flows import RetryPolicy
    from coatcheck_client.transcripts import Transcript, read_transcript
    from coatcheck_client.windows import Window, cut_windows, plan_window

__all__ = [
    "AsyncCoatcheck",
    "CannotBeSent",
    "ClientError",
    "Coatcheck",
    "Conflict",
    "Erased",
    "ExportCutOff",
    "Forbidden",
    "InvalidRequest",
    "NoProgress",
    "NoServiceConfigured",
    "NotFound",
    "ProblemError",
    "QuotaExceeded",
    "RateLimited",
    "RetryPolicy",
    "ServiceUnreachable",
    "Transcript",
    "TranscriptError",
    "TryLater",
    "Unauthenticated",
    "UnexpectedAnswer",
    "Window",
    "cut_windows",
    "plan_window",
    "read_transcript",
]

_HOMES = {
    "AsyncCoatcheck": "client",
    "CannotBeSent": "errors",
    "ClientError": "errors",
    "Coatcheck": "client",
    "Conflict": "errors",
    "Erased": "errors",
    "ExportCutOff": "errors",
    "Forbidden": "errors",
    "InvalidRequest": "errors",
    "NoProgress": "errors",
    "NoServiceConfigured": "errors",
    "NotFound": "errors",
    "ProblemError": "errors",
    "QuotaExceeded": "errors",
    "RateLimited": "errors",
    "RetryPolicy": "flows",
    "ServiceUnreachable": "errors",
    "Transcript": "transcripts",
    "TranscriptError": "errors",
    "TryLater": "errors",
    "Unauthenticated": "errors",
    "UnexpectedAnswer": "errors",
    "Window": "windows",
    "cut_windows": "windows",
    "plan_window": "windows",
    "read_transcript": "transcripts",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
