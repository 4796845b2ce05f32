"""Bulk text."""

from __future__ import annotations

from benchmark.bulk import Notes


def test_windows_hold_every_note_once_and_one_seed_gives_one_text() -> None:
    windows = list(Notes(3).windows(25, 120, 10))

    texts = [message["content"] for window in windows for message in window if isinstance(message, dict)]
    assert [len(window) for window in windows] == [10, 10, 5]
    assert len(set(map(str, texts))) == 25
    assert windows == list(Notes(3).windows(25, 120, 10))


def test_queries_use_the_words_of_the_notes() -> None:
    words = {
        word
        for window in Notes(3).windows(400, 400, 400)
        for m in window
        if isinstance(m, dict)
        for word in str(m["content"]).split()
    }

    asked = [word for query in Notes(3).queries(50) for word in query.split()]

    assert sum(word in words for word in asked) > len(asked) / 2
