"""Page tokens serve the list that gave them, and nothing else."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.domain.errors import InvalidRequest
from coatcheck.identity.cursor import Cursor
from coatcheck.identity.keyring import Keyring

KEYS = Keyring(bytes(range(32)))
CURSOR = KEYS.cursor(UUID(int=0xA))


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
def test_what_was_sealed_opens(position: str) -> None:
    assert CURSOR.open("sessions", "me", CURSOR.seal("sessions", "me", position)) == position


@pytest.mark.parametrize(
    ("cursor", "listing", "subject"),
    [
        (CURSOR, "entries", "me"),
        (CURSOR, "sessions", "you"),
        (CURSOR, "session", "sme"),
        (KEYS.cursor(UUID(int=0xB)), "sessions", "me"),
        (Cursor(bytes(32)), "sessions", "me"),
    ],
)
def test_a_token_of_another_list_subject_tenant_or_key_is_refused(cursor: Cursor, listing: str, subject: str) -> None:
    token = CURSOR.seal("sessions", "me", "position")

    with pytest.raises(InvalidRequest) as refusal:
        cursor.open(listing, subject, token)

    assert [error.pointer for error in refusal.value.errors] == ["/query/page_token"]


@given(st.text(max_size=600))
def test_a_made_up_token_is_refused(token: str) -> None:
    with pytest.raises(InvalidRequest):
        CURSOR.open("sessions", "me", token)


def test_a_token_with_any_character_changed_is_refused() -> None:
    token = CURSOR.seal("sessions", "me", "2026-11-29T20:15:00+00:00|1")

    for place, char in enumerate(token):
        forged = token[:place] + ("A" if char != "A" else "B") + token[place + 1 :]
        with pytest.raises(InvalidRequest):
            CURSOR.open("sessions", "me", forged)
