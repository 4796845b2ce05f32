"""The pipeline as a whole, with the real redactor and the real wire formats: its laws, its counts, its warnings."""

from __future__ import annotations

import base64
import dataclasses
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coatcheck.compaction import window
from coatcheck.compaction.planner import Planner
from coatcheck.compaction.policy_document import shipped
from coatcheck.compaction.redaction.redactor import Redactor
from coatcheck.domain.canonical import JsonObject, JsonValue, decode, sha256_of, to_text
from coatcheck.domain.errors import InvalidWindow, NoProgress, StageUnavailable
from coatcheck.domain.messages import PartKind, WindowFormat
from coatcheck.domain.plans import Plan
from coatcheck.domain.ports import TokenCounter
from coatcheck.domain.routes import Route, RouteScore
from coatcheck.formats import get
from tests.compaction.making import (
    KEYS,
    NOW,
    Absent,
    OverlapGate,
    Replies,
    TableRouter,
    WordDropper,
    assistant,
    call,
    dropping,
    manifest,
    prose,
    quoted_lines,
    request,
    result,
    text_of,
    user,
)
from tests.formats.strategies import anthropic_messages, chat_messages, responses_items

COMPRESS = RouteScore(Route.COMPRESS, 0.9, 0.8)
DROP = RouteScore(Route.DROP, 0.99, 0.9)


def _secret() -> str:
    return "ghp_" + "Ab3dEf6hIj9kLm2nOp5q" + "Rs8tUv1wXy4zAb7c"


def _conversation(turns: int = 6) -> list[JsonValue]:
    messages: list[JsonValue] = []
    for turn in range(turns):
        messages += [
            user(f"Please look at host-{turn}.example.org. {prose(8)}"),
            call(f"c{turn}", arguments={"command": f"curl http://host-{turn}.example.org/health"}, text="Looking."),
            result(f"c{turn}", f"HTTP 503 from 10.0.0.{turn}:8443\n{prose(20)}"),
            assistant(f"Host {turn} is unhealthy. {prose(10)}"),
        ]
    return messages


# --- the laws

_WINDOWS = st.one_of(
    st.tuples(st.just("openai-chat"), st.lists(chat_messages(), max_size=3)),
    st.tuples(st.just("anthropic"), st.lists(anthropic_messages(), max_size=3)),
    st.tuples(st.just("openai-responses"), st.lists(responses_items(), max_size=3)),
)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None)
@given(drawn=_WINDOWS)
def test_the_rebuilt_window_is_the_redacted_window_byte_for_byte(
    planner: Planner, redactor: Redactor, drawn: tuple[WindowFormat, list[JsonObject]]
) -> None:
    wire, others = drawn
    messages: list[JsonObject] = [*others, {"role": "user", "content": f"my token is {_secret()}. {prose(30)}", "type": "message"}]
    try:
        plan = planner.plan(request(messages, wire=wire))
    except InvalidWindow:
        return  # half of a pair was drawn

    expected = [to_text(redactor.redact_message(get(wire), message, KEYS, at=()).message) for message in messages]
    assert [text for _, text in window.rebuild_texts(plan.entries, text_of(plan))] == expected
    assert _secret() not in "".join(expected)


@pytest.mark.parametrize("wire", ["openai-chat", "anthropic", "openai-responses"])
@pytest.mark.parametrize(
    "text", ["half \ud83d a pair", "nul \0 here", "\ud83d\ude00", "\r\n\u2028\x85", "\ufeff", "e\u0301" * 3_000], ids=ascii
)
def test_any_code_point_comes_back(planner: Planner, wire: WindowFormat, text: str) -> None:
    messages: list[JsonValue] = [{"role": "user", "content": text + prose()}]

    plan = planner.plan(request(messages, wire=wire))

    assert window.rebuild(plan.entries, text_of(plan)) == (None, messages)
    plan.handoff.text.encode("utf-8")


def test_entries_are_numbered_and_frames_stand_at_the_edges(planner: Planner) -> None:
    plan = planner.plan(request(_conversation()))

    assert [entry.ordinal for entry in plan.entries] == list(range(len(plan.entries)))
    for _, of_message in groupby(plan.entries, key=lambda entry: entry.message_index):
        entries = list(of_message)
        assert entries[0].frame_before.startswith("{")
        assert entries[-1].frame_after.endswith("}")
        assert all(not entry.frame_after for entry in entries[:-1])
        assert all(not entry.frame_before for entry in entries if entry.segment_index > 0)


def test_a_segment_is_named_by_the_hash_of_its_bytes(planner: Planner, redactor: Redactor) -> None:
    plan = planner.plan(request(_conversation()))

    assert {segment.sha256 for segment in plan.segments} == {sha256_of(decode(segment.raw)) for segment in plan.segments}
    assert {entry.segment_sha256 for entry in plan.entries} == {segment.sha256 for segment in plan.segments}
    assert all(segment.chars == len(decode(segment.raw)) <= 3_800 for segment in plan.segments)
    assert {segment.rule_revision for segment in plan.segments} == {redactor.revision}


def test_fifty_equal_results_are_fifty_entries_of_one_segment(planner: Planner) -> None:
    messages = [m for n in range(50) for m in (call(f"c{n}", arguments={"n": n}), result(f"c{n}", '{"status":"ok"}'))]

    plan = planner.plan(request(messages))

    results = [entry for entry in plan.entries if entry.kind is PartKind.TOOL_RESULT]
    assert len(results) == 50
    assert len({entry.segment_sha256 for entry in results}) == 1
    assert len(plan.segments) == 51
    assert plan.counts.segments == 51


def test_a_message_of_five_megabytes_is_planned_in_bounded_time(planner: Planner) -> None:
    messages: list[JsonValue] = [user(((prose(400) + "\n") * 300)[:5_000_000])]
    started = time.thread_time()

    plan = planner.plan(request(messages))

    assert time.thread_time() - started < 20
    assert window.rebuild(plan.entries, text_of(plan))[1] == messages


def test_a_base64_image_is_stored_once_as_a_blob(planner: Planner) -> None:
    data = base64.b64encode(bytes(range(256)) * 2_000).decode()
    image: JsonObject = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    messages: list[JsonValue] = [
        {"role": "user", "content": [{"type": "text", "text": "see"}, image]},
        {"role": "user", "content": [image]},
    ]

    plan = planner.plan(request(messages, wire="anthropic"))

    assert [(decode(blob.raw), blob.media_type) for blob in plan.blobs] == [(data, "image/png")]
    assert [entry.blob_sha256 for entry in plan.entries if entry.kind is PartKind.BLOB] == [plan.blobs[0].sha256] * 2
    assert plan.counts.tokens < 3_000
    assert plan.counts.chars == 3
    assert window.rebuild(plan.entries, text_of(plan))[1] == messages


def test_empty_parts_have_an_entry_and_no_segment(planner: Planner) -> None:
    messages = [user(""), assistant(prose())]

    plan = planner.plan(request(messages))

    assert (plan.entries[0].segment_sha256, plan.entries[0].decision.reason) == (None, "empty")
    assert window.rebuild(plan.entries, text_of(plan))[1] == messages


def test_a_system_field_is_the_first_part_and_comes_back(planner: Planner) -> None:
    system: JsonValue = [{"type": "text", "text": "Never push to main.", "cache_control": {"type": "ephemeral"}}]
    messages = [user(prose())]

    plan = planner.plan(request(messages, wire="anthropic", system=system))

    assert (plan.entries[0].is_system_field, plan.entries[0].message_index, plan.entries[1].message_index) == (True, -1, 0)
    assert plan.entries[0].decision.reason == "protected:system-role"
    assert plan.counts.messages == 1
    assert window.rebuild(plan.entries, text_of(plan)) == (system, messages)


def test_signed_thinking_is_carried_byte_for_byte(planner: Planner) -> None:
    thinking: JsonObject = {"type": "thinking", "thinking": "Let me think. " + prose(3), "signature": "c2ln" * 20}
    messages: list[JsonValue] = [{"role": "assistant", "content": [thinking, {"type": "text", "text": prose()}]}]

    plan = planner.plan(request(messages, wire="anthropic"))

    assert plan.entries[0].decision.reason == "protected:thinking"
    assert window.rebuild(plan.entries, text_of(plan))[1] == messages
    assert not any("Let me think" in line for line in [*quoted_lines(plan), plan.handoff.overview])


def test_the_same_request_gives_the_same_plan(planner: Planner) -> None:
    asked = request(_conversation(), focus="unhealthy host")

    assert planner.plan(asked) == planner.plan(asked)


def test_the_plan_does_not_depend_on_the_seed_of_hashes() -> None:
    root = Path(__file__).parents[2]
    script = (
        "from coatcheck.compaction.planner import Planner\n"
        "from coatcheck.compaction.redaction.redactor import Redactor\n"
        "from tests.compaction.test_planner import _conversation\n"
        "from tests.compaction.making import request\n"
        "print(Planner(Redactor()).plan(request(_conversation(), focus='unhealthy host error')).handoff.sha256)\n"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", script],
            cwd=root,
            env={
                **os.environ,
                "PYTHONHASHSEED": seed,
                "PYTHONPATH": os.pathsep.join((str(root), os.environ.get("PYTHONPATH", ""))),
            },
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }

    assert len(seen) == 1


# --- times, groups, names


def test_entries_know_when_their_message_occurred(planner: Planner) -> None:
    stated = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)

    plan = planner.plan(request([user(prose()), assistant("fine")], times=[stated, None]))

    assert [entry.occurred_at for entry in plan.entries] == [stated, NOW]


def test_calls_and_results_carry_group_id_call_id_and_name(planner: Planner) -> None:
    plan = planner.plan(request([user(prose()), call("c9", name="read_file"), result("c9", prose())]))

    calls = [e for e in plan.entries if e.kind in (PartKind.TOOL_CALL, PartKind.TOOL_RESULT)]
    assert {(e.group_id, e.call_id, e.name) for e in calls} == {("g1", "c9", "read_file")}


# --- routes


def _planner(redactor: Redactor, **models: object) -> Planner:
    return Planner(redactor, **models)  # type: ignore[arg-type]


def test_without_models_everything_is_kept_and_nothing_is_amiss(planner: Planner) -> None:
    """Nobody asked for them; a stage that somebody asked for and that is not there is warned of (tests/contract)."""
    plan = planner.plan(request([user(prose(60)), assistant(prose(50)), user("It is /etc/hosts that matters.")]))

    assert {entry.decision.reason for entry in plan.entries} == {"router:unavailable", "protected:path"}
    assert (plan.counts.keep, plan.counts.compress, plan.counts.drop) == (plan.counts.segments, 0, 0)
    assert not plan.warnings


def test_protected_text_never_reaches_a_model(redactor: Redactor) -> None:
    router = TableRouter({})
    messages = [user("The port is 8443."), call("c"), result("c", "plain result words"), assistant(prose())]

    _planner(redactor, router=router).plan(request(messages))

    assert router.seen == [prose()]


def test_an_accepted_reduction_stands_beside_the_exact_text(redactor: Redactor) -> None:
    planner = _planner(
        redactor,
        router=TableRouter({"garden": COMPRESS}),
        compressor=WordDropper(("slowly", "again")),
        entailment=OverlapGate(),
    )

    plan = planner.plan(request([user(prose(40))]))

    assert plan.entries[0].decision.route is Route.COMPRESS
    assert (plan.counts.keep, plan.counts.compress) == (0, len(plan.reductions)) == (0, 1)
    assert plan.reductions[0].exact_sha256 == plan.segments[0].sha256
    assert window.rebuild(plan.entries, text_of(plan))[1] == [user(prose(40))]
    assert set(plan.revisions) == {"pipeline", "policy", "redaction", "router", "compressor", "entailment"}


def test_a_dropped_segment_leaves_a_mark_and_no_text(redactor: Redactor) -> None:
    chatter = "Well well well, how nice that is, how very nice indeed."

    planner = _planner(redactor, router=TableRouter({"Well": DROP}), policy=dropping())

    plan = planner.plan(request([user(chatter), assistant(prose(60))]))

    dropped = plan.entries[0]
    assert (dropped.dropped, dropped.segment_sha256, dropped.chars) == (True, None, len(chatter))
    assert (dropped.role, dropped.dropped_sha256) == ("user", sha256_of(chatter))
    assert plan.counts.drop == 1
    assert not any(decode(segment.raw) == chatter for segment in plan.segments)
    assert "Well well" not in plan.handoff.text
    assert window.rebuild(plan.entries, text_of(plan))[1][0] == user(f"[DROPPED: {len(chatter)} characters]")


def test_only_texts_of_user_and_assistant_can_be_dropped(redactor: Redactor) -> None:
    router = TableRouter({"": DROP})
    messages: list[JsonValue] = [{"role": "system", "content": "Be kind."}, call("c"), result("c", "plain"), user(prose(1))]
    messages += [assistant("The port is 8443 there."), user(prose(40))]

    plan = _planner(redactor, router=router, policy=dropping()).plan(request(messages))

    assert [e.role for e in plan.entries if e.dropped] == ["user"]


@pytest.mark.parametrize("error", [StageUnavailable("late"), RuntimeError("broken")])
def test_no_failing_model_fails_a_plan(redactor: Redactor, error: Exception) -> None:
    absent = Absent(error)
    planner = _planner(redactor, router=absent, compressor=absent, entailment=absent, summariser=absent, count_tokens=absent)

    plan = planner.plan(request([user(prose(60))]))

    assert {entry.decision.route for entry in plan.entries} == {Route.KEEP}
    assert [w.detail.partition(":")[0] for w in plan.warnings] == ["router", "token counter", "summariser"]
    assert (plan.handoff.overview_source, plan.counts.tokens_estimated) == ("excerpt", True)


# --- counts


def test_counts_are_of_the_redacted_window(planner: Planner) -> None:
    messages = [user(f"token {_secret()} " + prose(30)), assistant("short")]

    plan = planner.plan(request(messages))

    redacted = window.rebuild(plan.entries, text_of(plan))[1]
    assert plan.counts.chars == sum(len(str(m["content"])) for m in redacted if isinstance(m, dict))
    assert plan.counts.tokens == plan.counts.chars // 4
    assert plan.counts.redactions_by_kind == {"github-token": 1}
    assert plan.counts.messages_by_role == {"user": 1, "assistant": 1}
    assert (plan.counts.messages, plan.counts.parts, plan.counts.already_stored) == (2, 2, 0)


@pytest.mark.parametrize(
    ("wire", "messages"),
    [
        (
            "anthropic",
            [
                user(prose(30)),
                {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "bash", "input": {"command": "ls"}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "a.txt"}]},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "c2", "name": "bash", "input": {"command": "ls"}}]},
                {
                    "role": "user",
                    "content": [
                        {"type": "tool_result", "tool_use_id": "c2", "content": "b.txt"},
                        {"type": "text", "text": "And now the other folder."},
                    ],
                },
            ],
        ),
        (
            "openai-responses",
            [
                user(prose(30)),
                {"type": "function_call", "call_id": "c1", "name": "bash", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c1", "output": "a.txt"},
                user("And now the other folder."),
                assistant("Done."),
            ],
        ),
    ],
)
def test_a_message_of_tool_results_alone_is_counted_as_a_tools(
    planner: Planner, wire: WindowFormat, messages: list[JsonObject]
) -> None:
    plan = planner.plan(request(messages, wire=wire))

    assert plan.counts.messages_by_role == {"user": 2, "assistant": 2, "tool": 1}
    assert "Covers 5 messages: 2 user, 2 assistant, 1 tool; " in plan.handoff.text


def test_a_line_that_began_in_the_segment_before_says_so_when_it_is_quoted(planner: Planner) -> None:
    river = "the river follows the garden and " * 70
    text = f"{river}rests. We decided on shape number 7 and {river}rests"

    plan = planner.plan(request([user(text)]))

    second = next(segment for segment in plan.segments if decode(segment.raw).startswith("We decided"))
    (line,) = (line for line in quoted_lines(plan) if line.startswith(second.sha256[:12]))
    assert line.partition(": ")[2].startswith("…We decided on shape number 7 and")


def test_a_handoff_in_the_window_is_named_by_its_manifest_and_a_parent_that_is_named_before_it(planner: Planner) -> None:
    decisions = [user(f"We decided on shape number {number}. {prose(9)}") for number in range(20)]
    first = planner.plan(request(decisions)).handoff
    asked = request([user(first.text), user(prose(70))], number=2, known_handoffs={first.sha256: manifest(1)})

    found = planner.plan(asked)
    named = planner.plan(dataclasses.replace(asked, identity=dataclasses.replace(asked.identity, follows=manifest(7))))

    assert f"Manifest {manifest(2)} (follows {manifest(1)})  " in found.handoff.text
    assert f"Manifest {manifest(2)} (follows {manifest(7)})  " in named.handoff.text
    assert "follows" not in first.text.partition("Covers")[0]


def test_tokens_are_counted_where_there_is_a_counter(redactor: Redactor) -> None:
    class Words:
        name = "words"

        def count(self, texts: list[str]) -> int:
            return sum(len(text.split()) for text in texts)

    counter: TokenCounter = Words()  # type: ignore[assignment]

    plan = _planner(redactor, count_tokens=counter).plan(request([user(prose(60))]))

    assert (plan.counts.token_counter, plan.counts.tokens_estimated) == ("words", False)
    assert plan.counts.tokens == len(prose(60).split())


def test_tokens_of_other_scripts_are_more_than_a_quarter_of_their_characters(planner: Planner) -> None:
    chinese = planner.plan(request([user("我们昨天把服务器迁移到了新的数据中心。" * 60)])).counts
    russian = planner.plan(request([user("мы вчера перенесли всё в новый зал " * 60)])).counts

    assert chinese.tokens > chinese.chars * 0.7
    assert russian.chars * 0.35 < russian.tokens < russian.chars * 0.7


# --- the handoff


def test_a_handoff_never_exceeds_its_bound(planner: Planner) -> None:
    for max_chars in (600, 1_000, 1_900, 4_000):
        handoff = planner.plan(request(_conversation(12), max_handoff_chars=max_chars)).handoff
        assert handoff.chars <= max_chars
        assert handoff.text.endswith("\n[END HANDOFF]")


def test_a_generated_overview_is_marked_as_generated(redactor: Redactor) -> None:
    planner = _planner(redactor, summariser=Replies("The garden is quiet."), entailment=OverlapGate())

    handoff = planner.plan(request([user("The garden is quiet.\n" + prose(60))])).handoff

    assert handoff.overview_source == "generated"
    assert "\nOverview: The garden is quiet.\n" in handoff.text


def test_nothing_gained_is_no_progress(planner: Planner) -> None:
    with pytest.raises(NoProgress):
        planner.plan(request([user("hello there")]))


def test_a_short_window_gets_a_handoff_that_saves_a_quarter_at_least(planner: Planner) -> None:
    plan = planner.plan(request([user(prose(22))]))

    assert plan.counts.chars < 1_200
    assert plan.handoff.chars <= plan.counts.chars * 0.75


def test_the_tenth_handoff_in_a_row_is_no_longer_than_the_first_and_keeps_the_rules(planner: Planner) -> None:
    earlier: Plan | None = None
    lengths = []
    for number in range(1, 11):
        messages = [
            user(f"Note {number}. " + ("Never deploy on a Friday." if number == 1 else "Go on.")),
            *_conversation(4 + number),
        ]
        if earlier is not None:
            messages = [user(earlier.handoff.text), *messages]
        plan = planner.plan(
            request(
                messages,
                number=number,
                known_handoffs={earlier.handoff.sha256: manifest(number - 1)} if earlier else {},
                earlier_lines=earlier.handoff.lines if earlier else (),
            )
        )
        assert plan.earlier_handoffs == ((manifest(number - 1),) if earlier else ())
        lengths.append(plan.handoff.chars)
        earlier = plan

    assert earlier is not None
    assert max(lengths) == lengths[0]
    rule = next(line for line in earlier.handoff.lines if "Never deploy on a Friday." in line.text)
    assert rule.manifest_id == manifest(1)


def test_a_window_of_nothing_but_an_earlier_handoff_is_no_progress(planner: Planner) -> None:
    first = planner.plan(request(_conversation())).handoff

    with pytest.raises(NoProgress):
        planner.plan(request([user(first.text)], number=2, known_handoffs={first.sha256: manifest(1)}))


def test_no_secret_reaches_the_handoff(planner: Planner) -> None:
    messages = [
        user(f"Never use the token {_secret()} in prod"),
        call("c", name="curl", arguments={"header": f"Authorization: Bearer {_secret()}"}),
        result("c", f"error: token {_secret()} refused"),
        assistant(prose(60)),
    ]

    plan = planner.plan(request(messages, focus=f"token {_secret()}"))

    assert _secret() not in repr(plan)


def test_text_that_no_embedder_can_read_is_warned_of(redactor: Redactor) -> None:
    planner = Planner(redactor, dense_worthy=lambda text: " " in text)

    plan = planner.plan(request([user("QUJD" * 900), assistant(prose(60))]))

    assert [w.detail for w in plan.warnings if w.code == "lexical-only"] == [
        "1 segments of encoded, minified or repeating text are found by words only"
    ]


def test_the_planner_is_told_its_revisions(planner: Planner, redactor: Redactor) -> None:
    assert planner.revisions == {"pipeline": "6", "policy": shipped().revision, "redaction": redactor.revision}
