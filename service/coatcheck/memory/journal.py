"""The erasure journal: what was erased, outside the database, so that a restored backup cannot bring it back.

One file a process in the journal's directory, one JSON line an erasure: ids and keyed hashes only, never content. A line is
on disk (fsync) before the first point or row goes.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal
from uuid import UUID

from coatcheck.domain.errors import RefusedToStart
from coatcheck.ops import ordinary_files
from coatcheck.ops.faults import reach
from coatcheck.ops.folders import sync_folder


@dataclass(frozen=True, slots=True)
class JournalLine:
    """One erasure. ``target_id`` is a session's, a manifest's or a tenant's id; of a tenant's line ``session_id`` is that too."""

    tenant_id: UUID
    kind: Literal["session", "manifest", "tenant"]
    target_id: UUID
    session_id: UUID
    erased_at: datetime


class ErasureJournal:
    """Appends durably; reads every file of the directory. Each line carries an HMAC under the installation's journal key."""

    def __init__(self, directory: Path, owner: str, key: bytes, *earlier: bytes) -> None:
        self._directory = directory
        self._path = directory / f"{owner}.ndjson"
        self._key = key
        self._earlier = earlier
        self._lock = asyncio.Lock()

    async def append(self, line: JournalLine) -> str:
        """Returns the line's HMAC once the line is on disk."""
        async with self._lock:
            return await asyncio.to_thread(self._append, line)

    def lines(self) -> Iterator[JournalLine]:
        """Every whole line of every process's file. A torn last line (a crash inside a write) was never acted on.

        Raises RefusedToStart for a file that cannot be read, and for a line that was altered or written under another root key.
        """
        if not self._directory.is_dir():
            return
        for path in sorted(self._directory.glob("*.ndjson")):
            try:
                with ordinary_files.opened(path) as file:
                    raw_lines = file.read().split(b"\n")
            except OSError as error:
                raise RefusedToStart(f"The erasure journal {path.name} cannot be read ({error.strerror}).") from error
            for raw in raw_lines[:-1]:
                line = self._read(path, raw) if raw else None
                if line is not None:
                    yield line

    def _append(self, line: JournalLine) -> str:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = not self._path.exists()
        body = json.dumps(_plain(line), sort_keys=True)
        mac = _mac(self._key, body)
        raw = json.dumps({"line": body, "mac": mac}).encode() + b"\n"
        with open(self._path, "ab", buffering=0) as file:
            os.chmod(self._path, 0o600)
            if file.tell() and not _ends_with_newline(self._path):
                raw = b"\n" + raw
            written = file.write(raw)
            if written != len(raw):
                raise OSError("the erasure journal took only part of a line")
            reach("inside-journal")
            os.fsync(file.fileno())
        if fresh:
            sync_folder(self._directory)
        return mac

    def _read(self, path: Path, raw: bytes) -> JournalLine | None:
        try:
            outer = json.loads(raw)
            body = outer["line"]
            macs = [_mac(key, body) for key in (self._key, *self._earlier)]
            if not any([hmac.compare_digest(outer["mac"], mac) for mac in macs]):
                raise RefusedToStart(
                    f"The erasure journal {path.name} holds a line that this root key did not write. "
                    "Where it was rotated, the key of today is needed, and those before it."
                )
            values = json.loads(body)
        except (ValueError, KeyError, TypeError):
            # A line torn by a crash, then followed by a whole one: its erasure had not begun, and its outbox row is still there.
            return None
        return JournalLine(
            UUID(values["tenant_id"]), values["kind"], UUID(values["target_id"]), UUID(values["session_id"]),
            datetime.fromisoformat(values["erased_at"]),
        )  # fmt: skip


def _mac(key: bytes, body: str) -> str:
    return hmac.new(key, body.encode(), hashlib.sha256).hexdigest()


def _plain(line: JournalLine) -> dict[str, str]:
    return {name: str(value) if not isinstance(value, datetime) else value.isoformat() for name, value in asdict(line).items()}


def _ends_with_newline(path: Path) -> bool:
    with open(path, "rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"
