"""Reads a checkpoint's tensors a piece at a time: what is in memory is one piece, however large the tensor is."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import torch

from coatcheck.domain.errors import GpuRefused, GpuUnfit, GpuUnsupported
from coatcheck.gpu.fp8.layout import Header
from coatcheck.ops import ordinary_files

PIECE_BYTES = 1024 * 1024
"""Quantising one of these takes some ten times as much, in float32."""
_INDEX = "model.safetensors.index.json"
_INDEX_BYTES = 16 * 1024 * 1024
_HEAD_BYTES = 16 * 1024 * 1024
"""The format allows six times as much, for which two parsers take a minute and gigabytes (measured)."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a tensor's bytes begin."""

    path: Path
    file: BinaryIO
    offset: int


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The tensors of one or more open safetensors files."""

    headers: Mapping[str, Header]
    files: tuple[Path, ...]
    _places: Mapping[str, _Place]

    def rows_at_once(self, name: str) -> int:
        header = self.headers[name]
        row_bytes = size_bytes(Header(header.dtype, header.shape[1:]))
        return max(1, PIECE_BYTES // max(1, row_bytes))

    def pieces(self, name: str, rows: int | None = None) -> Iterator[torch.Tensor]:
        """The tensor in order, each piece so many whole rows; a tensor without dimensions or elements is one piece."""
        header, place = self.headers[name], self._places[name]
        if not header.shape or 0 in header.shape:
            yield _read(place, 0, header)
            return
        step = rows or self.rows_at_once(name)
        row_bytes = size_bytes(header) // header.shape[0]
        for start in range(0, header.shape[0], step):
            shape = (min(step, header.shape[0] - start), *header.shape[1:])
            yield _read(place, start * row_bytes, Header(header.dtype, shape))


def bytes_of(piece: torch.Tensor) -> memoryview:
    """As they lie in a file."""
    flat = piece.contiguous().reshape(-1).view(torch.uint8)
    return memoryview(flat.numpy())


def size_bytes(header: Header) -> int:
    return int(TYPES[header.dtype].itemsize) * math.prod(header.shape)


@contextmanager
def opened(files: tuple[Path, ...]) -> Iterator[Checkpoint]:
    """Raises GpuRefused for a file that is no safetensors file, a tensor in two of them, and a type that none of ours has."""
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError as error:
        raise GpuUnsupported("safetensors is not installed (coatcheck[gpu]).") from error

    headers: dict[str, Header] = {}
    places: dict[str, _Place] = {}
    with ExitStack() as stack:
        for path in files:
            try:
                file = stack.enter_context(ordinary_files.opened(path))
                head_bytes = int.from_bytes(file.read(8), "little")
                if _HEAD_BYTES < head_bytes < path.stat().st_size:
                    raise GpuUnfit(f"The head of {path} has {head_bytes:,} bytes; {_HEAD_BYTES:,} are read at most.")
                with safe_open(path, "pt"):  # the library holds the head against the format and the file
                    pass
                head = json.loads(file.read(head_bytes))
            except (OSError, ValueError, SafetensorError) as error:
                raise GpuUnfit(f"{path} cannot be read as safetensors: {error}.") from error
            for name, found in head.items():
                if name == "__metadata__":
                    continue
                if name in headers:
                    raise GpuUnfit(f"The tensor {name!r} stands in two files of the checkpoint.")
                headers[name] = Header(found["dtype"], tuple(found["shape"]))
                places[name] = _Place(path, file, 8 + head_bytes + found["data_offsets"][0])
                if found["dtype"] not in TYPES:
                    raise GpuUnfit(f"The tensor {name!r} is {found['dtype']}, a type that no tensor of ours has.")
        yield Checkpoint(headers, files, places)


def weight_files(folder: Path) -> tuple[Path, ...]:
    """The safetensors files of a checkpoint. Raises GpuRefused where there is none, or not each that its index names."""
    try:
        found = tuple(sorted(path for path in folder.glob("*.safetensors") if path.is_file()))
    except OSError as error:
        raise GpuUnfit(f"The folder {folder} cannot be read.") from error
    if not found:
        raise GpuUnfit(f"There are no weights in the safetensors format in {folder}.")
    index = folder / _INDEX
    if index.is_file():
        names = {path.name for path in found}
        missing = sorted(_shards(index) - names)
        extra = sorted(names - _shards(index))
        if missing or extra:
            which = f"{missing[0]} is missing" if missing else f"{extra[0]} is not in it"
            raise GpuUnfit(f"The weights in {folder} are not those that {index.name} names: {which}.")
    return found


def _shards(index: Path) -> set[str]:
    try:
        mapped = ordinary_files.read_json(index, _INDEX_BYTES)["weight_map"]
        return {str(name) for name in mapped.values()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise GpuUnfit(f"{index} cannot be read.") from error


def _read(place: _Place, offset: int, header: Header) -> torch.Tensor:
    """Straight into the tensor's memory. The library's own slices read the whole tensor for each (measured, safetensors 0.8)."""
    tensor = torch.empty(header.shape, dtype=TYPES[header.dtype])
    into = bytes_of(tensor)
    try:
        place.file.seek(place.offset + offset)
        read = place.file.readinto(into)  # type: ignore[attr-defined]
    except OSError as error:
        raise GpuUnfit(f"{place.path} cannot be read: {error.strerror}.") from error
    if read != len(into):
        raise GpuRefused(f"{place.path} has become shorter while it was read.")
    return tensor


TYPES = {
    "BF16": torch.bfloat16, "F16": torch.float16, "F32": torch.float32, "F64": torch.float64, "F8_E4M3": torch.float8_e4m3fn,
    "I64": torch.int64, "I32": torch.int32, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool,
}  # fmt: skip
