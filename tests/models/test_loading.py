"""A model that is being loaded: its stage is not stuck, whichever worker it stands behind."""

from __future__ import annotations

import asyncio
import threading
import time
from uuid import UUID

from coatcheck.domain.errors import StageUnavailable
from coatcheck.identity.scopes import tenant_scope
from coatcheck.models.fastembed import FastembedEmbedder
from coatcheck.models.lanes import EmbeddingLanes
from coatcheck.models.prefixes import Prefixes
from coatcheck.models.reranker import FastembedReranker
from coatcheck.models.reranking import RerankWorker
from coatcheck.ops.progress import ProgressBoard, standard_stages

TENANT = tenant_scope(UUID(int=1))


class SlowDisk:
    """Gives no model before it is let go, and then a broken one."""

    def __init__(self) -> None:
        self.read = threading.Event()
        self.reading = threading.Event()

    def load(self) -> None:
        self.reading.set()
        assert self.read.wait(20)
        raise OSError("worn out")


async def standstill(stage: str, disk: SlowDisk, asked: asyncio.Task[object], board: ProgressBoard) -> None:
    assert await asyncio.to_thread(disk.reading.wait, 10)
    await asyncio.sleep(0.1)
    while_loading = board.loading_long(), board.stuck(vital=False), board.accepts(stage)
    disk.read.set()
    [problem] = await asyncio.gather(asked, return_exceptions=True)

    assert while_loading == ((stage,), (), False)
    assert isinstance(problem, StageUnavailable)
    assert (board.loading_long(), board.failing()) == ((), (stage,))


async def test_a_reranker_that_is_being_loaded_is_not_stuck() -> None:
    disk, board = SlowDisk(), ProgressBoard(standard_stages(0.05), time.monotonic)
    model = FastembedReranker(disk.load, revision="slow", weights=None, english_only=True)  # type: ignore[arg-type]
    worker = RerankWorker(model, board)

    await standstill("rerank", disk, asyncio.create_task(worker.score(TENANT, "query", ["passage"], 20)), board)
    await worker.close()


async def test_an_embedder_that_is_being_loaded_is_not_stuck() -> None:
    disk, board = SlowDisk(), ProgressBoard(standard_stages(0.05), time.monotonic)
    prefixes = Prefixes(passage="", query="")
    model = FastembedEmbedder(disk.load, revision="slow", weights=None, dimensions=8, max_tokens=64, prefixes=prefixes)  # type: ignore[arg-type]
    lanes = EmbeddingLanes(model, board)

    await standstill("embed", disk, asyncio.create_task(lanes.embed_query(TENANT, "query")), board)
    await lanes.close()
