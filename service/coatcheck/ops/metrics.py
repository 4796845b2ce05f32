"""Prometheus metrics, in a registry of their own for each app: counts, ages and durations, never content or ids."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_1_0_0, generate_latest
from prometheus_client.registry import Collector

from coatcheck.ops.progress import ProgressBoard

CONTENT_TYPE = CONTENT_TYPE_PLAIN_1_0_0
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)


class Metrics:
    """Every metric of one app. A label is a name from our own code (route template, outcome, kind), never a caller's word."""

    def __init__(self, board: ProgressBoard) -> None:
        registry = CollectorRegistry()
        self._registry = registry
        self.requests = Counter("coatcheck_requests", "Requests answered.", ["method", "route", "status"], registry=registry)
        self.request_seconds = Histogram(
            "coatcheck_request_seconds", "Time to the end of the answer.", ["method", "route"], buckets=_SECONDS, registry=registry
        )
        self.in_flight = Gauge("coatcheck_requests_in_flight", "Requests being worked on.", registry=registry)
        self.compactions = Counter(
            "coatcheck_compactions",
            "Compactions by outcome: created, replayed, or the problem's slug.",
            ["outcome"],
            registry=registry,
        )
        self.compaction_seconds = Histogram(
            "coatcheck_compaction_stage_seconds", "Time of a stage of a compaction.", ["stage"], buckets=_SECONDS, registry=registry
        )
        self.segments = Counter("coatcheck_segments", "Segments of compacted windows by route.", ["route"], registry=registry)
        self.redactions = Counter("coatcheck_redactions", "Secrets replaced, by kind.", ["kind"], registry=registry)
        self.projection_failures = Counter(
            "coatcheck_projection_failures", "Projections that failed and are kept for another attempt.", registry=registry
        )
        self.erasures = Counter("coatcheck_erasures", "Sessions and manifests erased to the end.", registry=registry)
        self.limited = Counter(
            "coatcheck_limited", "Requests refused by a tenant's limit, by the limit's name.", ["limit"], registry=registry
        )
        self.recalls = Counter("coatcheck_recalls", "Recalls by the legs that served them.", ["legs"], registry=registry)
        self.cache_lookups = Counter(
            "coatcheck_cache_lookups",
            "Look-ups in the response cache: hit-exact, hit-semantic, miss, or bypassed and ineligible with their reason.",
            ["outcome"],
            registry=registry,
        )
        self.cache_stores = Counter(
            "coatcheck_cache_stores",
            "Answers offered to the response cache: stored, or the reason why not.",
            ["outcome"],
            registry=registry,
        )
        self.cache_purged = Counter("coatcheck_cache_purged", "Entries that a purge took out.", registry=registry)
        self.stale_candidates = Counter(
            "coatcheck_recall_stale_candidates",
            "Candidates whose row was absent, erased or other than the point said.",
            registry=registry,
        )
        self.foreign_candidates = Counter(
            "coatcheck_recall_foreign_candidates", "Candidates of another tenant or beyond the caller's reach.", registry=registry
        )
        self.outbox_pending = Gauge("coatcheck_outbox_pending", "Pieces of work owed to the index.", registry=registry)
        self.outbox_quarantined = Gauge("coatcheck_outbox_quarantined", "Pieces of work given up with an error.", registry=registry)
        self.outbox_oldest_age_seconds = Gauge(
            "coatcheck_outbox_oldest_age_seconds", "Age of the oldest piece owed.", registry=registry
        )
        self.disk_free_bytes = Gauge(
            "coatcheck_disk_free_bytes", "Room left where this process writes, at the last readiness probe.", registry=registry
        )
        registry.register(_StageCollector(board))

    def render(self) -> bytes:
        """The exposition text; its media type is CONTENT_TYPE."""
        return generate_latest(self._registry)


class _StageCollector(Collector):
    """The progress board, read when somebody scrapes."""

    def __init__(self, board: ProgressBoard) -> None:
        self._board = board

    def collect(self) -> Iterable[Metric]:
        in_flight = GaugeMetricFamily("coatcheck_stage_in_flight", "Pieces of work in flight.", labels=["stage"])
        oldest = GaugeMetricFamily("coatcheck_stage_oldest_age_seconds", "Age of the oldest piece in flight.", labels=["stage"])
        completions = CounterMetricFamily("coatcheck_stage_completions", "Pieces of work completed.", labels=["stage"])
        stuck = GaugeMetricFamily("coatcheck_stage_stuck", "1 while the stage is stuck.", labels=["stage"])
        failing = GaugeMetricFamily("coatcheck_stage_failing", "1 while what the stage tried last has failed.", labels=["stage"])
        for report in self._board.reports():
            in_flight.add_metric([report.name], report.in_flight)
            oldest.add_metric([report.name], report.oldest_age_s or 0)
            completions.add_metric([report.name], report.completions)
            stuck.add_metric([report.name], float(report.stuck))
            failing.add_metric([report.name], float(report.failing))
        return (in_flight, oldest, completions, stuck, failing)
