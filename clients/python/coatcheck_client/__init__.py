"""The Python client of Coatcheck: the SDK, message-safe windows, transcript readers, and the contract as types (``wire``).

The names below are loaded when they are first asked for (PEP 562): the service imports ``wire`` and has no use for the SDK.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coatcheck_client.client import AsyncCoatcheck, Coatcheck
    from coatcheck_client.errors import ClientError, NoProgress, ProblemError, TryLater
    from coatcheck_client.flows import RetryPolicy
    from coatcheck_client.transcripts import Transcript, read_transcript
    from coatcheck_client.windows import Window, cut_windows, plan_window

__all__ = [
    "AsyncCoatcheck",
    "ClientError",
    "Coatcheck",
    "NoProgress",
    "ProblemError",
    "RetryPolicy",
    "Transcript",
    "TryLater",
    "Window",
    "cut_windows",
    "plan_window",
    "read_transcript",
]

_HOMES = {
    "AsyncCoatcheck": "client",
    "ClientError": "errors",
    "Coatcheck": "client",
    "NoProgress": "errors",
    "ProblemError": "errors",
    "RetryPolicy": "flows",
    "Transcript": "transcripts",
    "TryLater": "errors",
    "Window": "windows",
    "cut_windows": "windows",
    "plan_window": "windows",
    "read_transcript": "transcripts",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
