"""The laws of a window, on messages as Hypothesis makes them: real planner, real rules, all three formats."""

from __future__ import annotations

import secrets
import string
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coatcheck.compaction.planner import Planner
from coatcheck.compaction.redaction.redactor import Redactor
from coatcheck.compaction.window import rebuild
from coatcheck.domain.canonical import JsonObject, JsonValue, decode, sha256_hex, to_bytes
from coatcheck.domain.messages import PartKind, WindowFormat
from coatcheck.formats import get
from tests import apps
from tests.compaction.making import KEYS, request, text_of
from tests.formats import strategies

EXAMPLES = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
MAX_SEGMENT_CHARS = 3_800
LONG = "The build went on through the night, and nobody could say in the morning what had held it up. " * 30

MESSAGES: dict[WindowFormat, st.SearchStrategy[JsonObject]] = {
    "openai-chat": strategies.chat_messages(),
    "openai-responses": strategies.responses_items(),
    "anthropic": strategies.anthropic_messages(),
}


def token() -> str:
    """A secret, made at run time."""
    return "ghp" + "_" + "".join(secrets.choice(string.ascii_letters + string.digits) for _ in range(36))


def text_message(wire: WindowFormat, text: str) -> JsonObject:
    if wire == "openai-responses":
        return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
    return {"role": "user", "content": text}


@st.composite
def windows(draw: st.DrawFn) -> tuple[WindowFormat, list[JsonValue]]:
    """A window with enough text to gain something, odd messages in it, and secrets in some of its texts."""
    wire: WindowFormat = draw(st.sampled_from(sorted(MESSAGES)))
    odd = [message for message in draw(st.lists(MESSAGES[wire], max_size=4)) if _stands_alone(wire, message)]
    texts = draw(st.lists(st.one_of(st.text(max_size=200), st.sampled_from(_WITH_SECRETS)), min_size=1, max_size=4))
    written: list[JsonValue] = [text_message(wire, text.replace("TOKEN", token())) for text in texts]
    return wire, draw(st.permutations([text_message(wire, LONG), *written, *odd]))


_WITH_SECRETS = [
    "use TOKEN for the deploy, and TOKEN for the other",
    '{"password": "TOKEN", "nested": {"key": "TOKEN"}}',
    "postgres://app:TOKEN@db.internal/orders\n\n🧑‍🔬 работает, 不再使用 \u202eabc\u202c",
    f"{LONG}TOKEN{LONG}",
]


def _stands_alone(wire: WindowFormat, message: JsonObject) -> bool:
    """Neither a call nor the result of one: those have to come in pairs."""
    return all(site.kind is not PartKind.TOOL_CALL and site.role != "tool" for site in get(wire).read(message).sites)


@pytest.fixture(scope="module")
def redactor() -> Redactor:
    return apps.rules()


@EXAMPLES
@given(window=windows())
def test_a_rebuilt_window_is_the_redacted_one_byte_for_byte(
    redactor: Redactor, window: tuple[WindowFormat, list[JsonValue]]
) -> None:
    name, messages = window
    plan = Planner(redactor).plan(request(messages, wire=name))

    system, rebuilt = rebuild(plan.entries, text_of(plan))

    redacted: list[JsonValue] = [_redacted(redactor, name, message) for message in messages]
    assert system is None
    assert to_bytes(rebuilt) == to_bytes(redacted)
    assert "ghp" + "_" not in str(rebuilt) + plan.handoff.text


@EXAMPLES
@given(window=windows())
def test_redacting_what_is_redacted_changes_nothing(redactor: Redactor, window: tuple[WindowFormat, list[JsonValue]]) -> None:
    name, messages = window

    for message in messages:
        once = _redacted(redactor, name, message)
        again = redactor.redact_message(get(name), once, KEYS, at=())
        assert to_bytes(again.message) == to_bytes(once)
        assert not again.counts


@EXAMPLES
@given(window=windows())
def test_planning_twice_gives_one_plan_and_every_segment_is_its_hash(
    redactor: Redactor, window: tuple[WindowFormat, list[JsonValue]]
) -> None:
    name, messages = window

    first, second = (Planner(redactor).plan(request(messages, wire=name)) for _ in (1, 2))

    assert first.handoff == second.handoff
    assert first.entries == second.entries
    for segment in first.segments:
        text = decode(segment.raw)
        assert sha256_hex(segment.raw) == segment.sha256
        assert segment.chars == len(text) <= MAX_SEGMENT_CHARS
    assert len(first.handoff.text) == first.handoff.chars <= 1_900
    first.handoff.text.encode()  # valid Unicode: no lone surrogate gets into a prompt


@EXAMPLES
@given(window=windows())
def test_no_segment_ends_inside_a_placeholder(redactor: Redactor, window: tuple[WindowFormat, list[JsonValue]]) -> None:
    name, messages = window
    plan = Planner(redactor).plan(request(messages, wire=name))

    for segment in plan.segments:
        text = decode(segment.raw)
        assert "[REDACTED:" not in text or _whole(text), text
        head = text.partition("]")[0]
        assert "[REDACTED:" in head or not head.startswith(("EDACTED:", "REDACTED:")), text


def _whole(text: str) -> bool:
    last: Any = text.rpartition("[REDACTED:")[2]
    return "]" in last


def _redacted(redactor: Redactor, name: WindowFormat, message: JsonValue) -> JsonObject:
    assert isinstance(message, dict)
    return dict(redactor.redact_message(get(name), message, KEYS, at=()).message)
