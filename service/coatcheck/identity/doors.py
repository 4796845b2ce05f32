"""The doors of the service. A delegate's audience says which of them it may come through."""

from __future__ import annotations

from enum import StrEnum


class Door(StrEnum):
    """Where a request comes in."""

    API = "api"
    """Every route of its own."""
    MCP = "mcp"
    """The tools at ``/mcp``."""
    GATEWAY = "gateway"
    """The way to a model."""


EVERY_DOOR = frozenset(Door)
