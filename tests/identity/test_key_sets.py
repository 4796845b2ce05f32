"""Keys of issuers: remembered for a while, fetched again when that may help, and never because a stranger would like it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from coatcheck.domain.errors import IssuerUnavailable, OutboundFailed
from coatcheck.identity.key_sets import MAX_KEYS, MAX_SETS, RETRY_S, STALE_S, TTL_S, KeySets, keys_of
from tests.identity.issuing import key_set, public_jwk

URI = "https://login.example.org/jwks"


class Issuer:
    """Answers with its key set, or not, and counts; a clock that a test moves."""

    def __init__(self) -> None:
        self.answer: bytes | Exception = key_set(public_jwk("ES256", "one"))
        self.fetched = 0
        self.now = 1_000.0
        self.open = asyncio.Event()
        self.open.set()
        self.sets = KeySets(self.fetch, lambda: self.now)

    async def fetch(self, url: str) -> bytes:
        self.fetched += 1
        await self.open.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def knows(self, kid: str) -> bool:
        return await self.sets.find(URI, kid) is not None


@pytest.fixture
async def issuer() -> Issuer:
    return Issuer()


async def test_a_key_set_is_fetched_once_until_it_is_old(issuer: Issuer) -> None:
    assert [await issuer.knows("one") for _ in range(10)] == [True] * 10
    issuer.now += TTL_S - 1
    assert await issuer.knows("one")
    assert issuer.fetched == 1

    issuer.now += 2

    assert await issuer.knows("one")
    assert issuer.fetched == 2


async def test_a_key_that_came_since_is_found_and_one_that_went_counts_no_more(issuer: Issuer) -> None:
    assert await issuer.knows("one")
    issuer.answer = key_set(public_jwk("ES256", "two", 2))
    issuer.now += RETRY_S

    assert await issuer.knows("two")
    assert not await issuer.knows("one")


async def test_made_up_key_ids_make_nobody_fetch(issuer: Issuer) -> None:
    for number in range(1_000):
        assert not await issuer.knows(f"made up {number}")
    assert issuer.fetched == 1

    issuer.now += RETRY_S

    for number in range(1_000):
        assert not await issuer.knows(f"made up {number}")
    assert issuer.fetched == 2


async def test_who_asks_at_the_same_time_waits_for_one_fetch(issuer: Issuer) -> None:
    issuer.open.clear()
    asking = [asyncio.create_task(issuer.knows(kid)) for kid in ["one"] * 20 + ["other"] * 20]
    await asyncio.sleep(0.01)
    asking[0].cancel()
    await asyncio.sleep(0.01)

    issuer.open.set()

    assert await asyncio.gather(*asking[1:]) == [True] * 19 + [False] * 20
    assert issuer.fetched == 1


async def test_an_issuer_that_is_down_is_believed_for_a_while_and_then_not(issuer: Issuer) -> None:
    assert await issuer.knows("one")
    issuer.answer = OutboundFailed()

    issuer.now += STALE_S - 1
    assert await issuer.knows("one")
    assert not await issuer.knows("other")
    issuer.now += 2
    with pytest.raises(IssuerUnavailable):
        await issuer.knows("one")

    issuer.answer = key_set(public_jwk("ES256", "one"))
    issuer.now += RETRY_S
    assert await issuer.knows("one")


async def test_an_issuer_that_is_down_is_not_asked_by_every_request(issuer: Issuer) -> None:
    issuer.answer = OutboundFailed()

    for _ in range(100):
        with pytest.raises(IssuerUnavailable):
            await issuer.knows("one")

    assert issuer.fetched == 1


async def test_with_older_keys_at_hand_nobody_waits_long_for_an_issuer_that_hangs(issuer: Issuer) -> None:
    assert await issuer.knows("one")
    issuer.now += TTL_S + 1
    issuer.open.clear()

    async with asyncio.timeout(5):
        assert await issuer.knows("one")

    await issuer.sets.close()


@pytest.mark.parametrize("answer", [b"", b"<html>", b"[]", b'{"keys": {}}', b"\xff", b"[" * 10_000, b'{"keys": [], "keys": []}'])
async def test_what_is_no_key_set_takes_no_key_away(issuer: Issuer, answer: bytes) -> None:
    assert await issuer.knows("one")
    issuer.answer = answer
    issuer.now += TTL_S + 1

    assert await issuer.knows("one")


async def test_an_empty_key_set_takes_all_keys_away(issuer: Issuer) -> None:
    assert await issuer.knows("one")
    issuer.answer = key_set()
    issuer.now += TTL_S + 1

    assert not await issuer.knows("one")


async def test_no_number_of_issuers_fills_the_memory(issuer: Issuer) -> None:
    for number in range(MAX_SETS + 10):
        await issuer.sets.find(f"{URI}/{number}", "one")

    assert len(issuer.sets._known) == MAX_SETS


USELESS: dict[str, dict[str, Any]] = {
    "a shared secret": {"kty": "oct", "k": "c2VjcmV0" * 6, "kid": "one", "alg": "HS256"},
    "for encryption": public_jwk("ES256", "one", use="enc"),
    "for signing alone": public_jwk("ES256", "one", key_ops=["sign"]),
    "a private one": {**public_jwk("ES256", "one"), "d": "AAAA"},
    "another algorithm": public_jwk("PS256", "one", alg="PS256"),
    "a longer hash": public_jwk("RS512", "one", alg="RS512"),
    "another curve": public_jwk("ES384", "one"),
    "another curve under the right name": public_jwk("ES384", "one", alg="ES256"),
    "a modulus of 512 bits": public_jwk("RS256", "one", n="_" * 86),
    "an exponent of one": public_jwk("RS256", "one", e="AQ"),
    "a shared secret under the name of a public key's algorithm": {"kty": "oct", "k": "c2VjcmV0" * 6, "kid": "one", "alg": "RS256"},
    "a short modulus": public_jwk("RS256-short", "one"),
    "no algorithm at all": public_jwk("ES256", "one", alg="none"),
    "without an id": {k: v for k, v in public_jwk("ES256", "one").items() if k != "kid"},
    "an id that is no text": {**public_jwk("ES256", "one"), "kid": 1},
    "no point of the curve": {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA", "kid": "one"},
    "of no kind": {"kid": "one"},
}


@pytest.mark.parametrize("name", USELESS)
def test_a_key_that_must_not_verify_is_passed_over(name: str) -> None:
    good = public_jwk("ES256", "good", 7)

    assert set(keys_of(key_set(USELESS[name], good))) == {"good"}


def test_of_two_keys_of_one_id_the_first_counts_and_never_both() -> None:
    first, second = public_jwk("ES256", "one"), public_jwk("RS256", "one")

    assert [key.algorithm_name for key in keys_of(key_set(first, second)).values()] == ["ES256"]
    assert [key.algorithm_name for key in keys_of(key_set(second, first)).values()] == ["RS256"]


@pytest.mark.parametrize("algorithm", ["RS256", "ES256", "EdDSA"])
def test_the_allowed_kinds_of_keys_are_read(algorithm: str) -> None:
    (key,) = keys_of(key_set(public_jwk(algorithm, "one"))).values()

    assert key.algorithm_name == algorithm


def test_a_key_set_without_end_is_read_to_its_bound() -> None:
    many = [public_jwk("ES256", f"k{number}") for number in range(MAX_KEYS + 5)]

    assert len(keys_of(json.dumps({"keys": many}).encode())) == MAX_KEYS
