"""The outside's time and ids, as ports' default implementations take them from the libraries."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import uuid_utils


def utc_now() -> datetime:
    """The Clock of a running service."""
    return datetime.now(UTC)


def uuid7() -> UUID:
    """The IdFactory of a running service: RFC 9562 version 7, sortable by time."""
    return UUID(int=uuid_utils.uuid7().int)
