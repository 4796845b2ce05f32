"""Recall over the routes: what it is narrowed by, which of several comes first, and that every hit is what it says."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import httpx
import pytest
import pytest_asyncio
import sqlalchemy as sa

from coatcheck.app.compose import App
from coatcheck.domain.canonical import sha256_of
from coatcheck.domain.segments import Reduction
from coatcheck.identity.scopes import tenant_scope
from coatcheck.store import segments
from coatcheck.store.database import WorkerTransaction
from tests.apps import Caller
from tests.contract.kept import entries, hand_in
from tests.contract.recalling import DAY, hits, recall, said


@pytest_asyncio.fixture(loop_scope="module")
async def dated(http: httpx.AsyncClient) -> list[datetime]:
    """One turn a day for six days, roles in turn."""
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": '{"at": "the quince"}'}}
    messages: list[dict[str, Any]] = [
        said("quince of the user, day 0. " + "." * 900),
        said("quince of the assistant, day 1", "assistant"),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "quince of the tool, day 3"},
        said("quince of the system, day 4", "system"),
        said("quince of the user again, day 5"),
    ]
    times = [DAY + timedelta(days=n) for n in range(len(messages))]
    await hand_in(http, "dated", {"messages": messages, "times": [time.isoformat() for time in times]})
    return times


@pytest.mark.parametrize(
    ("narrow", "days"),
    [
        ({}, {0, 1, 2, 3, 4, 5}),
        ({"roles": ["tool"]}, {3}),
        ({"roles": ["user", "system"]}, {0, 4, 5}),
        ({"roles": []}, {0, 1, 2, 3, 4, 5}),
        ({"since": 3}, {3, 4, 5}),
        ({"until": 1}, {0, 1}),
        ({"since": 1, "until": 3}, {1, 2, 3}),
        ({"since": 4, "roles": ["user"]}, {5}),
        ({"since": 4, "until": 2}, set()),
    ],
)
async def test_roles_and_times_narrow(
    http: httpx.AsyncClient, dated: list[datetime], narrow: dict[str, Any], days: set[int]
) -> None:
    asked = {key: dated[value].isoformat() if key in ("since", "until") else value for key, value in narrow.items()}

    found = await hits(http, "quince", session="dated", top_k=50, **asked)

    assert {dated.index(datetime.fromisoformat(hit["occurred_at"])) for hit in found} == days
    assert "roles" not in asked or not asked["roles"] or {hit["role"] for hit in found} <= set(asked["roles"])


async def test_a_time_in_another_zone_is_the_same_time_and_one_without_a_zone_is_utc(
    http: httpx.AsyncClient, dated: list[datetime]
) -> None:
    for since in ("2026-11-05T17:00:00+05:00", "2026-11-05T12:00:00"):
        found = await hits(http, "quince", session="dated", since=since)
        assert {hit["occurred_at"][:10] for hit in found} == {"2026-11-05", "2026-11-06"}


async def test_a_session_that_is_not_named_is_searched_with_all_the_others(http: httpx.AsyncClient, dated: list[datetime]) -> None:
    await hand_in(http, "another", {"messages": [said("quince elsewhere. " + "." * 900)]})

    everywhere, here = await hits(http, "quince", top_k=50), await hits(http, "quince", session="dated", top_k=50)

    assert len({hit["session_id"] for hit in everywhere}) == 2
    assert len({hit["session_id"] for hit in here}) == 1


async def test_newest_first_among_equals(http: httpx.AsyncClient) -> None:
    """The same words in three sessions: only their times tell them apart."""
    for days in (1, 3, 2):
        times = [(DAY + timedelta(days=days)).isoformat()] * 2
        await hand_in(http, f"day {days}", {"messages": [said("." * 900), said("the medlar is ripe")], "times": times})

    (found,) = [hit for hit in await hits(http, "medlar") if "medlar" in hit["text"]]

    whens = [datetime.fromisoformat(place["occurred_at"]) for place in (found, *found["also_in"])]
    assert whens == [DAY + timedelta(days=days) for days in (3, 2, 1)]


async def test_the_rendered_block_says_of_each_hit_whose_it_is(http: httpx.AsyncClient, dated: list[datetime]) -> None:
    found = await recall(http, "quince", session="dated", roles=["tool"])

    (hit,) = found["hits"]
    assert f"[HIT 1: {hit['sha256'][:12]} tool 2026-11-04T12:00Z]\nquince of the tool, day 3\n" in found["rendered"]


# --- representations


async def test_reduced_falls_back_to_exact_and_is_the_reduction_where_there_is_one(
    app: App, operator: Caller, http: httpx.AsyncClient
) -> None:
    long = "The loquat release, as was said at some length, is planned for the second week of March, if nothing comes between."
    made = await hand_in(http, "s", {"messages": [said(long), said("The loquat is a fruit. " + "." * 900)]})
    await _reduce(app, operator, made["session_id"], long, "The loquat release is planned for the second week of March.")

    reduced = {hit["sha256"]: hit for hit in await hits(http, "loquat", session="s", representation="reduced")}
    exact = {hit["sha256"]: hit for hit in await hits(http, "loquat", session="s")}

    assert exact[sha256_of(long)]["text"] == long
    assert {hit["representation"] for hit in exact.values()} == {"exact"}
    assert reduced[sha256_of(long)]["representation"] == "reduced"
    assert reduced[sha256_of(long)]["text"] == "The loquat release is planned for the second week of March."
    others = [hit for sha, hit in reduced.items() if sha != sha256_of(long)]
    assert [hit["representation"] for hit in others] == ["exact"]
    segment = (await http.get(f"/v1/segments/{sha256_of(long)}")).json()
    assert (segment["text"], segment["reduced_text"]) == (long, reduced[sha256_of(long)]["text"])


async def _reduce(app: App, operator: Caller, session_id: str, text: str, reduced: str) -> None:
    """What a compressor that was installed would have stored."""
    row = Reduction(sha256_of(text), reduced.encode(), sha256_of(reduced), "made-up-1", {})

    async def work(tx: WorkerTransaction) -> None:
        await segments.insert_reductions(tx, UUID(session_id), [row])

    await app.parts.database.work(tenant_scope(operator.tenant_id), work)


# --- corrections


CORRECTED = (
    "The staging gateway listens on port 8443 for orders-edge.",
    "Correction: the staging gateway for orders-edge listens on port 9443, the earlier port was wrong.",
)
AGREED = (
    "The reporting job writes to bucket reports-eu every night.",
    "The reporting job wrote to bucket reports-eu again last night, as it should.",
)


async def test_a_corrected_hit_names_what_corrects_it_and_is_still_shown(http: httpx.AsyncClient) -> None:
    texts = [*CORRECTED, *AGREED]
    times = [(DAY + timedelta(days=n)).isoformat() for n in range(5)]
    await hand_in(http, "s", {"messages": [*(said(text) for text in texts), said("." * 900)], "times": times})

    found = {
        hit["text"]: hit
        for query in ("staging gateway port", "reporting job bucket")
        for hit in await hits(http, query, session="s")
    }

    earlier, later = CORRECTED
    assert found[earlier]["superseded_by"]["sha256"] == sha256_of(later)
    assert found[earlier]["superseded_by"]["manifest_id"] == found[later]["manifest_id"]
    assert found[earlier]["superseded_by"]["reason"]
    assert [found[text]["superseded_by"] for text in (later, *AGREED)] == [None] * 3


async def test_the_rendered_block_says_what_was_corrected(http: httpx.AsyncClient) -> None:
    times = [(DAY + timedelta(days=n)).isoformat() for n in range(3)]
    await hand_in(http, "s", {"messages": [*(said(text) for text in CORRECTED), said("." * 900)], "times": times})

    rendered = (await recall(http, "staging gateway port", session="s"))["rendered"]

    assert "\n[CORRECTED LATER: The user corrected this at " in rendered
    assert f'"{CORRECTED[1]}" It is HIT ' in rendered
    assert f" here, segment {sha256_of(CORRECTED[1])[:12]}, entry 1 of manifest " in rendered


# --- what is verified


async def test_a_text_that_was_damaged_never_leaves(app: App, operator: Caller, http: httpx.AsyncClient) -> None:
    text = "The durian warehouse closes at nine."
    await hand_in(http, "s", {"messages": [said(text), said("The durian market. " + "." * 900)]})

    async def damage(tx: WorkerTransaction) -> None:
        statement = sa.text("UPDATE segments SET raw = :raw WHERE tenant_id = :tenant AND sha256 = :sha")
        await tx.connection.execute(statement, {"raw": b"forged", "tenant": operator.tenant_id, "sha": sha256_of(text)})

    await app.parts.database.work(tenant_scope(operator.tenant_id), damage)

    found = await hits(http, "durian", session="s")

    assert [hit["text"].split(".")[0] for hit in found] == ["The durian market"]


async def test_every_hit_is_an_entry_of_the_manifest_that_it_names(http: httpx.AsyncClient, dated: list[datetime]) -> None:
    for hit in await hits(http, "quince", session="dated", top_k=50):
        rows = {entry["ordinal"]: entry for entry in await entries(http, hit["manifest_id"])}
        entry = rows[hit["ordinal"]]
        assert (entry["sha256"], entry["text"], entry["role"], entry["kind"]) == (
            hit["sha256"],
            hit["text"],
            hit["role"],
            hit["kind"],
        )


async def test_the_newest_entry_of_a_text_is_the_one_that_is_named(http: httpx.AsyncClient) -> None:
    text = "The rambutan is in the cellar."
    for number in range(2):
        made = await hand_in(http, "s", {"messages": [said(f"Filler {number}. " + "." * 900), said(text)]})

    (hit,) = [hit for hit in await hits(http, "rambutan", session="s") if hit["text"] == text]

    assert hit["manifest_id"] == made["manifest_id"]
    assert made["segments"]["already_stored"] == 1
