"""Circumstances that look alike, or that some reader takes for one another, are two for the response cache; one is one."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.caching import lookup, store
from tests.windows import request

DIGITS = "0123456789abcdef0123456789abcdef"
PLAIN = "01234567-89ab-cdef-0123-456789abcdef"


def source(name: str, revision: str = "3") -> list[dict[str, str]]:
    return [{"id": name, "revision": revision}]


TWO: dict[str, tuple[str, Any, Any]] = {
    "one and one as a float": ("settings", {"n": 1}, {"n": 1.0}),
    "one and true": ("settings", {"n": 1}, {"n": True}),
    "one and its digit": ("settings", {"n": 1}, {"n": "1"}),
    "nought and false": ("settings", {"n": 0}, {"n": False}),
    "nought and less than nought": ("settings", {"n": 0.0}, {"n": -0.0}),
    "integers that are one as floats": ("settings", {"n": 2**53}, {"n": 2**53 + 1}),
    "null and absent": ("settings", {"n": None}, {}),
    "null and its word": ("settings", {"n": None}, {"n": "null"}),
    "an empty list and an empty object": ("settings", {"n": []}, {"n": {}}),
    "a key that holds what another one does": ("settings", {"a": 1, "b": 2}, {"a": 2, "b": 1}),
    "a key with a dot and an object": ("settings", {"a.b": 1}, {"a": {"b": 1}}),
    "é in one character and in two": ("model", "mod\u00e9l", "mode\u0301l"),
    "a ligature and its letters": ("model", "\ufb01ne", "fine"),
    "a letter of another script": ("model", "small", "sm\u0430ll"),
    "with a space behind it": ("model", "small", "small "),
    "another case": ("model", "small", "Small"),
    "with a character that has no width": ("instructions", "Answer.", "Answer.\u200b"),
    "a lone surrogate and what replaces it": ("instructions", "\ud800", "\ufffd"),
    "two lone surrogates": ("instructions", "\ud800", "\ud801"),
    "with a NUL": ("instructions", "Answer.", "Answer.\0"),
    "another line's end": ("instructions", "a\nb", "a\r\nb"),
    "no instructions and an empty list": ("instructions", "", []),
    "a text and a list of it": ("instructions", "a", ["a"]),
    "no tool and an empty one": ("tools", [], [{}]),
    "a list and one within": ("tools", [1, 2], [[1, 2]]),
    "a prompt and a list of it": ("prompt", "a", ["a"]),
    "a prompt of digits and the number": ("prompt", ["1"], [1]),
    "no message and an empty one": ("prompt", [], [""]),
    "digits with dashes elsewhere": (
        "sources",
        source("0-123456789abcdef0123456789abcdef"),
        source("01-23456789abcdef0123456789abcdef"),
    ),
    "digits with and without dashes": ("sources", source(DIGITS), source(PLAIN)),
    "a hash in another case": ("sources", source(DIGITS), source(DIGITS.upper())),
    "digits as another reader writes them": ("sources", source(f"0x{DIGITS[:30]}"), source(f"00{DIGITS[:30]}")),
    "a source and a namespace before it": ("sources", source(PLAIN), source(f"urn:uuid:{PLAIN}")),
    "an id that ends where its revision begins": ("sources", source("a", "bc"), source("ab", "c")),
    "one source and none": ("sources", source("a"), []),
    "a conversation's name in two spellings": ("session", "re\u00e9l", "ree\u0301l"),
    "a revision and the number with a nought": ("conversation_revision", "7", "07"),
}


@pytest.mark.parametrize("alike", TWO)
async def test_T20_what_is_two_is_never_taken_for_one(http: httpx.AsyncClient, alike: str) -> None:
    dimension, one, other = TWO[alike]

    for stored, asked in ((one, other), (other, one)):
        kept = await store(http, f"of {uuid4()}", **{dimension: stored})
        found = await lookup(http, **{dimension: asked})
        again = await lookup(http, **{dimension: stored})

        assert kept["stored"], kept
        assert (found["outcome"], again["outcome"]) in (("ineligible", "hit-exact"), ("miss", "hit-exact"))
        assert (await http.post("/v1/cache/purge", json={})).status_code == 200


ONE: dict[str, tuple[str, Any, Any]] = {
    "keys in another order": ("settings", {"a": 1, "b": {"c": 1, "d": 2}}, {"b": {"d": 2, "c": 1}, "a": 1}),
    "sources in another order": ("sources", [*source("a"), *source("b")], [*source("b"), *source("a")]),
}


@pytest.mark.parametrize("alike", ONE)
async def test_what_is_one_is_one(http: httpx.AsyncClient, alike: str) -> None:
    dimension, one, other = ONE[alike]

    assert (await store(http, "an answer", **{dimension: one}))["stored"]
    assert (await lookup(http, **{dimension: other}))["outcome"] == "hit-exact"


@pytest.mark.parametrize("spelling", ["{}", "urn:uuid:{}", "{{{}}}"])
async def test_a_source_that_is_kept_here_is_known_in_any_spelling(http: httpx.AsyncClient, spelling: str) -> None:
    """So that its own revision counts, and its erasure takes the answer along."""
    made = (await http.post("/v1/compactions", json=request(f"s {spelling}"))).json()
    written = [source(spelling.format(text)) for text in (made["manifest_id"], made["manifest_id"].upper())]

    assert (await store(http, "of the manifest", sources=written[0]))["stored"]
    assert (await lookup(http, sources=written[1]))["outcome"] == "hit-exact"
    assert (await lookup(http, sources=[*written[0], *written[1]]))["outcome"] == "bypassed"
    assert (await http.delete(f"/v1/manifests/{made['manifest_id']}")).status_code == 204
    assert (await http.get("/v1/cache")).json()["entries"] == 0


@pytest.mark.parametrize("name", [DIGITS, PLAIN, DIGITS.upper()])
async def test_a_purge_means_what_was_written_by_the_words_it_was_written_with(http: httpx.AsyncClient, name: str) -> None:
    for named in ({"source": name}, {"source": name, "whose": "tenant"}):
        assert (await store(http, "an answer", sources=source(name)))["stored"]
        assert (await http.post("/v1/cache/purge", json=named)).json() == {"purged": 1}


async def test_a_purge_by_a_source_that_is_kept_here_means_it_in_any_spelling(http: httpx.AsyncClient) -> None:
    made = (await http.post("/v1/compactions", json=request("purged"))).json()["manifest_id"]
    for spelling in (made, made.upper(), f"urn:uuid:{made}"):
        assert (await store(http, "an answer", sources=source(made)))["stored"]
        assert (await http.post("/v1/cache/purge", json={"source": spelling})).json() == {"purged": 1}


async def test_a_conversation_whose_name_reads_as_an_id_is_purged_by_its_name(http: httpx.AsyncClient) -> None:
    for whose in ("own", "tenant"):
        assert (await store(http, "an answer", session=DIGITS))["stored"]
        assert (await http.post("/v1/cache/purge", json={"session": DIGITS, "whose": whose})).json() == {"purged": 1}
