"""An export as it arrives: whether it is whole shows in its last line."""

from __future__ import annotations

import json

from coatcheck_client.errors import ExportCutOff

CUT_OFF = b'{"type":"error"'
LONGEST = 4_096
"""A line that says why an export was cut off is shorter than this."""


class LastLine:
    """Sees every chunk, keeps the end of them."""

    def __init__(self) -> None:
        self._tail = b""

    def see(self, chunk: bytes) -> None:
        self._tail = (self._tail + chunk)[-LONGEST:]

    def require_whole(self) -> None:
        """Raises ExportCutOff when the service said that what came is not all of it."""
        last = self._tail.rstrip(b"\n").rsplit(b"\n", 1)[-1]
        if last.startswith(CUT_OFF):
            raise ExportCutOff(str(json.loads(last)["detail"]))
