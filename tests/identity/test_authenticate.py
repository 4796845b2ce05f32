"""One credential, one context; everything else, one refusal."""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import pytest

from coatcheck.domain.errors import Unauthenticated
from coatcheck.identity.authenticate import Authenticator
from coatcheck.identity.context import Credential, CredentialKind
from coatcheck.identity.credentials import ApiKey, new_api_key
from coatcheck.identity.doors import Door
from coatcheck.identity.keyring import Keyring
from coatcheck.identity.operations import MEMBER, Role
from tests.identity.directory import KEYS, NOW, MemoryDirectory
from tests.identity.issuers import Issuers
from tests.identity.issuing import token


@pytest.fixture
def directory() -> MemoryDirectory:
    return MemoryDirectory()


@pytest.fixture
def authenticator(directory: MemoryDirectory) -> Authenticator:
    return Authenticator(directory, KEYS, lambda: NOW)


async def test_a_working_key_gives_the_rights_that_are_stored(directory: MemoryDirectory, authenticator: Authenticator) -> None:
    team, session = UUID(int=0x7), UUID(int=0x9)
    key = directory.add(teams=frozenset({team}), sessions=frozenset({session}), expires_at=NOW + timedelta(seconds=1))

    context = await authenticator.authenticate(f"Bearer {key.text}")

    assert (context.tenant_id, context.principal_id) == (key.tenant_id, UUID(int=1))
    assert context.credential == Credential(CredentialKind.KEY, str(key.key_id), NOW + timedelta(seconds=1))
    assert context.operations == MEMBER
    assert context.sessions == frozenset({session})
    assert context.teams == frozenset({team})
    assert (context.permission_revision, context.own_revision) == (3, 2)


async def test_a_token_is_its_verifiers_to_judge_and_a_key_never_is(directory: MemoryDirectory) -> None:
    issuers = Issuers()
    both = Authenticator(directory, KEYS, lambda: NOW, issuers.verifier)
    key, signed = directory.add(), token()

    assert (await both.authenticate(f"Bearer {signed}")).credential.kind is CredentialKind.TOKEN
    assert (await both.authenticate(f"Bearer {signed}", Door.MCP)).credential.door is Door.MCP
    assert (await both.authenticate(f"Bearer {key.text}")).credential.kind is CredentialKind.KEY
    assert await _refusal(both, f"Bearer {signed[:-4]}AAAA") == Unauthenticated().detail
    assert directory.asked == [(key.tenant_id, key.key_id)]


async def test_where_there_are_no_issuers_a_token_is_no_credential(authenticator: Authenticator) -> None:
    assert await _refusal(authenticator, f"Bearer {token()}") == Unauthenticated().detail


async def test_an_operation_that_this_release_does_not_know_is_not_granted(
    directory: MemoryDirectory, authenticator: Authenticator
) -> None:
    key = directory.add(operations=frozenset({"read", "everything", "*"}))

    context = await authenticator.authenticate(f"Bearer {key.text}")

    assert context.operations == {"read"}


def _wrong_secret(key: ApiKey) -> str:
    return new_api_key(key.tenant_id, key.key_id).text


async def _refusal(authenticator: Authenticator, header: str | None) -> str:
    with pytest.raises(Unauthenticated) as refusal:
        await authenticator.authenticate(header)
    assert refusal.value.__cause__ is None
    return refusal.value.detail


@pytest.mark.parametrize(
    "text",
    [
        _wrong_secret,
        lambda key: ApiKey(UUID(int=0xB), key.key_id, key.secret).text,
        lambda key: ApiKey(key.tenant_id, UUID(int=0xFF), key.secret).text,
        lambda key: key.text[:-1],
        lambda key: "x",
    ],
    ids=["wrong secret", "other tenant", "unknown key", "cut short", "no key at all"],
)
async def test_a_credential_that_proves_nothing_is_refused_in_the_same_words(
    directory: MemoryDirectory, authenticator: Authenticator, text: Callable[[ApiKey], str]
) -> None:
    key = directory.add()

    assert await _refusal(authenticator, f"Bearer {text(key)}") == Unauthenticated().detail
    assert await _refusal(authenticator, None) == Unauthenticated().detail


@pytest.mark.parametrize(
    "changes",
    [
        {"revoked_at": NOW},
        {"revoked_at": NOW + timedelta(days=1)},
        {"expires_at": NOW},
        {"principal_active": False},
        {"tenant_active": False},
        {"key_version": 9},
        {"secret_hash": b""},
        {"tenant_id": UUID(int=0xB)},
    ],
    ids=lambda changes: str(*changes),
)
async def test_a_right_secret_of_a_key_that_does_not_stand_is_refused_in_the_same_words(
    directory: MemoryDirectory, authenticator: Authenticator, changes: dict[str, object]
) -> None:
    key = directory.add(**changes)  # type: ignore[arg-type]

    assert await _refusal(authenticator, f"Bearer {key.text}") == Unauthenticated().detail


async def test_T02_what_is_no_key_does_not_reach_the_directory(directory: MemoryDirectory, authenticator: Authenticator) -> None:
    for header in (None, "", "Basic eA==", "Bearer nonsense"):
        with pytest.raises(Unauthenticated):
            await authenticator.authenticate(header)

    assert directory.asked == []


async def test_a_key_made_under_the_previous_root_key_still_proves_itself(directory: MemoryDirectory) -> None:
    key = directory.add()
    rotated = Authenticator(directory, Keyring(bytes(32), version=2, previous={1: bytes(range(32))}), lambda: NOW)

    context = await rotated.authenticate(f"Bearer {key.text}")

    assert context.credential.reference == str(key.key_id)


async def test_every_refusal_takes_the_time_of_one_proof(directory: MemoryDirectory, authenticator: Authenticator) -> None:
    """Medians within a factor of two, measured in turns: a skipped proof would make the shortest path several times shorter."""
    key = directory.add()
    directory.add(key=0x3, revoked_at=NOW)
    unknown = ApiKey(key.tenant_id, UUID(int=0xFF), key.secret)
    revoked = ApiKey(key.tenant_id, UUID(int=0x3), key.secret)
    headers = [f"Bearer {text}" for text in (_wrong_secret(key), unknown.text, revoked.text, "nonsense")]
    durations: dict[str, list[float]] = {header: [] for header in headers}

    for header in headers * 300:
        started = time.perf_counter()
        with pytest.raises(Unauthenticated):
            await authenticator.authenticate(header)
        durations[header].append(time.perf_counter() - started)

    medians = [statistics.median(taken) for taken in durations.values()]
    assert max(medians) / min(medians) < 2


async def test_a_delegation_is_looked_up_among_delegations_and_counts_at_its_doors_alone(
    directory: MemoryDirectory, authenticator: Authenticator
) -> None:
    key = directory.add()
    made = dataclasses.replace(key, kind=CredentialKind.DELEGATION)
    record = directory.records[key.tenant_id, key.key_id]
    at_mcp = dataclasses.replace(record, rights=dataclasses.replace(record.rights, doors=frozenset({Door.MCP})))

    assert await _refusal(authenticator, f"Bearer {made.text}") == Unauthenticated().detail
    directory.delegations[key.tenant_id, key.key_id] = at_mcp

    context = await authenticator.authenticate(f"Bearer {made.text}", Door.MCP)
    assert context.credential.kind is CredentialKind.DELEGATION
    assert await _refusal(authenticator, f"Bearer {made.text}") == Unauthenticated().detail


@pytest.mark.parametrize("role", list(Role))
async def test_a_role_is_the_most_that_a_key_can_do(directory: MemoryDirectory, authenticator: Authenticator, role: Role) -> None:
    key = directory.add(operations=frozenset({"read", "scan"}), role=role)

    context = await authenticator.authenticate(f"Bearer {key.text}")

    assert context.operations == ({"read"} if role is Role.MEMBER else {"read", "scan"})
