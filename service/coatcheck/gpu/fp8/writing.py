"""Writes a safetensors file a piece at a time: its header is known before the first byte of a tensor is.

The library writes whole files from tensors that are all in memory, which is what this is there to avoid.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from coatcheck.domain.errors import GpuRefused
from coatcheck.gpu.fp8.layout import Header
from coatcheck.gpu.fp8.reading import size_bytes

_WIDTHS = {"F32": 4, "BF16": 2, "F8_E4M3": 1}
_METADATA = {"format": "pt"}


def arranged(headers: Mapping[str, Header]) -> tuple[bytes, dict[str, int]]:
    """The file's head, and where after it each tensor begins: the widest types first, so that every element lies aligned."""
    offset = 0
    listed: dict[str, object] = {"__metadata__": _METADATA}
    starts: dict[str, int] = {}
    for name in sorted(headers, key=lambda name: (-_WIDTHS[headers[name].dtype], name)):
        header = headers[name]
        starts[name] = offset
        end = offset + size_bytes(header)
        listed[name] = {"dtype": header.dtype, "shape": list(header.shape), "data_offsets": [offset, end]}
        offset = end
    head = json.dumps(listed, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    return len(head).to_bytes(8, "little") + head, starts


def file_bytes(headers: Mapping[str, Header]) -> int:
    """The size of a file with these tensors, from their shapes alone."""
    head, _ = arranged(headers)
    return len(head) + sum(size_bytes(header) for header in headers.values())


class Writer:
    """One new file. Each tensor's pieces come in order; the tensors come as they like. Closed by ``with``; on the disk by then."""

    def __init__(self, path: Path, headers: Mapping[str, Header]) -> None:
        head, starts = arranged(headers)
        self._next = {name: len(head) + start for name, start in starts.items()}
        self._ends = {name: self._next[name] + size_bytes(header) for name, header in headers.items()}
        self._file = path.open("xb")
        self._file.write(head)

    def write(self, name: str, piece: memoryview) -> None:
        self._file.seek(self._next[name])
        self._file.write(piece)
        self._next[name] += len(piece)

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with self._file:
            if error is None:
                unfinished = [name for name, end in self._ends.items() if self._next[name] != end]
                if unfinished:
                    raise GpuRefused(f"The tensor {unfinished[0]!r} was not written whole.")
                self._file.flush()
                os.fsync(self._file.fileno())
