"""The contract's headers, strictly."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.api import headers
from coatcheck.domain.errors import InvalidRequest, Unauthenticated


def key_of(*values: bytes) -> str | None:
    return headers.idempotency_key([(b"Idempotency-Key", value) for value in values])


@pytest.mark.parametrize(
    ("value", "key"),
    [
        (b"8e03978e", "8e03978e"),
        (b'"8e03978e"', "8e03978e"),
        (b'  "8e03978e" ', "8e03978e"),
        (rb'"a\"b\\c"', r'a"b\c'),
        (rb"a\b", r"a\b"),
        (b'a"b', 'a"b'),
        (b"x" * 255, "x" * 255),
        (b'"' + b"x" * 255 + b'"', "x" * 255),
    ],
)
def test_a_key_is_read_bare_and_quoted(value: bytes, key: str) -> None:
    assert key_of(value) == key


def test_no_key_is_none() -> None:
    assert key_of() is None


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b'""',
        b"two words",
        b'"two words"',
        b'"open',
        b'"a"b"',
        rb'"a\n"',
        rb'"a\"',
        b'"a";v=1',
        b"x" * 256,
        b'"' + b"x" * 256 + b'"',
        "schl\u00fcssel".encode("latin-1"),
        b"a\x00b",
        b"a\tb",
    ],
)
def test_any_other_key_is_refused_without_being_repeated(value: bytes) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        key_of(value)

    assert [error.pointer for error in refusal.value.errors] == ["/header/idempotency-key"]
    assert len(value) < 3 or value.decode("latin-1") not in refusal.value.detail


def test_two_keys_are_refused() -> None:
    with pytest.raises(InvalidRequest):
        key_of(b"a", b"a")


@given(st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=255))
def test_every_visible_key_is_the_same_bare_and_quoted(key: str) -> None:
    quoted = '"' + key.replace("\\", "\\\\").replace('"', '\\"') + '"'

    assert key_of(quoted.encode()) == key
    if not key.startswith('"'):
        assert key_of(key.encode()) == key


@pytest.mark.parametrize(("value", "seconds"), [(b"1", 1.0), (b"0.5", 0.5), (b"600", 600.0), (b" 30 ", 30.0), (b"007", 7.0)])
def test_a_deadline_is_seconds(value: bytes, seconds: float) -> None:
    assert headers.deadline_s([(b"coatcheck-deadline", value)], 30, 600) == seconds


@pytest.mark.parametrize(
    "value",
    [b"", b"0", b"0.0", b"-1", b"+1", b"601", b"600.1", b"nan", b"inf", b"1e2", b"1s", b"0x1", b"9" * 30, "\u0663".encode()],
)
def test_any_other_deadline_is_refused(value: bytes) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        headers.deadline_s([(b"coatcheck-deadline", value)], 30, 600)

    assert refusal.value.status == 422
    assert [error.pointer for error in refusal.value.errors] == ["/header/coatcheck-deadline"]


def test_without_a_deadline_the_services_own_counts() -> None:
    assert headers.deadline_s([], 30, 600) == 30


def test_several_credentials_are_none() -> None:
    assert headers.authorization([]) is None
    assert headers.authorization([(b"Authorization", b" Bearer x ")]) == "Bearer x"
    with pytest.raises(Unauthenticated):
        headers.authorization([(b"authorization", b"Bearer x"), (b"Authorization", b"Bearer y")])
