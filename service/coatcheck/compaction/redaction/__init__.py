"""Redaction: secrets go before anything is stored, logged, embedded or sent to a model.

In the order in which text passes: ``redactor`` (messages and texts) -> ``seams`` (what lies over two texts) -> ``settling``
(until nothing more is found) -> ``finder`` (``view``, ``wrapped`` and ``encoded``, ``detector``, ``filters``, ``private_keys``,
``tables`` and ``rows``) -> placeholders. ``names``, ``shapes``, ``values`` and ``setting`` say what a name means, what a value
looks like, where it ends and how a text writes it; ``assignments``, ``prose``, ``headers``, ``commands``, ``positional``,
``tokens`` and ``bundled`` judge.
"""

from coatcheck.compaction.redaction.redactor import (
    THINKING_MARKER,
    RedactedMessage,
    RedactedSystem,
    RedactedText,
    Redactor,
    default_cache_dir,
    warm,
)

__all__ = ["THINKING_MARKER", "RedactedMessage", "RedactedSystem", "RedactedText", "Redactor", "default_cache_dir", "warm"]
