"""The lexical leg by itself: every script and every kind of identifier finds its segment, with an embedder and without one."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import httpx
import pytest
import pytest_asyncio

from tests import apps
from tests.contract.kept import hand_in
from tests.contract.recalling import hits, recall, said

WANTED = {
    "Chinese": ("数据库迁移在周五晚上进行，由王芳负责回滚方案。", "谁负责数据库迁移的回滚"),
    "Japanese": ("ゲートウェイのタイムアウトは三十秒に変更されました。", "タイムアウトは何秒に変更"),
    "inflected Russian": ("Резервные копии складываются в отдельное хранилище раз в сутки.", "где хранится резервная копия"),
    "Arabic": ("يتم نسخ قاعدة البيانات احتياطيا كل ليلة إلى خادم بعيد.", "نسخ قواعد البيانات الاحتياطي"),
    "an address": ("The staging gateway answers on 10.2.0.7:8443 and nowhere else.", "10.2.0.7:8443"),
    "a part of an address": ("The tracing collector was moved to 10.9.0.31:4317 last week.", "10.9.0.31"),
    "a snake_case name": ("Before the migration somebody has to run restart_the_db by hand.", "restart_the_db"),
    "words of a snake_case name": ("The nightly job calls purge_stale_tokens without arguments.", "purge stale tokens"),
    "a CamelCase name": ("The stack trace ends in PaymentRetryScheduler, line 214.", "PaymentRetryScheduler"),
    "words of a CamelCase name": ("Nobody has touched InvoiceArchiveWriter since the spring.", "invoice archive writer"),
    "a path": ("The limits stand in /etc/orders/limits.d/40-burst.toml on every host.", "/etc/orders/limits.d/40-burst.toml"),
    "a hash": ("The image was built from 9f3ac1d07be24c5598aa01b2f6d3e47719c0ffee in June.", "9f3ac1d07be2"),
}  # fmt: skip


def distractors(count: int) -> list[dict[str, Any]]:
    """Turns about the same things, in the same languages, that answer none of the questions."""
    rng = random.Random(11)
    things = (
        "gateway",
        "database",
        "payment",
        "invoice",
        "token",
        "backup",
        "数据库",
        "ゲートウェイ",
        "база",
        "копия",
        "البيانات",
        "خادم",
    )
    doings = (
        "was looked at",
        "is slow today",
        "went down at noon",
        "is on the list",
        "很慢",
        "を確認しました",
        "проверена",
        "تعمل الآن",
    )
    return [
        {"role": rng.choice(("user", "assistant")),
         "content": f"Turn {n}: {rng.choice(things)} {rng.choice(doings)}; {rng.choice(things)} {rng.choice(doings)}; "
                    f"10.2.{rng.randint(1, 9)}.{rng.randint(1, 99)}:{rng.randint(1000, 9999)} too."}
        for n in range(count)
    ]  # fmt: skip


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def words(database_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[httpx.AsyncClient]:
    """An app that asks the lexical leg alone, with one session: what is wanted among sixty distractors."""
    async with AsyncExitStack() as stack:
        one = await stack.enter_async_context(apps.app(database_url, tmp_path_factory.mktemp("words"), fusion_dense_weight=0))
        http = await stack.enter_async_context(apps.client(one, await apps.new_tenant(one)))
        messages = [*distractors(60), *(said(text) for text, _ in WANTED.values())]
        random.Random(3).shuffle(messages)
        await hand_in(http, "words", {"messages": messages})
        yield http


@pytest.mark.parametrize("name", WANTED)
async def test_the_lexical_leg_alone_finds_its_segment_first(words: httpx.AsyncClient, name: str) -> None:
    text, query = WANTED[name]

    found = await recall(words, query, session="words")

    assert found["hits"][0]["text"] == text
    assert found["hits"][0]["ranks"] == {"dense": None, "lexical": 1, "fused": 1, "rerank": None}
    assert found["legs"] == {"dense": "off", "lexical": "used", "rerank": "off"}


async def test_what_no_segment_says_finds_nothing(words: httpx.AsyncClient) -> None:
    assert await hits(words, "zzyzx qwrtplk", session="words") == []


async def test_without_an_embedder_the_legs_say_so_and_recall_works(
    fresh_database_url: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    async with AsyncExitStack() as stack:
        one = await stack.enter_async_context(apps.app(fresh_database_url, tmp_path_factory.mktemp("none"), embedder="none"))
        http = await stack.enter_async_context(apps.client(one, await apps.new_tenant(one)))
        await hand_in(http, "s", {"messages": [*distractors(30), said(WANTED["an address"][0])]})

        found = await recall(http, "staging 10.2.0.7:8443", session="s")

    assert found["legs"]["lexical"] == "used"
    assert found["legs"]["dense"].startswith("unavailable")
    assert "10.2.0.7:8443" in found["hits"][0]["text"]
    assert found["hits"][0]["ranks"]["dense"] is None
