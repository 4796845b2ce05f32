"""Metrics are counted for one app alone and hold no content."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from coatcheck.ops.metrics import Metrics
from coatcheck.ops.progress import ProgressBoard, standard_stages


def samples(metrics: Metrics) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    families = text_string_to_metric_families(metrics.render().decode())
    return {(s.name, tuple(sorted(s.labels.items()))): s.value for family in families for s in family.samples}


def test_two_apps_in_one_process_count_apart() -> None:
    one, other = (Metrics(ProgressBoard(standard_stages(60))) for _ in range(2))

    one.compactions.labels("created").inc()

    assert samples(one)["coatcheck_compactions_total", (("outcome", "created"),)] == 1
    assert ("coatcheck_compactions_total", (("outcome", "created"),)) not in samples(other)


def test_the_board_is_read_when_the_metrics_are() -> None:
    board = ProgressBoard(standard_stages(60))
    metrics = Metrics(board)

    with board.stage("project"):
        during = samples(metrics)
    after = samples(metrics)

    assert during["coatcheck_stage_in_flight", (("stage", "project"),)] == 1
    assert after["coatcheck_stage_in_flight", (("stage", "project"),)] == 0
    assert after["coatcheck_stage_completions_total", (("stage", "project"),)] == 1
    assert after["coatcheck_stage_stuck", (("stage", "plan"),)] == 0
