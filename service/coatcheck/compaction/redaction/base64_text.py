"""Base64 read as text, in either alphabet, with or without padding."""

from __future__ import annotations

import base64
import binascii


def decoded_base64(run: str) -> str:
    """The text that a run of Base64 encodes, as far as it is text; empty when the run is no Base64."""
    altchars = b"-_" if "-" in run or "_" in run else None
    try:
        return base64.b64decode(run + "=" * (-len(run) % 4), altchars=altchars).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return ""
