"""What is kept before any model runs, and under which name."""

from __future__ import annotations

import time

import pytest

from coatcheck.compaction.protection import protect
from coatcheck.domain.messages import PartKind, Role
from tests.compaction.making import prose


@pytest.mark.parametrize(
    ("role", "kind", "name"),
    [
        ("system", PartKind.TEXT, "system-role"),
        ("developer", PartKind.TEXT, "developer-role"),
        ("tool", PartKind.TOOL_RESULT, "tool-role"),
        ("assistant", PartKind.TOOL_CALL, "tool-call"),
        ("assistant", PartKind.THINKING, "thinking"),
        ("user", PartKind.OPAQUE, "opaque"),
    ],
)
def test_roles_and_kinds_protect_whatever_the_text(role: Role, kind: PartKind, name: str) -> None:
    assert protect(role, kind, "plain words") == name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Look:\n```python\nx\n```", "code-fence"),
        ("the log says NullPointerException here", "error"),
        ("не удалось открыть документ", "error"),
        ("构建失败了", "error"),
        ("see https://docs.example.org for more", "url"),
        ("it lives in /etc/nginx/conf now", "path"),
        ("it lives under ./deploy/values and elsewhere", "path"),
        (r"it lives in C:\Users\me", "path"),
        ("open settings.yaml first", "path"),
        ("write to anna@example.org", "address"),
        ("the host is 10.2.0.7 today", "address"),
        ("connect to staging:8443", "address"),
        ("staging uses port 8443", "address"),
        ("у нас порт 8443", "address"),
        ("端口 8443", "address"),
        ("reach it at fe80::1ff:fe23:4567:890a", "address"),
        ("commit 3fa2c1d09b7e is the one", "hash"),
        ("session 6f0c1111-2222-4333-8444-555566667777", "hash"),
        ("we ship 3.11.7", "version"),
        ("we ship v2", "version"),
        ("нам нужна версия 3", "version"),
        ("it took 41 ms", "number-with-unit"),
        ("a budget of $400", "number-with-unit"),
        ("это займёт 3 часа", "number-with-unit"),
        ("一共 12 台机器", "number-with-unit"),
        ("about 40%", "number-with-unit"),
        ("the meeting was on 2026-11-29", "date"),
        ("fixed in #4312", "identifier"),
        ("that is JIRA-421", "identifier"),
        ("call load_config when ready", "identifier"),
        ("call refresh() when ready", "identifier"),
        ("git push origin main", "command"),
        ("$ ls", "command"),
        ("add --verbose to it", "command"),
        ("Traceback (most recent call last):", "stack-trace"),
        ("  at com.example.Main.run", "stack-trace"),
        ("We decided to use the blue theme", "decision"),
        ("Никогда не трогайте эту таблицу", "prohibition"),
        ("Please do not touch the old cluster", "prohibition"),
        ("不要删除这个表", "prohibition"),
        ("我们决定使用蓝色主题", "decision"),
        ("мы решили взять синюю тему", "decision"),
        ("Correction, the blue one", "correction"),
        ("key [REDACTED:github-token:0123456789abcdef] works", "placeholder"),
    ],
)
def test_evidence_protects_under_its_name(text: str, name: str) -> None:
    assert protect("user", PartKind.TEXT, text) == name


@pytest.mark.parametrize(
    "text",
    [
        prose(),
        "Thanks, that looks lovely. I will tell my sister about it tomorrow.",
        "The weather was mild, and/or so they said, and we walked along the river for a while.",
        "Спасибо, это выглядит прекрасно. Расскажу сестре об этом завтра утром.",
        "谢谢，这看起来很漂亮。我明天告诉我姐姐。",
        "I have 3 apples and she has 4.",
    ],
)
def test_plain_prose_is_left_to_the_router(text: str) -> None:
    assert protect("user", PartKind.TEXT, text) is None


@pytest.mark.parametrize("unit", ["a", "/", "-", ".", ":", "_", "0", "a.", "a:", "@a", "$ ", " at", "0:", "v1", "([", "é", "\n"])
def test_no_pattern_is_slow_on_repetition(unit: str) -> None:
    text = unit * (200_000 // len(unit))
    started = time.thread_time()

    protect("user", PartKind.TEXT, text)

    assert time.thread_time() - started < 2
