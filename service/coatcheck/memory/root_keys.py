"""The root keys of an installation: which version the given one is, whether it is a new one, whether an old one is missing.

A new key with the ones before it beside it is a rotation: new tags, digests and hashes are made under it from then on, and what the
earlier ones made is verified with them. Nothing is made anew, so that they are needed for as long as the data is.
"""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from coatcheck.domain.errors import RefusedToStart
from coatcheck.identity.keyring import Keyring
from coatcheck.store import directory, root_keys
from coatcheck.store.database import Database, DirectoryTransaction

log = structlog.get_logger(__name__)
FIRST = 1


async def open_keyring(database: Database, current: bytes, previous: Sequence[bytes] = ()) -> Keyring:
    """Raises RefusedToStart when a key that something was written under is not here, or when the keys are in another order."""
    keys = {Keyring(key).fingerprint(): key for key in (*previous, current)}
    given = Keyring(current).fingerprint()
    known = await database.directory(lambda tx: _known(tx, given, list(keys)))
    missing = [str(version) for version, fingerprint in known.items() if fingerprint not in keys]
    if missing:
        raise RefusedToStart(
            f"The data was written under another root key (version {', '.join(missing)}): give the service that key, or where this"
            " one replaces it, give the earlier ones as COATCHECK_ROOT_KEY_PREVIOUS."
        )
    newest = max(known)
    if given not in known.values():
        newest += 1
        await database.directory(lambda tx: root_keys.introduce(tx, newest, given))
        known = await database.directory(root_keys.versions)
        log.warning("root_key.rotated", version=newest)
    if known[newest] != given:
        raise RefusedToStart(f"The root key given is not the newest one (version {newest}), which is given as an earlier one.")
    return Keyring(
        current, version=newest, previous={version: keys[print_] for version, print_ in known.items() if version != newest}
    )


async def _known(tx: DirectoryTransaction, given: str, held: Sequence[str]) -> dict[int, str]:
    """What is on record; at the first start that keeps a record, what the tenants were written under."""
    known = await root_keys.versions(tx)
    if known:
        return known
    written = {tenant.key_fingerprint for tenant in await directory.tenants(tx)} or {given}
    if len(written) > 1 or not written <= set(held):
        raise RefusedToStart("The data was written under another root key: give the service that key.")
    await root_keys.introduce(tx, FIRST, written.pop())
    return await root_keys.versions(tx)
