"""API keys as text."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.domain.scopes import NIL
from coatcheck.identity.context import CredentialKind
from coatcheck.identity.credentials import (
    MAX_HEADER_CHARS,
    MAX_TOKEN_CHARS,
    bearer_api_key,
    bearer_token,
    new_api_key,
    parse_api_key,
)

KEY = new_api_key(UUID(int=0xA), UUID(int=0xB))


def test_a_key_reads_back_from_its_text_and_from_its_header() -> None:
    assert parse_api_key(KEY.text) == KEY
    for header in (f"Bearer {KEY.text}", f"bearer {KEY.text}", f"BEARER  {KEY.text} "):
        assert bearer_api_key(header) == KEY


def test_a_delegation_is_no_key() -> None:
    made = new_api_key(UUID(int=0xA), UUID(int=0xB), CredentialKind.DELEGATION)

    assert parse_api_key(made.text) == made
    assert parse_api_key("ck" + made.text[2:]) != made
    assert parse_api_key("cx" + made.text[2:]) is None


def test_two_keys_have_two_secrets_of_256_bits() -> None:
    other = new_api_key(UUID(int=0xA), UUID(int=0xB))

    assert KEY.secret != other.secret
    assert len(KEY.secret) == 43


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        KEY.text,
        f"Basic {KEY.text}",
        f"Bearer {KEY.text}x",
        f"Bearer {KEY.text[:-1]}",
        f"Bearer {KEY.text.upper()}",
        f"Bearer x{KEY.text}",
        f"Bearer {KEY.text}, Bearer {KEY.text}",
        f"Bearer {KEY.text}\n",
        f"Bearer\t{KEY.text}",
        "Bearer " + "x" * 100_000,
    ],
)
def test_anything_else_is_no_key(header: str | None) -> None:
    assert bearer_api_key(header) is None


def test_a_key_of_the_nil_tenant_is_no_key() -> None:
    assert parse_api_key(new_api_key(NIL, UUID(int=0xB)).text) is None


def test_a_header_is_read_up_to_its_longest_and_no_further() -> None:
    key, signed = f"Bearer {KEY.text}", "Bearer eyJh.eyJi.c2ln"

    assert bearer_api_key(key.ljust(MAX_HEADER_CHARS)) == KEY
    assert bearer_api_key(key.ljust(MAX_HEADER_CHARS + 1)) is None
    assert bearer_token(signed.ljust(MAX_TOKEN_CHARS)) == "eyJh.eyJi.c2ln"
    assert bearer_token(signed.ljust(MAX_TOKEN_CHARS + 1)) is None


@pytest.mark.parametrize("header", [None, "", f"Bearer {KEY.text}", "Bearer eyJh.eyJi", "Basic eyJh.eyJi.c2ln", "eyJh.eyJi.c2ln"])
def test_what_is_not_signed_is_no_token(header: str | None) -> None:
    assert bearer_token(header) is None


@given(st.text())
def test_no_text_breaks_the_reader(text: str) -> None:
    assert parse_api_key(text) is None
    assert bearer_api_key(text) is None


def test_a_key_is_not_shown_by_its_representation() -> None:
    assert KEY.secret not in f"{KEY!r} {KEY}"
