"""What strings look like."""

from __future__ import annotations

import time

import pytest

from coatcheck.formats.strings import class_of, data_url_media, is_base64, is_ciphertext, is_label


@pytest.mark.parametrize("value", ["", "call_1", "toolu_01AbC", "application/vnd.x+json", "a" * 200, "rs_6:1|2"])
def test_labels(value: str) -> None:
    assert is_label(value)


@pytest.mark.parametrize("value", ["two words", "a" * 201, "line\n", "日本", "nul\0", "\ud83d", 5, None])
def test_no_labels(value: str | int | None) -> None:
    assert not is_label(value)


def test_ciphertext_has_no_white_space() -> None:
    assert is_ciphertext("gAAAAABn-_=")
    assert not is_ciphertext("not sealed")
    assert not is_ciphertext("")


def test_base64_may_have_line_ends_and_two_pads() -> None:
    assert is_base64("AAAA\r\nBBBB==\n")
    assert not is_base64("AAAA===")
    assert not is_base64("AA_A")
    assert not is_base64("")


def test_the_media_type_of_a_data_url_with_parameters() -> None:
    assert data_url_media("data:Image/SVG+xml;charset=utf-8;base64,AAAA") == "image/svg+xml"
    assert data_url_media("data:image/png,AAAA") is None
    assert data_url_media("data:image/png;base64,AA A") is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("data:image/png;base64,AAAA", "blob"),
        ("data:application/pdf;base64,AAAA", "blob"),
        ("data:application/json;base64,AAAA", "content"),
        ("data:image/png;base64,", "content"),
        ("AAAA", "content"),
    ],
)
def test_only_binary_media_are_blobs_at_no_known_place(value: str, expected: str) -> None:
    assert class_of(value) == expected


@pytest.mark.parametrize(
    "value", ["A" * 2_000_000 + "!", "A\n" * 1_000_000 + "!", "data:a/b" + ";a=b" * 500_000, "A" + "=" * 2_000_000]
)
def test_long_strings_are_judged_in_linear_time(value: str) -> None:
    started = time.thread_time()

    class_of(value)
    is_base64(value)
    is_label(value)

    assert time.thread_time() - started < 5.0
