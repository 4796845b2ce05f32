"""A directory of credentials in memory, for tests of authentication itself; the store's own is tested with the store."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from uuid import UUID

from coatcheck.identity.credentials import ApiKey, new_api_key
from coatcheck.identity.keyring import Keyring
from coatcheck.identity.operations import MEMBER, Role
from coatcheck.identity.ports import KeyRecord, RightsRecord

NOW = datetime(2026, 11, 29, 20, 15, tzinfo=UTC)
KEYS = Keyring(bytes(range(32)))


class MemoryDirectory:
    """Counts how often it is asked."""

    def __init__(self) -> None:
        self.records: dict[tuple[UUID, UUID], KeyRecord] = {}
        self.delegations: dict[tuple[UUID, UUID], KeyRecord] = {}
        self.asked: list[tuple[UUID, UUID]] = []

    async def find_key(self, tenant_id: UUID, key_id: UUID) -> KeyRecord | None:
        self.asked.append((tenant_id, key_id))
        return self.records.get((tenant_id, key_id))

    async def find_delegation(self, tenant_id: UUID, delegation_id: UUID) -> KeyRecord | None:
        self.asked.append((tenant_id, delegation_id))
        return self.delegations.get((tenant_id, delegation_id))

    def add(self, tenant: int = 0xA, principal: int = 0x1, key: int = 0x2, **changes: object) -> ApiKey:
        """A working key of a member, with changes of it or of its rights."""
        made = new_api_key(UUID(int=tenant), UUID(int=key))
        rights = RightsRecord(
            tenant_id=made.tenant_id,
            principal_id=UUID(int=principal),
            operations=MEMBER,
            sessions=None,
            expires_at=None,
            revoked_at=None,
            role=Role.MEMBER,
            principal_active=True,
            tenant_active=True,
            teams=frozenset(),
            permission_revision=3,
            own_revision=2,
        )
        own = {name: changes.pop(name) for name in ("key_version", "secret_hash") if name in changes}
        rights = dataclasses.replace(rights, **changes)  # type: ignore[arg-type]
        record = KeyRecord(made.key_id, KEYS.key_hash(made.tenant_id, made.secret), 1, rights)
        self.records[made.tenant_id, made.key_id] = dataclasses.replace(record, **own)  # type: ignore[arg-type]
        return made
