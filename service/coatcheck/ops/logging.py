"""Logs: one line an event, JSON where nobody watches a terminal, and never content.

A log line's ``event`` is a sentence from our own code. Beside it stand numbers, ids and times under any name, and strings
under the names of ``TEXT_FIELDS`` alone, each a short visible word from our own vocabulary. Whatever else is handed in
(bytes, mappings, long texts, unknown names) is left out and counted. An exception is logged as its types and its frames,
never its message: a message may quote what it failed on.
"""

from __future__ import annotations

import logging
import re
import sys
import traceback
from collections.abc import MutableMapping
from datetime import date, datetime, timedelta
from enum import Enum
from pathlib import Path
from typing import TextIO
from uuid import UUID

import structlog

TEXT_FIELDS = frozenset(
    {
        "action", "code", "event", "exception", "folder", "frames", "index", "kind", "legs", "level", "logger", "method", "mode",
        "model", "operation", "outcome", "owner", "point", "problem", "reason", "revision", "role", "route", "slug", "stage",
        "stages", "state", "status", "timestamp", "version",
    }
)  # fmt: skip
MAX_TEXT = 200
MAX_ITEMS = 20
MAX_FRAMES = 12
_VISIBLE = re.compile(r"[\x20-\x7e]*")
_OWN_WORDS = ("coatcheck", "uvicorn.error", "alembic")
"""Standard-library loggers whose messages hold no request's content; of any other only its name, level and place are kept."""

EventDict = MutableMapping[str, object]


def configure(level: str, *, as_json: bool | None = None, stream: TextIO | None = None) -> None:
    """Sets up structlog and the standard library's logging. JSON unless the stream is a terminal, or as told."""
    out = stream if stream is not None else sys.stderr
    as_json = not out.isatty() if as_json is None else as_json
    renderer = structlog.processors.JSONRenderer() if as_json else structlog.dev.ConsoleRenderer(exception_formatter=_no_traceback)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            describe_exception,
            without_content,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(file=out),
        cache_logger_on_first_use=False,
    )
    root = logging.getLogger()
    root.handlers[:] = [_Bridge()]
    root.setLevel(level.upper())
    # What it says of each revision is for who runs it by hand; that the database was migrated is said once, by us.
    logging.getLogger("alembic").setLevel(logging.DEBUG if level == "debug" else logging.WARNING)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logging.getLogger(name).handlers.clear()
        logging.getLogger(name).propagate = name != "uvicorn.access"


def without_content(_logger: object, _method: str, event: EventDict) -> EventDict:
    """Keeps what a log may hold; counts the rest under ``left_out``."""
    kept: EventDict = {}
    left_out = 0
    for name, value in event.items():
        allowed, safe = _safe(name, value)
        if allowed:
            kept[name] = safe
        else:
            left_out += 1
    if left_out:
        kept["left_out"] = left_out
    return kept


def describe_exception(_logger: object, _method: str, event: EventDict) -> EventDict:
    """Replaces ``exc_info`` by the exception's types (cause first to last) and innermost frames."""
    given = event.pop("exc_info", None)
    event.pop("stack_info", None)
    if given is True:
        given = sys.exc_info()[1]
    elif isinstance(given, tuple):
        given = given[1]
    if isinstance(given, BaseException):
        event["exception"] = exception_types(given)
        event["frames"] = exception_frames(given)
    return event


def exception_types(error: BaseException) -> list[str]:
    """The error's type, then its causes'."""
    types: list[str] = []
    current: BaseException | None = error
    while current is not None and len(types) < MAX_ITEMS:
        types.append(f"{type(current).__module__}.{type(current).__qualname__}")
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
    return types


def exception_frames(error: BaseException) -> list[str]:
    """Where it was raised, innermost last: file, line and function, no values."""
    frames = traceback.extract_tb(error.__traceback__)[-MAX_FRAMES:]
    return [f"{'/'.join(Path(frame.filename).parts[-2:])}:{frame.lineno} {frame.name}" for frame in frames]


def _safe(name: str, value: object) -> tuple[bool, object]:
    if isinstance(value, Enum):
        value = value.value
    if value is None or isinstance(value, bool | int | float):
        return True, value
    if isinstance(value, UUID | date | timedelta):
        return True, str(value) if not isinstance(value, datetime) else value.isoformat()
    if isinstance(value, str):
        return _safe_text(name, value)
    if isinstance(value, list | tuple | set | frozenset):
        items = [_safe(name, item) for item in list(value)[:MAX_ITEMS]]
        return all(allowed for allowed, _ in items), [item for _, item in items]
    return False, None


def _safe_text(name: str, text: str) -> tuple[bool, object]:
    if name.endswith("_id") and _is_uuid(text):
        return True, text
    return name in TEXT_FIELDS and len(text) <= MAX_TEXT and _VISIBLE.fullmatch(text) is not None, text


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True


def _no_traceback(_out: TextIO, _info: object) -> None:
    """The console's exception formatter: ``describe_exception`` has said all there is to say."""


class _Bridge(logging.Handler):
    """Takes the standard library's records into structlog, under the same rule."""

    def emit(self, record: logging.LogRecord) -> None:
        own = record.name.startswith(_OWN_WORDS)
        message = record.getMessage() if own else f"{record.name} at {record.filename}:{record.lineno}"
        log = structlog.get_logger()
        log.log(
            record.levelno,
            "".join(char if " " <= char <= "~" else "?" for char in message)[:MAX_TEXT],
            logger=record.name,
            exc_info=record.exc_info,
        )
