"""A session that is made: whose it is, to whom its maker may show it, and what it may be called."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import cast
from uuid import UUID

import pytest

from coatcheck.compaction.redaction.redactor import Redactor
from coatcheck.domain.errors import Forbidden, InvalidRequest
from coatcheck.domain.sessions import Session, Visibility
from coatcheck.identity.keyring import Keyring
from coatcheck.identity.operations import MEMBER
from coatcheck.memory import access
from coatcheck.memory.collaborators import Collaborators
from tests import apps
from tests.compaction.redaction.fakes import Fakes
from tests.identity.test_context import context
from tests.tenants import EPOCH


def test_nobody_shows_a_session_to_others_without_the_right_to() -> None:
    team = UUID(int=7)
    member, publisher = (
        context(operations=MEMBER - {"publish"}, teams=frozenset({team})),
        context(operations=frozenset({"publish"})),
    )

    for visibility in ("conversation", "personal", f"team:{team}"):
        access.require_visibility(member, Visibility.parse(visibility))
    access.require_visibility(publisher, Visibility.parse("public"))
    with pytest.raises(Forbidden, match="publish"):
        access.require_visibility(member, Visibility.parse("public"))
    with pytest.raises(Forbidden, match="member of that team"):
        access.require_visibility(publisher, Visibility.parse(f"team:{team}"))
    with pytest.raises(Forbidden, match="member of that team"):
        access.require_visibility(member, Visibility.parse(f"team:{UUID(int=8)}"))


@dataclass(frozen=True)
class Parts:
    """What a new session is made with."""

    keyring: Keyring
    redactor: Redactor

    def new_id(self) -> UUID:
        return UUID(int=0xA1)

    def clock(self) -> datetime:
        return EPOCH


async def made(name: str, visibility: str = "conversation", session_id: UUID | None = None) -> Session:
    parts = cast(Collaborators, Parts(Keyring(bytes(32)), apps.rules()))
    who = context(teams=frozenset({UUID(int=7)}))
    return await access.new_session(parts, who, name, Visibility.parse(visibility), session_id)


async def test_a_new_session_is_its_callers_alone_until_it_says_otherwise() -> None:
    me, team = f"p:{UUID(int=2)}", f"t:{UUID(int=7)}"
    rights = {"conversation": ((me,), (me,)), "public": ((me, "public"), (me,)), f"team:{UUID(int=7)}": ((me, team), (me, team))}

    for visibility, (readers, writers) in rights.items():
        assert await made("checkout-bot/42", visibility) == Session(
            session_id=UUID(int=0xA1),
            name="checkout-bot/42",
            owner_id=UUID(int=2),
            visibility=Visibility.parse(visibility),
            acl=readers,
            writers=writers,
            participants=(),
            created_at=EPOCH,
        )
    assert (await made("x", session_id=UUID(int=5))).session_id == UUID(int=5)


async def test_a_name_that_looks_like_a_secret_is_refused_and_not_repeated() -> None:
    secret = "ghp_" + Fakes(3).opaque(36)

    with pytest.raises(InvalidRequest) as caught:
        await made(secret)

    (error,) = caught.value.errors
    assert (error.pointer, f"/session {error.detail}.") == ("/session", caught.value.detail)
    assert error.detail.startswith("looks like a secret")
    assert secret not in str(caught.value)
