"""Reads a quantised checkpoint and its source again, and says where the one is not what the other makes."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from coatcheck.gpu.fp8 import reading, record, reference
from coatcheck.gpu.fp8.config import encoder_shape
from coatcheck.gpu.fp8.layout import SCALE_SUFFIX, WEIGHTS_FILE
from coatcheck.gpu.fp8.reading import Checkpoint, bytes_of


@dataclass(frozen=True, slots=True)
class Audit:
    """``findings`` name what is wrong; without any, the checkpoint is what its record and its source say."""

    upstream: str | None
    quantised: int
    kept: int
    source_bytes: int
    """Of the weights' files, as ``quantised_bytes``."""
    quantised_bytes: int
    largest_error: float
    """Root mean square of what rounding took, over that of the weights, in the matrix where it is the largest."""
    findings: tuple[str, ...]

    @property
    def reduction(self) -> float:
        return 1 - self.quantised_bytes / self.source_bytes


def audit(source: Path, quantised: Path) -> Audit:
    """Raises GpuRefused where one of the two cannot be read as what it is said to be."""
    made = record.read(quantised)
    shape = encoder_shape(source)
    weights = quantised / WEIGHTS_FILE
    source_files = reading.weight_files(source)
    with reading.opened(source_files) as original, reading.opened((weights,)) as checkpoint:
        shape.check(original.headers)
        findings = [*_files(made.source_files, source, "is another one than the checkpoint was made from")]
        findings += _files(made.files, quantised, "is not what was written")
        expected = shape.quantised(original.headers)
        findings += [f"The tensor {name!r} is missing." for name in expected if name not in checkpoint.headers]
        findings += [f"The tensor {name!r} is not known." for name in checkpoint.headers if name not in expected]
        matrices, largest_error, quantised_count, kept = shape.matrices(), 0.0, 0, 0
        for name in original.headers:
            parts = (name, name + SCALE_SUFFIX) if name in matrices else (name,)
            present = [part for part in parts if part in checkpoint.headers]
            wrong = [part for part in present if checkpoint.headers[part] != expected[part]]
            findings += [f"The tensor {part!r} is {checkpoint.headers[part]}, not {expected[part]}." for part in wrong]
            if wrong or len(present) < len(parts):
                continue
            if name in matrices:
                quantised_count += 1
                problem, error = _matrix(name, original, checkpoint, made)
                largest_error = max(largest_error, error)
            else:
                kept += 1
                problem = _kept(name, original, checkpoint, made)
            if problem:
                findings.append(f"The tensor {name!r} {problem}.")
        total = sum(path.stat().st_size for path in source_files)
    return Audit(made.upstream, quantised_count, kept, total, weights.stat().st_size, largest_error, tuple(findings))


def _files(listed: Mapping[str, record.FileRecord], folder: Path, said: str) -> list[str]:
    findings = []
    for name, expected in listed.items():
        try:
            if Path(name).name != name or record.record_of(folder / name) != expected:
                findings.append(f"The file {name!r} {said}.")
        except OSError:
            findings.append(f"The file {name!r} cannot be read in {folder}.")
    return findings


def _kept(name: str, original: Checkpoint, checkpoint: Checkpoint, made: record.Record) -> str | None:
    digest = hashlib.sha256()
    for piece, copy in zip(original.pieces(name), checkpoint.pieces(name), strict=True):
        if bytes_of(piece) != bytes_of(copy):
            return "is not byte-equal to its source"
        digest.update(bytes_of(copy))
    return _recorded(name, digest.hexdigest(), made)


def _matrix(name: str, original: Checkpoint, checkpoint: Checkpoint, made: record.Record) -> tuple[str | None, float]:
    rows = original.rows_at_once(name)
    lost, whole = 0.0, 0.0
    digests = {part: hashlib.sha256() for part in (name, name + SCALE_SUFFIX)}
    found = (checkpoint.pieces(part, rows) for part in digests)
    for piece, codes, scales in zip(original.pieces(name, rows), *found, strict=True):
        expected_codes, expected_scales = reference.quantise(piece)
        if bytes_of(codes) != bytes_of(expected_codes) or not torch.equal(scales, expected_scales):
            return "is not what its source is quantised to", 0.0
        for digest, part in zip(digests.values(), (codes, scales), strict=True):
            digest.update(bytes_of(part))
        wide = piece.double()
        lost += float((codes.double() * scales.double() - wide).square().sum())
        whole += float(wide.square().sum())
    problems = (_recorded(part, digest.hexdigest(), made) for part, digest in digests.items())
    return next((one for one in problems if one), None), math.sqrt(lost / whole) if whole else 0.0


def _recorded(name: str, sha256: str, made: record.Record) -> str | None:
    recorded = made.tensors.get(name)
    return None if recorded is not None and recorded.sha256 == sha256 else "has another hash in the record"
