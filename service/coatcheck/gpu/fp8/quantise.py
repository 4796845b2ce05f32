"""Quantises a BF16 GLiClass checkpoint to FP8, tensor by tensor, into a new folder that is there whole or not at all."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import torch

from coatcheck.domain.errors import GpuRefused
from coatcheck.gpu.fp8 import reading, reference
from coatcheck.gpu.fp8.config import encoder_shape
from coatcheck.gpu.fp8.layout import SCALE_SUFFIX, WEIGHTS_FILE, EncoderShape
from coatcheck.gpu.fp8.reading import Checkpoint, bytes_of
from coatcheck.gpu.fp8.record import FileRecord, Record, TensorRecord, record_of
from coatcheck.gpu.fp8.writing import Writer
from coatcheck.ops.folders import sync_folder
from coatcheck.ops.unfinished import folder_beside, remove_left_behind

_COPIED = (".json", ".txt", ".model", ".md")
_COPIED_NAMES = ("LICENSE", "LICENCE", "NOTICE")
_UPSTREAM = re.compile(r"[A-Za-z0-9][\w./-]*@[0-9a-f]{40}")
_HUB_FOLDER = re.compile(r"models--(?P<name>[\w.-]+)")
_COMMIT = re.compile(r"[0-9a-f]{40}")


def quantise(
    source: Path, target: Path, *, upstream: str | None = None, on_tensor: Callable[[int, int], None] | None = None
) -> Record:
    """Writes the quantised checkpoint of the folder ``source`` into the new folder ``target``; returns its record.

    ``upstream`` (NAME@COMMIT) is where the source came from; a folder of the hub's cache says it itself. ``on_tensor`` is told how
    many tensors of how many are done. Raises GpuRefused, which names the tensor, for a source that is not what it quantises, for
    NaN or infinity, for a target that exists, and for what cannot be read or written; then there is no target.
    """
    upstream = _checked_upstream(source, upstream)
    shape = encoder_shape(source)
    with reading.opened(reading.weight_files(source)) as checkpoint:
        shape.check(checkpoint.headers)
        with _new_folder(target, source) as folder:
            tensors = _write_weights(checkpoint, shape, folder / WEIGHTS_FILE, on_tensor)
            copied, left_out = _copy_others(source, folder, checkpoint)
            made = Record(
                upstream,
                {path.name: record_of(path) for path in checkpoint.files} | copied,
                copied | {WEIGHTS_FILE: record_of(folder / WEIGHTS_FILE)},
                left_out,
                tensors,
            )
            made.write(folder)
    return made


def _write_weights(
    checkpoint: Checkpoint, shape: EncoderShape, path: Path, on_tensor: Callable[[int, int], None] | None
) -> dict[str, TensorRecord]:
    matrices = shape.matrices()
    found: dict[str, TensorRecord] = {}
    with Writer(path, shape.quantised(checkpoint.headers)) as writer:
        for done, name in enumerate(checkpoint.headers, start=1):
            hashes = {kind: hashlib.sha256() for kind in ("source", "written", "scales")}
            for piece in checkpoint.pieces(name):
                if not bool(torch.isfinite(piece).all()):
                    raise GpuRefused(f"The tensor {name!r} holds NaN or infinity.")
                made = {name: piece}
                if name in matrices:
                    made[name], made[name + SCALE_SUFFIX] = reference.quantise(piece)
                    hashes["scales"].update(bytes_of(made[name + SCALE_SUFFIX]))
                hashes["source"].update(bytes_of(piece))
                hashes["written"].update(bytes_of(made[name]))
                for target, values in made.items():
                    writer.write(target, bytes_of(values))
            found[name] = TensorRecord(hashes["written"].hexdigest(), hashes["source"].hexdigest())
            if name in matrices:
                found[name + SCALE_SUFFIX] = TensorRecord(hashes["scales"].hexdigest(), None)
            if on_tensor is not None:
                on_tensor(done, len(checkpoint.headers))
    return found


def _copy_others(source: Path, folder: Path, checkpoint: Checkpoint) -> tuple[dict[str, FileRecord], tuple[str, ...]]:
    """Configuration, tokenizer, card and licence as they are; the names of what else lies there."""
    weights = {path.name for path in checkpoint.files}
    copied: dict[str, FileRecord] = {}
    left_out = []
    for path in sorted(source.iterdir()):
        if path.name in weights or path.name.endswith(".safetensors.index.json"):
            continue
        wanted = path.suffix in _COPIED or path.name.startswith(_COPIED_NAMES)
        if not wanted or not path.is_file():
            left_out.append(path.name)
            continue
        shutil.copyfile(path, folder / path.name)
        copied[path.name] = record_of(folder / path.name)
    return copied, tuple(left_out)


@contextmanager
def _new_folder(target: Path, source: Path) -> Iterator[Path]:
    """A folder beside the target that takes its name at the end; where that does not come, nothing is left of it.

    What a run that was killed has left beside this target goes first, also where the target is refused: it is nobody's.
    """
    remove_left_behind(target.parent, target.name)
    if os.path.lexists(target):
        raise GpuRefused(f"{target} exists; a quantised checkpoint is written into a new folder.")
    with ExitStack() as stack:
        try:
            if target.resolve().is_relative_to(source.resolve()):
                raise GpuRefused(f"{target} lies inside of the folder that it would be made from.")
            folder = stack.enter_context(folder_beside(target))
        except RuntimeError as error:  # pathlib's, up to Python 3.12
            raise GpuRefused(f"Nothing can be written beside {target}: symbolic links lead in a circle.") from error
        except OSError as error:
            raise GpuRefused(f"Nothing can be written beside {target}: {error.strerror}.") from error
        try:
            yield folder
            for path in folder.iterdir():
                _sync(path)
            sync_folder(folder)
            if os.path.lexists(target):
                raise GpuRefused(f"{target} was made by somebody else meanwhile.")
            folder.rename(target)
            sync_folder(target.parent)
        except OSError as error:
            raise GpuRefused(f"The quantised checkpoint could not be written: {error.strerror or error}.") from error


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _checked_upstream(source: Path, upstream: str | None) -> str | None:
    if upstream is None:
        return _of_hub_cache(source)
    if not _UPSTREAM.fullmatch(upstream):
        raise GpuRefused(f"{upstream!r} is not NAME@COMMIT, the commit by its 40 digits.")
    return upstream


def _of_hub_cache(source: Path) -> str | None:
    """The hub's library keeps a commit in ``models--OWNER--NAME/snapshots/COMMIT``."""
    folder = source.absolute()
    named = _HUB_FOLDER.fullmatch(folder.parent.parent.name)
    if named is None or folder.parent.name != "snapshots" or not _COMMIT.fullmatch(folder.name):
        return None
    return f"{named['name'].replace('--', '/')}@{folder.name}"
