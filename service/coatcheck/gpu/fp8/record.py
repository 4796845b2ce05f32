"""The record beside a quantised checkpoint: what it was made from, to the hash of every file and every tensor."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from coatcheck.domain.errors import GpuUnfit
from coatcheck.gpu.fp8.layout import RECORD_FILE
from coatcheck.ops import ordinary_files

_FORMAT = 1
_MOST_BYTES = 16 * 1024 * 1024
_READ_BYTES = 1024 * 1024
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class FileRecord:
    sha256: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class TensorRecord:
    """``source_sha256`` of the tensor's bytes in the source, None for scales; ``sha256`` of what was written in its place."""

    sha256: str
    source_sha256: str | None


@dataclass(frozen=True, slots=True)
class Record:
    """``upstream`` is NAME@COMMIT, or None where nobody said it: then the source's hashes are all that is known of it."""

    upstream: str | None
    source_files: Mapping[str, FileRecord]
    files: Mapping[str, FileRecord]
    left_out: tuple[str, ...]
    tensors: Mapping[str, TensorRecord]

    def write(self, folder: Path) -> None:
        text = json.dumps({"format": _FORMAT, "scheme": "W8A8, E4M3, a scale per output channel", **asdict(self)}, indent=1)
        (folder / RECORD_FILE).write_text(text + "\n", encoding="utf-8")


def read(folder: Path) -> Record:
    """Raises GpuRefused for what is none, and for one of another format."""
    path = folder / RECORD_FILE
    try:
        found = ordinary_files.read_json(path, _MOST_BYTES)
        if found["format"] != _FORMAT:
            raise GpuUnfit(f"{path} is of the format {found['format']!r}; this reads {_FORMAT}.")
        upstream = found["upstream"]
        made = Record(
            None if upstream is None else str(upstream),
            {str(name): _file(given) for name, given in found["source_files"].items()},
            {str(name): _file(given) for name, given in found["files"].items()},
            tuple(map(str, found["left_out"])),
            {
                str(name): TensorRecord(
                    _hash(given["sha256"]), None if given["source_sha256"] is None else _hash(given["source_sha256"])
                )
                for name, given in found["tensors"].items()
            },
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise GpuUnfit(f"{path} is no record of a quantised checkpoint.") from error
    return made


def record_of(path: Path) -> FileRecord:
    """Reads the file. Raises OSError."""
    digest, size = hashlib.sha256(), 0
    with ordinary_files.opened(path) as file:
        while piece := file.read(_READ_BYTES):
            digest.update(piece)
            size += len(piece)
    return FileRecord(digest.hexdigest(), size)


def _file(given: Mapping[str, object]) -> FileRecord:
    size = given["size_bytes"]
    if type(size) is not int:
        raise ValueError("no size")
    return FileRecord(_hash(given["sha256"]), size)


def _hash(given: object) -> str:
    if not isinstance(given, str) or not _SHA256.fullmatch(given):
        raise ValueError("no hash")
    return given
