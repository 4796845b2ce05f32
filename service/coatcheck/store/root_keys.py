"""Which root keys there were: versions and fingerprints, nothing that leads back to a key."""

from __future__ import annotations

import sqlalchemy as sa

from coatcheck.store.database import DirectoryTransaction

_ALL = sa.text("SELECT version, fingerprint FROM root_keys ORDER BY version")

_INSERT = sa.text("INSERT INTO root_keys (version, fingerprint) VALUES (:version, :fingerprint) ON CONFLICT DO NOTHING")

_OF_TENANTS = sa.text("UPDATE tenants SET key_fingerprint = :fingerprint WHERE key_fingerprint <> :fingerprint")


async def versions(tx: DirectoryTransaction) -> dict[int, str]:
    """Fingerprints by version, oldest first."""
    return {row.version: row.fingerprint for row in await tx.connection.execute(_ALL)}


async def introduce(tx: DirectoryTransaction, version: int, fingerprint: str) -> None:
    """The newest from this commit on; what every tenant is known to be written under. Of two that introduce, one does."""
    await tx.connection.execute(_INSERT, {"version": version, "fingerprint": fingerprint})
    await tx.connection.execute(_OF_TENANTS, {"fingerprint": fingerprint})
