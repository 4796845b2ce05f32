"""Rules that came after the data: what they find is covered at once by every read, and for good by a rescan."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

from coatcheck.app.compose import App
from coatcheck.compaction.redaction.redactor import Redactor
from coatcheck.domain.passages import RecallFilter
from coatcheck.domain.scopes import PUBLIC, Scope, principal_key
from coatcheck.index.lexical import analyse_query
from coatcheck.settings import cache_dir
from tests import apps, own_rules, rpc
from tests.apps import Caller
from tests.contract.damage import Damage
from tests.contract.routes import everything_said
from tests.contract.working import job, settled
from tests.postgres import Postgres
from tests.windows import call, request, result, window

BADGE, OTHER = "badge-204816", "badge-730952"


@dataclass(frozen=True, slots=True)
class Days:
    """The same data under yesterday's rules and under today's, which know one kind more."""

    yesterday: App
    today: App


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def days(database_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Days]:
    folder: Path = tmp_path_factory.mktemp("app")
    newer = Redactor(cache_dir() / "rules", own_rules.write(folder))
    async with (
        apps.foundations(database_url, folder, lease_s=5) as on,
        apps.app_on(on, "yesterday") as old,
        apps.app_on(dataclasses.replace(on, redactor=newer), "today") as new,
    ):
        yield Days(old, new)


@pytest_asyncio.fixture(loop_scope="module")
async def operator(days: Days) -> Caller:
    return await apps.new_tenant(days.today)


@pytest_asyncio.fixture(loop_scope="module")
async def old(days: Days, operator: Caller) -> AsyncIterator[httpx.AsyncClient]:
    async with apps.client(days.yesterday, operator) as client:
        yield client


@pytest_asyncio.fixture(loop_scope="module")
async def new(days: Days, operator: Caller) -> AsyncIterator[httpx.AsyncClient]:
    async with apps.client(days.today, operator) as client:
        yield client


def told() -> list[dict[str, Any]]:
    """A window that holds a badge's number in every kind of place."""
    named = call(90, "look")
    named["tool_calls"][0]["function"]["name"] = f"open_{BADGE}".replace("_", "-")
    return [
        {"role": "user", "content": f"Decision: {BADGE} never opens the harbour gate.", "metadata": {"holder": OTHER}},
        named,
        result(90, f"the gate says {BADGE} is unknown"),
        {"role": "assistant", "content": "The next turn says nothing of it, and stands behind one that does."},
        *window(calls=2, filler=6),
    ]


async def compacted(http: httpx.AsyncClient, messages: list[dict[str, Any]], session: str = "s") -> dict[str, Any]:
    made = await http.post("/v1/compactions", json=request(session, messages))
    assert made.status_code == 201, made.text
    body: dict[str, Any] = made.json()
    return body


async def everything_read(http: httpx.AsyncClient, made: dict[str, Any]) -> str:
    """All that the routes show of a run."""
    base = f"/v1/manifests/{made['manifest_id']}"
    answers = [await http.get(f"{base}{part}") for part in ("", "/entries?text=true&page_size=200", "/window")]
    shas = [entry["sha256"] for entry in answers[1].json()["entries"] if entry["sha256"]]
    answers += [await http.get(f"/v1/segments/{sha}") for sha in shas]
    answers.append(await http.get(f"/v1/sessions/{made['session_id']}/export"))
    assert {answer.status_code for answer in answers} == {200}
    tools = [await rpc.call(http, "read_manifest", manifest_id=made["manifest_id"])]
    tools += [await rpc.call(http, "read_segment", sha256=sha) for sha in shas]
    said = await everything_said(http, ["who opens the harbour gate", "the next turn", "alpha health failed"])
    return "\n".join([*(answer.text for answer in answers), *map(str, tools), said])


async def found_by(app: App, operator: Caller, words: str) -> list[str]:
    """The segments of which the lexical leg has these very words."""
    scope = Scope(operator.tenant_id, operator.principal_id, (principal_key(operator.principal_id), PUBLIC))
    hits = await app.parts.index.search_lexical(scope, app.parts.generation.number, analyse_query(words), RecallFilter(), 100)
    return [hit.exact_sha256 for hit in hits]


async def test_every_read_covers_it_at_once(old: httpx.AsyncClient, new: httpx.AsyncClient) -> None:
    made = await compacted(old, told())
    before = await everything_read(old, made)

    now = await everything_read(new, made)
    again = await new.post("/v1/compactions", json=request("s", told()))

    assert BADGE in before
    assert OTHER in before
    assert BADGE in made["handoff"]["text"]
    assert BADGE not in now
    assert OTHER not in now
    assert "mine-staff-number" in now
    assert (again.status_code, again.json()["manifest_id"]) == (200, made["manifest_id"])
    assert BADGE not in again.text


async def test_what_a_hit_is_corrected_by_is_told_without_it(old: httpx.AsyncClient, new: httpx.AsyncClient) -> None:
    said = (f"The harbour gate opens for {BADGE} on port 8443.", f"Correction: it is port 9443 for {BADGE}, no longer 8443.")
    body = request("s", [*({"role": "user", "content": text} for text in said), *window()])
    body["window"]["times"] = [f"2026-11-0{day}T10:00:00Z" for day in (1, 2)] + [None] * len(window())
    assert (await old.post("/v1/compactions", json=body)).status_code == 201
    asked = {"query": "harbour gate port", "session": "s"}

    before, now = [(await http.post("/v1/recall", json=asked)).json() for http in (old, new)]

    assert [BADGE in str(hit["superseded_by"]) for hit in before["hits"] if hit["superseded_by"]] == [True]
    assert any(hit["superseded_by"] for hit in now["hits"])
    assert BADGE not in str(now)


async def test_a_rescan_makes_it_permanent_everywhere(
    days: Days, operator: Caller, old: httpx.AsyncClient, new: httpx.AsyncClient, postgres: Postgres, database_url: str
) -> None:
    made = await compacted(old, told())
    damage = Damage(postgres, database_url, days.today, operator.tenant_id)
    assert await found_by(days.today, operator, BADGE)

    done = await job(new, "redact-rescan")
    await settled(new)

    assert {name: done["progress"][name] for name in ("runs", "changed", "left")} == {"runs": 1, "changed": 1, "left": 0}
    for place in (await everything_read(old, made), str(damage.everything())):
        assert BADGE not in place
        assert OTHER not in place
    # Neither its own passages nor those of the turns behind it are found by the number.
    assert await found_by(days.today, operator, BADGE.removeprefix("badge-")) == []
    back = (await old.get(f"/v1/manifests/{made['manifest_id']}/window")).json()["messages"]
    assert [message["role"] for message in back] == [message["role"] for message in told()]
    assert back[3:] == told()[3:]
    counted = (await old.get(f"/v1/manifests/{made['manifest_id']}")).json()["redactions"]
    assert counted["by_kind"]["mine-staff-number"] == counted["total"] == 4
    assert (await job(new, "scan"))["findings_total"] == 0


async def test_a_second_rescan_finds_nothing_to_look_at(old: httpx.AsyncClient, new: httpx.AsyncClient) -> None:
    await compacted(old, told(), "with")
    await compacted(old, window(), "without")
    first = await job(new, "redact-rescan")

    second = await job(new, "redact-rescan")

    assert (first["progress"]["runs"], first["progress"]["changed"]) == (2, 1)
    assert second["progress"]["runs"] == 0


async def test_descendants_handoffs_lose_it_and_the_old_texts_are_still_known(
    days: Days, old: httpx.AsyncClient, new: httpx.AsyncClient
) -> None:
    first = await compacted(old, told())
    second = await compacted(old, [first["handoff"]["message"], *window(mark="beta")])
    assert BADGE in second["handoff"]["text"]

    await job(new, "redact-rescan")
    await settled(new)

    for made, mark in ((first, "alpha"), (second, "beta")):
        now = (await old.get(f"/v1/manifests/{made['manifest_id']}")).json()
        assert BADGE not in now["handoff"]["text"]
        assert mark in now["handoff"]["text"]
        assert BADGE not in (await old.get(f"/v1/manifests/{made['manifest_id']}/window")).text
    assert (await old.get(f"/v1/manifests/{second['manifest_id']}")).json()["parent_manifest_id"] == first["manifest_id"]
    for made in (first, second):
        third = await compacted(old, [made["handoff"]["message"], *window(mark=f"m{made['manifest_id'][-6:]}")])
        entries = (await old.get(f"/v1/manifests/{third['manifest_id']}/entries?text=true")).json()["entries"]
        assert third["parent_manifest_id"] == made["manifest_id"] == entries[0]["handoff_manifest_id"]
        assert BADGE not in str(entries)
        assert BADGE not in third["handoff"]["text"]
    assert (await job(new, "scan"))["findings_total"] == 0


async def test_a_handoff_made_under_the_new_rules_carries_nothing_on_from_an_old_one(
    old: httpx.AsyncClient, new: httpx.AsyncClient
) -> None:
    first = await compacted(old, told())

    second = await compacted(new, [first["handoff"]["message"], *window(mark="beta")])

    assert second["parent_manifest_id"] == first["manifest_id"]
    assert "harbour gate" in second["handoff"]["text"]
    assert BADGE not in second["handoff"]["text"]
    assert BADGE not in await everything_read(new, second)


async def test_a_window_whose_earlier_handoff_was_erased_keeps_its_place_in_the_chain(
    old: httpx.AsyncClient, new: httpx.AsyncClient
) -> None:
    first = await compacted(old, window())
    second = await compacted(old, [first["handoff"]["message"], *told()])
    assert (await old.delete(f"/v1/manifests/{first['manifest_id']}")).status_code == 204

    done = await job(new, "redact-rescan")

    assert done["progress"]["changed"] == 1
    entries = (await old.get(f"/v1/manifests/{second['manifest_id']}/entries?text=true&page_size=200")).json()["entries"]
    assert entries[0]["handoff_manifest_id"] == first["manifest_id"]
    assert BADGE not in str(entries)
    shown = (await old.get(f"/v1/manifests/{second['manifest_id']}/window")).json()["messages"][0]["content"]
    assert shown.startswith("[MISSING: ")


async def test_where_an_id_may_not_be_rewritten_all_else_goes_and_the_window_is_not_shown(
    days: Days, operator: Caller, old: httpx.AsyncClient, new: httpx.AsyncClient, postgres: Postgres, database_url: str
) -> None:
    messages = [*window(calls=1), *told()]
    messages[1]["tool_calls"][0]["id"] = messages[2]["tool_call_id"] = f"call-{OTHER}-of-the-gate"
    messages[5]["tool_calls"][0]["function"]["name"] = "look"  # a name stands in a frame, and stays there too
    made = await compacted(old, messages)
    damage = Damage(postgres, database_url, days.today, operator.tenant_id)
    assert await found_by(days.today, operator, BADGE)

    done = await job(new, "redact-rescan")
    await settled(new)
    again = await job(new, "redact-rescan")

    assert done["progress"] == again["progress"] == {"runs": 1, "changed": 0, "left": 1}
    for part in ("/window", "/entries?page_size=200"):
        assert OTHER not in (await new.get(f"/v1/manifests/{made['manifest_id']}{part}")).text
    assert BADGE not in str(damage.texts())
    assert await found_by(days.today, operator, BADGE.removeprefix("badge-")) == []
    now = (await old.get(f"/v1/manifests/{made['manifest_id']}")).json()
    assert BADGE not in now["handoff"]["text"]
    assert "harbour gate" in now["handoff"]["text"]
    assert now["redactions"]["by_kind"]["mine-staff-number"] == 2
    entries = (await old.get(f"/v1/manifests/{made['manifest_id']}/entries?text=true&page_size=200")).json()["entries"]
    assert sum("[REDACTED:mine-staff-number:" in entry["text"] for entry in entries) == 2
    assert (await job(new, "scan"))["findings_total"] == 0
    third = await compacted(old, [made["handoff"]["message"], *window(mark="beta")])
    assert third["parent_manifest_id"] == made["manifest_id"]


async def test_a_lost_text_is_not_written_anew_by_a_rescan_and_the_others_are_redacted(
    days: Days, operator: Caller, old: httpx.AsyncClient, new: httpx.AsyncClient, postgres: Postgres, database_url: str
) -> None:
    made = await compacted(old, told())
    damage = Damage(postgres, database_url, days.today, operator.tenant_id)
    entries = (await old.get(f"/v1/manifests/{made['manifest_id']}/entries?text=true&page_size=200")).json()["entries"]
    lost = next(entry["sha256"] for entry in entries if entry["text"] and BADGE not in entry["text"])
    damage.sql("UPDATE segments SET raw = raw || 'x' WHERE tenant_id = :tenant AND sha256 = :h", h=lost)

    done = await job(new, "redact-rescan")
    await settled(new)

    assert (done["progress"]["changed"], done["progress"]["left"]) == (0, 1)
    assert [finding["kind"] for finding in (await job(new, "scan"))["findings"]] == ["exact-hash-mismatch"]
    assert BADGE not in str(damage.texts())
    back = (await old.get(f"/v1/manifests/{made['manifest_id']}/window")).json()["messages"]
    assert [message["role"] for message in back] == [message["role"] for message in told()]


async def test_a_shared_segment_is_rescanned_for_each_window_that_holds_it(old: httpx.AsyncClient, new: httpx.AsyncClient) -> None:
    plain = [{"role": "user", "content": "The harbour opens at six, and the gate is painted green."}, *window()]
    named = [dict(plain[0], metadata={"holder": OTHER}), *window()]
    first, second = await compacted(old, plain), await compacted(old, named)

    done = await job(new, "redact-rescan")

    assert (done["progress"]["runs"], done["progress"]["changed"]) == (2, 1)
    assert (await old.get(f"/v1/manifests/{first['manifest_id']}/window")).json()["messages"] == plain
    assert OTHER not in (await old.get(f"/v1/manifests/{second['manifest_id']}/window")).text
