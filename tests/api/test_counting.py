"""What use cases did is counted, whichever way it went."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.api.conftest import Served
from tests.windows import request, window

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def counts(served: Served) -> dict[str, float]:
    text = (await served.http.get("/metrics")).text
    return {
        f"{sample.name}{sorted(sample.labels.values())}": sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def test_compactions_and_recalls_are_counted_with_their_outcomes(served: Served) -> None:
    caller = served.operator.headers
    before = await counts(served)

    made = await served.http.post("/v1/compactions", json=request("s"), headers=caller)
    again = await served.http.post("/v1/compactions", json=request("s"), headers=caller)
    refused = await served.http.post("/v1/compactions", json=request("s", window(calls=0)), headers=caller)
    found = await served.http.post("/v1/recall", json={"query": "pool exhausted"}, headers=caller)
    after = await counts(served)

    assert [one.status_code for one in (made, again, refused, found)] == [201, 200, 422, 200]
    assert refused.json()["type"].endswith(":no-progress")
    grown = {name: value - before.get(name, 0) for name, value in after.items() if value != before.get(name, 0)}
    segments = made.json()["segments"]
    for outcome in ("created", "replayed", "no-progress"):
        assert grown[f"coatcheck_compactions_total['{outcome}']"] == 1
    assert grown["coatcheck_segments_total['keep']"] == segments["keep"]
    assert grown["coatcheck_compaction_stage_seconds_count['plan']"] == 1
    assert grown["coatcheck_recalls_total['dense+lexical']"] == 1
