"""An export as it arrives, or as it lies in a file: whether it is whole shows in its last line."""

from __future__ import annotations

import json
from pathlib import Path

from coatcheck_client.errors import ExportCutOff

CUT_OFF = b'{"type":"error"'
END = b'{"type":"end"'
SESSION = b'{"type":"session",'
WITHOUT_END = b'{"type":"session","version":1,'
"""How an export of a version begins that had no end mark."""
LONGEST = 4_096
"""A line that ends an export, or says why it was cut off, is shorter than this."""


class LastLine:
    """Sees every chunk, keeps the beginning and the end of them."""

    def __init__(self) -> None:
        self._head = b""
        self._tail = b""

    def see(self, chunk: bytes) -> None:
        if len(self._head) < LONGEST:
            self._head = (self._head + chunk)[:LONGEST]
        self._tail = (self._tail + chunk)[-LONGEST:]

    def require_whole(self) -> None:
        """Raises ExportCutOff when what came is not all of it: the service said so, or there is no end."""
        last = self._tail.rstrip(b"\r\n").rsplit(b"\n", 1)[-1]
        if last.startswith(CUT_OFF):
            raise ExportCutOff(str(json.loads(last)["detail"]))
        if not last.startswith(END) and not self._head.startswith(WITHOUT_END):
            raise ExportCutOff("The export has no end mark: it was cut off on the way, and is not the whole session.")


def require_whole(file: Path) -> None:
    """Raises ExportCutOff for the file of an export that was cut off, before any of it is sent; OSError. What is no export at all,

    the service names better.
    """
    last = LastLine()
    with file.open("rb") as opened:
        head = opened.read(LONGEST)
        last.see(head)
        opened.seek(max(len(head), file.stat().st_size - LONGEST))
        last.see(opened.read())
    if head.startswith(SESSION):
        last.require_whole()
