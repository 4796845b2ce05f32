"""The pure pipeline from a window to a plan. No I/O: models come in as ports."""

__all__ = ["excerpt", "handoffs", "navigation", "planner", "redaction", "window"]
