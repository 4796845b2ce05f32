"""What the plugin says, where vLLM's own log goes."""

from __future__ import annotations

import logging
import sys

log = logging.getLogger("vllm.coatcheck")
"""Below vLLM's own logger, whose handlers and format it has."""


def say(text: str) -> None:
    """A line of the log. vLLM's API server sets its log up after it has loaded plugins: until then it goes where that will go."""
    if log.hasHandlers():
        log.info("coatcheck %s", text)
    else:
        sys.stderr.write(f"coatcheck {text}\n")


def warn(text: str) -> None:
    """What went wrong, with the exception that is being handled. Python itself prints a warning where no log is set up."""
    log.warning("coatcheck %s", text, exc_info=True)


def say_nothing() -> None:
    """For whoever asks for the report, which says it all. A log that somebody has set up is left to them."""
    if not log.hasHandlers():
        log.addHandler(logging.NullHandler())
