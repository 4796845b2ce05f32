"""The Python client of Coatcheck: the SDK, message-safe windows, transcript readers, and the contract as types (``wire``)."""

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
