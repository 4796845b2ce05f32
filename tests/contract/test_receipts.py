"""An erasure's receipt: what it says, who may read it, and that nobody can alter it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
import pytest_asyncio

from coatcheck.app.compose import App
from coatcheck.app.storage import OpenedIndex
from coatcheck.identity.operations import OPERATOR
from coatcheck.ops.faults import held
from tests import apps
from tests.apps import Caller
from tests.contract.damage import Damage
from tests.contract.stored import rows
from tests.contract.working import job, settled
from tests.faults.troubled_index import TroubledIndex
from tests.postgres import Postgres
from tests.windows import request, window


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def app(database_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[App]:
    async with apps.foundations(database_url, tmp_path_factory.mktemp("app")) as on:
        troubled = dataclasses.replace(on, index=OpenedIndex(TroubledIndex(on.index.index)))
        async with apps.app_on(troubled, alone=True) as one:
            yield one


async def compacted(http: httpx.AsyncClient, session: str, mark: str = "alpha", *more: dict[str, Any]) -> dict[str, Any]:
    made = await http.post("/v1/compactions", json=request(session, [*window(mark=mark), *more]))
    assert made.status_code == 201, made.text
    body: dict[str, Any] = made.json()
    return body


async def erased(http: httpx.AsyncClient, path: str) -> dict[str, Any]:
    answer = await http.delete(f"{path}?receipt=true")
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def verified(http: httpx.AsyncClient, receipt: dict[str, Any]) -> bool:
    answer = await http.post("/v1/erasures/verify", json=receipt)
    assert answer.status_code == 200, answer.text
    return bool(answer.json()["valid"])


async def points(app: App, caller: Caller) -> int:
    return sum([sum(1 for p in page if p.tenant_id == caller.tenant_id) async for page in app.parts.index.scroll()])


async def test_a_sessions_receipt_counts_what_went_and_holds_no_content(
    app: App, operator: Caller, http: httpx.AsyncClient
) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo" + "A" * 400}}
    made = await compacted(http, "a name to forget", "alpha", {"role": "user", "content": [image, {"type": "text", "text": "see"}]})
    await compacted(http, "a name to forget", "beta")
    before, live = await rows(app, operator.tenant_id), await points(app, operator)

    receipt = await erased(http, f"/v1/sessions/{made['session_id']}")

    assert receipt["kind"] == "session"
    assert receipt["target_id"] == receipt["session_id"] == made["session_id"]
    assert (receipt["tenant_id"], receipt["requested_by"]) == (str(operator.tenant_id), str(operator.principal_id))
    assert (receipt["reason"], receipt["status"]) == ("request", "complete")
    assert receipt["requested_at"] <= receipt["completed_at"]
    assert receipt["counts"] == {
        "sessions": 1, "manifests": 2, "entries": before["entries"], "segments": before["segments"], "reductions": 0,
        "blobs": 1, "points": live, "cache_entries": 0,
    }  # fmt: skip
    journal = "".join(path.read_text() for path in app.parts.settings.erasure_journal.iterdir())  # type: ignore[union-attr]
    assert receipt["journal_mac"] in journal
    for content in ("alpha", "beta", "forget", "iVBOR"):
        assert content not in json.dumps(receipt)
    assert (await http.get(f"/v1/erasures/{receipt['erasure_id']}")).json() == receipt
    assert await verified(http, receipt)


async def test_a_manifests_receipt_counts_its_own_and_the_handoffs_that_lost_its_lines(http: httpx.AsyncClient) -> None:
    rule = {"role": "user", "content": "Decision: never restart the alpha database on a Friday, whatever the pager says."}
    first = await compacted(http, "s", "alpha", rule)
    second = (
        await http.post("/v1/compactions", json=request("s", [first["handoff"]["message"], *window(mark="beta"), rule]))
    ).json()
    lines = [line for line in second["handoff"]["text"].splitlines() if line.startswith("- ")]

    receipt = await erased(http, f"/v1/manifests/{first['manifest_id']}")

    after = (await http.get(f"/v1/manifests/{second['manifest_id']}")).json()["handoff"]["text"]
    left = [line for line in after.splitlines() if line.startswith("- ")]
    assert (receipt["kind"], receipt["target_id"], receipt["session_id"]) == (
        "manifest", first["manifest_id"], first["session_id"],
    )  # fmt: skip
    counts = receipt["counts"]
    assert (counts["sessions"], counts["manifests"], counts["handoffs_rendered_again"]) == (0, 1, 1)
    assert counts["handoff_lines"] == len(lines) - len(left) > 0
    assert counts["segments"] == first["segments"]["total"] - 1  # the rule stays the second's
    assert counts["entries"] == first["segments"]["total"]
    assert await verified(http, receipt)


async def test_by_default_the_answer_is_empty_and_names_the_receipt(http: httpx.AsyncClient) -> None:
    made = await compacted(http, "s")

    answer = await http.delete(f"/v1/sessions/{made['session_id']}")

    assert (answer.status_code, answer.content) == (204, b"")
    receipt = (await http.get(answer.headers["content-location"])).json()
    assert receipt["target_id"] == made["session_id"]
    assert await erased(http, f"/v1/sessions/{made['session_id']}") == receipt
    assert (await http.delete(f"/v1/sessions/{made['session_id']}")).status_code == 410


async def test_whoever_could_not_have_erased_it_finds_no_receipt(app: App, operator: Caller) -> None:
    owner = await apps.new_principal(app, operator.tenant_id)
    participant = await apps.new_principal(app, operator.tenant_id)
    colleague = await apps.new_principal(app, operator.tenant_id)
    another_operator = await apps.new_principal(app, operator.tenant_id, OPERATOR)
    elsewhere = await apps.new_principal(app, operator.tenant_id, OPERATOR, sessions=frozenset({uuid4()}))
    stranger = await apps.new_tenant(app)
    async with apps.client(app, owner) as http:
        made = await compacted(http, "s")
        shared = {"participants": [str(participant.principal_id)]}
        assert (await http.patch(f"/v1/sessions/{made['session_id']}", json=shared)).status_code == 200
        receipt = await erased(http, f"/v1/sessions/{made['session_id']}")

    path = f"/v1/erasures/{receipt['erasure_id']}"
    for caller, status in (
        (owner, 200), (another_operator, 200), (participant, 404), (colleague, 404), (elsewhere, 404), (stranger, 404),
    ):  # fmt: skip
        async with apps.client(app, caller) as http:
            assert (await http.get(path)).status_code == status, caller
            again = await http.delete(f"/v1/sessions/{made['session_id']}?receipt=true")
            assert again.status_code == (status if caller is not participant else 410), caller
            assert await verified(http, receipt) is (caller is not stranger)


@pytest.mark.parametrize("field", ["target_id", "session_id", "requested_by", "completed_at", "counts", "journal_mac", "reason"])
async def test_an_altered_receipt_is_no_receipt(http: httpx.AsyncClient, field: str) -> None:
    made = await compacted(http, "s")
    receipt = await erased(http, f"/v1/sessions/{made['session_id']}")
    other: dict[str, object] = {
        "completed_at": "2026-01-01T00:00:00Z", "counts": {**receipt["counts"], "points": 0}, "journal_mac": "0" * 64,
        "reason": "retention",
    }  # fmt: skip

    assert await verified(http, receipt)
    assert not await verified(http, {**receipt, field: other.get(field, str(uuid4()))})
    assert not await verified(http, {**receipt, "tag": None})
    assert not await verified(http, {**receipt, "key_version": 2})


async def test_while_the_index_is_down_the_receipt_is_pending_and_then_complete(app: App, http: httpx.AsyncClient) -> None:
    index = app.parts.index
    assert isinstance(index, TroubledIndex)
    made = await compacted(http, "s")
    index.gone = True

    refused = await http.delete(f"/v1/sessions/{made['session_id']}?receipt=true")
    pending = await erased(http, f"/v1/sessions/{made['session_id']}")
    index.calm()
    await settled(http)
    complete = await erased(http, f"/v1/sessions/{made['session_id']}")

    assert refused.status_code == 503
    assert (pending["status"], pending["completed_at"], pending["tag"]) == ("pending", None, None)
    assert not await verified(http, pending)
    assert (complete["status"], complete["counts"]) == ("complete", pending["counts"])
    assert await verified(http, complete)


async def test_an_export_that_an_erasure_overtakes_says_that_it_is_not_whole(
    app: App, operator: Caller, http: httpx.AsyncClient
) -> None:
    made = await compacted(http, "s")
    for number in range(3):
        await compacted(http, "s", f"mark{number}")
    context = await apps.context_of(app, operator)
    lines = await app.use_cases.services.export_session(context, UUID(made["session_id"]))
    said = [json.loads(await anext(lines)), json.loads(await anext(lines))]

    await http.delete(f"/v1/sessions/{made['session_id']}")
    said += [json.loads(line) async for line in lines]

    assert [line["type"] for line in said] == ["session", "run", "error"]
    assert said[-1] == {"type": "error", "problem": "erased", "detail": "The export ends here. What was here has been erased."}
    taken = await http.post("/v1/import", content="".join(json.dumps(line) + "\n" for line in said))
    assert taken.status_code == 422
    assert "Line 3 says that the export was cut off" in taken.json()["detail"]


async def test_an_export_of_what_may_be_read_no_longer_says_that_it_is_not_whole(
    app: App, operator: Caller, http: httpx.AsyncClient
) -> None:
    made = await compacted(http, "s")
    colleague = await apps.new_principal(app, operator.tenant_id)
    shared = f"/v1/sessions/{made['session_id']}"
    await http.patch(shared, json={"participants": [str(colleague.principal_id)]})
    context = await apps.context_of(app, colleague)
    lines = await app.use_cases.services.export_session(context, UUID(made["session_id"]))
    await anext(lines)

    await http.patch(shared, json={"participants": []})

    assert [json.loads(line)["problem"] async for line in lines] == ["not-found"]


async def test_a_jobs_findings_forget_what_is_erased(
    app: App, operator: Caller, http: httpx.AsyncClient, postgres: Postgres, database_url: str
) -> None:
    gone, thinned = await compacted(http, "gone"), await compacted(http, "kept", "beta")
    await compacted(http, "kept", "gamma")
    damage = Damage(postgres, database_url, app, operator.tenant_id)
    damage.sql("UPDATE segments SET raw = raw || 'x' WHERE tenant_id = :tenant")
    scan = await job(http, "scan", index=False)
    sessions = {finding["session_id"] for finding in scan["findings"]}

    await http.delete(f"/v1/sessions/{gone['session_id']}")
    await http.delete(f"/v1/manifests/{thinned['manifest_id']}")

    left = (await http.get(f"/v1/admin/scan/{scan['job_id']}")).json()["findings"]
    assert sessions == {gone["session_id"], thinned["session_id"]}
    assert {finding["session_id"] for finding in left} == {thinned["session_id"]}
    kept = await job(http, "scan", index=False)
    assert {finding["sha256"] for finding in left} == {finding["sha256"] for finding in kept["findings"]}


async def test_who_erases_twice_at_once_gets_one_receipt(http: httpx.AsyncClient) -> None:
    import asyncio

    made = await compacted(http, "s")
    path = f"/v1/sessions/{made['session_id']}"
    async with held("after-erase-mark") as hold:
        first = asyncio.create_task(erased(http, path))
        await hold.reached()
        second = await erased(http, path)
        hold.release()
        receipt = await first

    assert second["status"] == "pending"
    assert second["erasure_id"] == receipt["erasure_id"]
    assert receipt["status"] == "complete"
