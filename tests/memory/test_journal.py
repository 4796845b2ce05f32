"""The erasure journal: durable, readable by the next process, refusing what it did not write."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest

from coatcheck.domain.errors import RefusedToStart
from coatcheck.memory.journal import ErasureJournal, JournalLine

KEY = bytes(range(32))


def line(number: int) -> JournalLine:
    return JournalLine(UUID(int=1), "session", UUID(int=number), UUID(int=number), datetime(2026, 11, 1, tzinfo=UTC))


async def test_what_was_appended_is_read_by_another_process(tmp_path: Path) -> None:
    first, second = ErasureJournal(tmp_path, "one", KEY), ErasureJournal(tmp_path, "two", KEY)
    await first.append(line(1))
    await second.append(line(2))
    await first.append(line(3))

    read = list(ErasureJournal(tmp_path, "three", KEY).lines())

    assert sorted(read, key=lambda one: one.target_id) == [line(1), line(2), line(3)]


async def test_a_line_torn_by_a_crash_is_passed_over_and_the_next_one_stands_whole(tmp_path: Path) -> None:
    journal = ErasureJournal(tmp_path, "one", KEY)
    await journal.append(line(1))
    torn = tmp_path / "one.ndjson"
    torn.write_bytes(torn.read_bytes() + b'{"line": "{\\"erased')

    await journal.append(line(2))

    assert list(journal.lines()) == [line(1), line(2)]


async def test_an_altered_line_refuses_to_start(tmp_path: Path) -> None:
    journal = ErasureJournal(tmp_path, "one", KEY)
    await journal.append(line(1))
    path = tmp_path / "one.ndjson"
    path.write_bytes(path.read_bytes().replace(b"session", b"Session", 1))

    with pytest.raises(RefusedToStart):
        list(journal.lines())


async def test_another_root_key_refuses_to_start(tmp_path: Path) -> None:
    await ErasureJournal(tmp_path, "one", KEY).append(line(1))

    with pytest.raises(RefusedToStart, match="the key of today"):
        list(ErasureJournal(tmp_path, "one", bytes(32)).lines())


async def test_the_file_is_its_owners_alone(tmp_path: Path) -> None:
    await ErasureJournal(tmp_path / "journal", "one", KEY).append(line(1))

    assert (tmp_path / "journal" / "one.ndjson").stat().st_mode & 0o077 == 0


def test_no_journal_holds_nothing(tmp_path: Path) -> None:
    assert list(ErasureJournal(tmp_path / "absent", "one", KEY).lines()) == []
