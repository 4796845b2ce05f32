"""Who reads and who writes what has a visibility: the acl keys, all of them and no other."""

from __future__ import annotations

from uuid import UUID

import pytest

from coatcheck.domain.errors import InvalidRequest
from coatcheck.domain.sessions import Visibility

OWNER, GUEST, TEAM = UUID(int=1), UUID(int=2), UUID(int=7)
ME, YOU, US = f"p:{OWNER}", f"p:{GUEST}", f"t:{TEAM}"


@pytest.mark.parametrize(
    ("text", "writers", "readers"),
    [
        ("conversation", (ME, YOU), (ME, YOU)),
        ("personal", (ME,), (ME,)),
        (f"team:{TEAM}", (ME, US), (ME, US)),
        ("public", (ME,), (ME, "public")),
    ],
)
def test_a_visibility_names_its_readers_and_its_writers(text: str, writers: tuple[str, ...], readers: tuple[str, ...]) -> None:
    visibility = Visibility.parse(text)

    assert visibility.writers(OWNER, (OWNER, GUEST)) == writers
    assert visibility.readers(OWNER, (OWNER, GUEST)) == readers
    assert str(visibility) == text


@pytest.mark.parametrize("text", ["", "everybody", "Public", "PUBLIC", "tenant", "team", "team:", "team:everybody", "public:x"])
def test_any_other_word_is_no_visibility(text: str) -> None:
    with pytest.raises(InvalidRequest):
        Visibility.parse(text)
