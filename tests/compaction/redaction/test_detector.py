"""The scanner behind the redactor: chunks, failures, threads, caches, revisions."""

from __future__ import annotations

import stat
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from coatcheck.compaction.redaction import Redactor, detector
from coatcheck.compaction.redaction.detector import CHUNK_CHARS, OVERLAP_CHARS
from coatcheck.domain.errors import RedactionFailed
from tests import own_rules
from tests.compaction.redaction.fakes import KEYS, Fakes, left_of

FAKES = Fakes(41)


class _Broken:
    """A scanner that fails as kingfisher's does when its deadline is over."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def scan(self, data: bytes, *, timeout: float | None) -> list[object]:
        raise self._error


@pytest.mark.parametrize("error", [TimeoutError("scan deadline exceeded"), RuntimeError("cancelled"), ValueError("bad")])
def test_a_scanner_that_fails_fails_the_redaction(tmp_path: Path, error: Exception) -> None:
    redactor = Redactor(tmp_path)
    redactor._detector._scanner = _Broken(error)  # type: ignore[assignment]

    with pytest.raises(RedactionFailed) as failed:
        redactor.redact_text("password=hunter2hunter2", KEYS)

    assert "hunter2" not in failed.value.detail


def test_a_long_text_that_is_not_done_in_time_fails_the_redaction(redactor: Redactor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detector, "SCAN_TIMEOUT_S", 1e-6)

    with pytest.raises(RedactionFailed):
        redactor.redact_text("password=hunter2hunter2\n" * 1_000, KEYS)


@pytest.mark.parametrize("before", ["password ändern ", "password для ", "password 漢字\n", "set token é\n", "Password 😀 "])
@pytest.mark.parametrize("times", [1, 3, 50])
def test_a_match_that_ends_inside_a_character_moves_no_other(redactor: Redactor, before: str, times: int) -> None:
    token, password = FAKES.github(), FAKES.password(14)

    redacted = redactor.redact_text(f"{before * times}\nkey {token} end\nDB_PASSWORD={password}\nlast line", KEYS).text

    assert left_of(token, redacted) < 4
    assert left_of(password, redacted) < 4
    assert redacted.startswith(f"{before * times}\nkey [REDACTED:github-token:")
    assert redacted.endswith("]\nlast line")


@pytest.mark.parametrize("offset", range(-60, 61, 12))
def test_a_secret_across_the_edge_of_a_chunk_goes(redactor: Redactor, offset: int) -> None:
    token = FAKES.github()
    for edge in (CHUNK_CHARS, CHUNK_CHARS - OVERLAP_CHARS // 4, CHUNK_CHARS - OVERLAP_CHARS):
        filler = "word and é " * ((edge + offset) // 11)
        text = filler + " " * (edge + offset - len(filler)) + f"key {token} end " + "more text " * 1_000

        redacted = redactor.redact_text(text, KEYS)

        assert redacted.counts == {"github-token": 1}
        assert token[4:10] not in redacted.text


def test_a_token_longer_than_a_chunk_goes_to_its_end(redactor: Redactor) -> None:
    value = FAKES.hexadecimal(3 * CHUNK_CHARS)

    redacted = redactor.redact_text(f"SESSION_TOKEN={value}\nPORT=8080\n", KEYS).text

    assert redacted.startswith("SESSION_TOKEN=[REDACTED:token:")
    assert redacted.endswith("]\nPORT=8080\n")
    assert len(redacted) < 100


def test_many_short_texts_are_scanned_together_and_kept_apart(tmp_path: Path, redactor: Redactor) -> None:
    tokens = [FAKES.github() for _ in range(50)]
    texts = [text for token in tokens for text in ("the bitly token", token, "пароль", FAKES.hexadecimal(40))]

    hits = redactor._detector.scan(texts)

    found = [{text[hit.start : hit.end] for hit in of_text} for text, of_text in zip(texts, hits, strict=True)]
    assert all(token in of_text for token, of_text in zip(tokens, found[1::4], strict=True))
    assert not any(found[0::4])
    assert not any(found[2::4])
    assert not any(found[3::4])


def test_threads_share_one_redactor(redactor: Redactor) -> None:
    texts = [f"line {number}\nkey {FAKES.github()}\npassword: {FAKES.password()}\n" for number in range(40)]
    alone = [redactor.redact_text(text, KEYS).text for text in texts]

    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda text: redactor.redact_text(text, KEYS).text, texts * 3))

    assert together == alone * 3


def test_building_a_redactor_loads_nothing(tmp_path: Path) -> None:
    redactor = Redactor(tmp_path / "rules")

    assert redactor.revision == Redactor(tmp_path / "other").revision
    assert not (tmp_path / "rules").exists()


def test_a_cache_that_others_could_write_is_closed_and_one_that_cannot_be_made_is_done_without(tmp_path: Path) -> None:
    open_to_all = tmp_path / "open"
    open_to_all.mkdir(mode=0o755)
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")

    assert detector._private(open_to_all) == open_to_all
    assert stat.S_IMODE(open_to_all.stat().st_mode) == 0o700
    assert detector._private(in_the_way / "rules") is None


@pytest.mark.accept
def test_a_cold_compile_is_quick_enough_private_and_done_once(tmp_path: Path) -> None:
    cache = tmp_path / "rules"
    extra = own_rules.write(tmp_path)
    # Processor time: a machine with other work on it compiles no more.
    began = time.thread_time()
    redactor = Redactor(cache, own_rules=extra)
    redactor.warm()
    cold_s = time.thread_time() - began

    began = time.thread_time()
    Redactor(cache, own_rules=extra).warm()
    warm_s = time.thread_time() - began

    assert redactor.redact_text("take badge-204816, please", KEYS).text.startswith("take [REDACTED:mine-staff-number:")
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
    assert cold_s < 25
    assert warm_s < cold_s / 2
