"""The scan at a size where holding everything would show."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from coatcheck.identity.scopes import tenant_scope
from coatcheck.memory.findings import ScanReport
from coatcheck.memory.integrity import Scanner
from tests import apps
from tests.windows import request

WINDOWS, MESSAGES = 20, 1_000
GROWTH_LIMIT_BYTES = 150 * 1024 * 1024
TEXT = "The harbour master of quay {n} wrote in log {w} that the tide gauge read {x} and the crane stood still. "


class Peak:
    """The most memory that this process had resident, looked at again and again."""

    def __init__(self) -> None:
        self.before = self.most = resident_bytes()

    @property
    def growth(self) -> int:
        return self.most - self.before


@contextmanager
def watched() -> Iterator[Peak]:
    peak, over = Peak(), threading.Event()

    def look() -> None:
        while not over.wait(0.01):
            peak.most = max(peak.most, resident_bytes())

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield peak
    finally:
        over.set()
        thread.join()


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.accept
async def test_a_scan_of_twenty_thousand_segments_takes_little_memory(fresh_database_url: str, tmp_path: Path) -> None:
    async with apps.app(fresh_database_url, tmp_path, embedder="none") as app:
        caller = await apps.new_tenant(app)
        async with apps.client(app, caller) as http:
            for w in range(WINDOWS):
                messages = [
                    {"role": "user", "content": "".join(TEXT.format(n=n, w=w, x=n * w + k) for k in range(8))}
                    for n in range(MESSAGES)
                ]
                made = await http.post("/v1/compactions", json=request(f"s{w}", messages), headers={"Coatcheck-Deadline": "300"})
                assert made.status_code == 201, made.text
        seen: list[int] = []

        def progress(report: ScanReport) -> None:
            seen.append(report.segments)

        with watched() as peak:
            report = await Scanner(app.parts).scan(tenant_scope(caller.tenant_id), index=True, progress=progress)

        assert report.findings_by_kind == {}
        assert report.segments == report.points == WINDOWS * MESSAGES
        assert len(set(seen)) > 5
        assert peak.growth < GROWTH_LIMIT_BYTES, f"{peak.growth / 1e6:.0f} MB"
        print(f"\n{report.segments} segments, {peak.growth / 1e6:.1f} MB")
