"""Derived keys: apart for every tenant and purpose, the same after every start, and never shown."""

from __future__ import annotations

import pickle
from uuid import UUID

import pytest

from coatcheck.identity.keyring import Keyring

ROOT = bytes(range(32))
OTHER_ROOT = bytes(range(1, 33))
A, B = UUID(int=0xA), UUID(int=0xB)
S1, S2 = UUID(int=1), UUID(int=2)


def test_the_same_root_gives_the_same_keys_after_every_start() -> None:
    one, other = Keyring(ROOT), Keyring(ROOT)

    assert one.placeholder_keys(A, S1) == other.placeholder_keys(A, S1)
    assert one.request_digest(A, b"x") == other.request_digest(A, b"x")
    assert one.fingerprint() == other.fingerprint()


def test_a_known_derivation_never_changes() -> None:
    """Stored hashes and placeholders outlive a release: this figure may only change together with the key's version."""
    keys = Keyring(ROOT)

    assert keys.request_digest(A, b"x") == "a7b344a4663add50906a825a867ca8529acc1406bdc1ec5d03170bec071adc0f"
    assert keys.fingerprint() == "af9292f7eb35bb8e4acaeb3def94ce8d"


def test_tenants_purposes_and_roots_are_apart() -> None:
    keys = Keyring(ROOT)

    seen = [
        keys.placeholder_keys(A, S1).tenant_key,
        keys.placeholder_keys(B, S1).tenant_key,
        keys.placeholder_keys(A, S1).session_key,
        keys.placeholder_keys(A, S2).session_key,
        bytes.fromhex(keys.cache_salt(A)),
        bytes.fromhex(keys.cache_salt(B)),
        *keys.journal_keys(),
        Keyring(OTHER_ROOT).placeholder_keys(A, S1).tenant_key,
    ]
    digests = [
        keys.request_digest(A, b"x"),
        keys.request_digest(B, b"x"),
        keys.segment_tag(A, "x"),
        keys.segment_tag(B, "x"),
        keys.key_hash(A, "x").hex(),
        keys.key_hash(B, "x").hex(),
    ]

    assert len(set(seen)) == len(seen)
    assert len(set(digests)) == len(digests)


def test_the_tenants_placeholder_key_is_the_same_in_all_its_sessions() -> None:
    keys = Keyring(ROOT)

    assert keys.placeholder_keys(A, S1).tenant_key == keys.placeholder_keys(A, S2).tenant_key


def test_a_rotated_key_verifies_what_its_predecessor_made() -> None:
    before = Keyring(ROOT)
    after = Keyring(OTHER_ROOT, version=2, previous={1: ROOT})

    assert after.fingerprint() != before.fingerprint()
    assert after.versions == [2, 1]

    assert after.key_hash(A, "secret", 1) == before.key_hash(A, "secret")
    assert after.key_hash(A, "secret") != before.key_hash(A, "secret")
    assert after.has_version(1)
    assert not before.has_version(2)


def test_a_keyring_shows_no_key() -> None:
    keys = Keyring(ROOT)

    assert ROOT.hex() not in repr(keys)
    assert repr(keys) == "Keyring(version=1)"
    with pytest.raises(TypeError, match="not to be copied"):
        pickle.dumps(keys)


def test_a_root_key_has_32_bytes() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        Keyring(ROOT[:-1])
