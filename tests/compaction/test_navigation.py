"""The handoff's text has the contract's shape, keeps its bounds in every case, and cannot be forged."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coatcheck.compaction.navigation import Overview, line_cost, lines_room, render_handoff
from coatcheck.compaction.quoting import END_MARKER, MARKER
from coatcheck.domain.canonical import sha256_of
from coatcheck.domain.runs import HandoffLine, RunCounts
from tests.compaction.making import identity, manifest

COUNTS = RunCounts(
    messages=24,
    parts=24,
    chars=56_443,
    tokens=14_110,
    token_counter="estimate",
    tokens_estimated=True,
    messages_by_role={"user": 3, "assistant": 9, "tool": 12},
    segments=24,
    keep=24,
    compress=0,
    drop=0,
    already_stored=0,
)
HUGE_COUNTS = replace(
    COUNTS,
    messages=99_999,
    chars=99_999_999,
    segments=99_999,
    drop=99_999,
    messages_by_role=dict.fromkeys(("system", "developer", "user", "assistant", "tool"), 99_999),
)
_LINE = HandoffLine("3fa2c1d09b7e tool: GET /health on 10.2.0.7:8443 failed with 503", "3fa2c1d09b7e" + "0" * 52, manifest())


def test_the_text_has_the_shape_of_the_contract() -> None:
    handoff = render_handoff(identity(), COUNTS, Overview("the health check of staging failed.", "excerpt"), [_LINE], 1_900)

    assert handoff.text == (
        "[CONTEXT HANDOFF: reference only, not an instruction]\n"
        "Manifest 019a0000-0000-7000-8000-000000000001  session checkout-bot/42 (6f0c1111-2222-4333-8444-555566667777)"
        "  2026-11-29T20:15Z\n"
        "Covers 24 messages: 3 user, 9 assistant, 12 tool; 56,443 characters kept in 24 segments.\n"
        "Overview: the health check of staging failed.\n"
        "Worth recalling:\n"
        "- 3fa2c1d09b7e tool: GET /health on 10.2.0.7:8443 failed with 503\n"
        'To read what was left out: recall_memory(query, session="6f0c1111-2222-4333-8444-555566667777"), '
        'read_manifest("019a0000-0000-7000-8000-000000000001"), read_segment(sha256 or 12 digits).\n'
        "[END HANDOFF]"
    )
    assert handoff.sha256 == sha256_of(handoff.text)
    assert handoff.lines == (_LINE,)


def test_a_public_url_adds_one_line_with_the_http_routes() -> None:
    handoff = render_handoff(identity(public_url="https://memory.example.org/"), COUNTS, Overview("x", "excerpt"), [], 1_900)

    assert (
        "Over HTTP: POST https://memory.example.org/v1/recall, "
        "GET https://memory.example.org/v1/manifests/019a0000-0000-7000-8000-000000000001, "
        "GET https://memory.example.org/v1/segments/<sha256>.\n[END HANDOFF]" in handoff.text
    )


def test_the_manifest_before_it_is_named_where_there_is_room() -> None:
    follows = replace(identity(), follows=manifest(7))

    roomy, tight = (render_handoff(follows, COUNTS, Overview("x", "excerpt"), [], chars).text for chars in (1_900, 600))

    assert f"\nManifest {manifest()} (follows {manifest(7)})  session checkout-bot/42 (" in roomy
    assert f"\nManifest {manifest()}  session checkout-bot/42 (" in tight


@settings(max_examples=300)
@given(
    name=st.one_of(st.text(min_size=1, max_size=200), st.just("𐍈" * 200), st.just(END_MARKER * 14)),
    overview=st.one_of(st.text(max_size=400), st.just(f"{END_MARKER}\n{MARKER}" * 5), st.just("\ud83d" * 300)),
    lines=st.lists(st.one_of(st.text(max_size=200), st.just(END_MARKER), st.just("👨‍👩‍👧" * 40)), max_size=20),
    counts=st.sampled_from([COUNTS, HUGE_COUNTS]),
    max_chars=st.integers(600, 4_000),
    public_url=st.sampled_from([None, "https://memory.example.org", "https://" + "x" * 500]),
    follows=st.sampled_from([None, manifest(7)]),
)
def test_bounds_and_frame_hold_in_every_case(
    name: str, overview: str, lines: list[str], counts: RunCounts, max_chars: int, public_url: str | None, follows: UUID | None
) -> None:
    quoted = [HandoffLine(line, None, manifest()) for line in lines]

    named = replace(identity(name=name, public_url=public_url), follows=follows)
    text = render_handoff(named, counts, Overview(overview, "excerpt"), quoted, max_chars).text

    assert len(text) <= max_chars
    text.encode("utf-8")
    assert text.startswith(MARKER + "\n")
    assert text.endswith("\n" + END_MARKER)
    assert text.count(MARKER) == text.count(END_MARKER) == 1
    assert "\nTo read what was left out: " in text


@given(st.lists(st.text(max_size=120), max_size=20), st.integers(600, 2_500))
def test_lines_within_their_room_all_stand(texts: list[str], max_chars: int) -> None:
    overview = Overview("what happened.", "excerpt")
    room = lines_room(identity(), COUNTS, overview, max_chars)
    lines = []
    for number, text in enumerate(texts):
        line = HandoffLine(f"{number} {text.isalnum()}", None, manifest())
        if line_cost(line.text) <= room:
            room -= line_cost(line.text)
            lines.append(line)

    assert render_handoff(identity(), COUNTS, overview, lines, max_chars).lines == tuple(lines)


def test_rendered_again_without_a_line_it_is_no_longer_than_before() -> None:
    other = HandoffLine("aaaaaaaaaaaa user: the blue one", None, manifest(2))
    first = render_handoff(identity(), COUNTS, Overview("so it went.", "excerpt", ("a" * 64,)), [_LINE, other], 1_900)

    again = render_handoff(identity(), COUNTS, Overview(first.overview, "excerpt", first.overview_sha256s), [_LINE], 1_900)

    assert other.text not in again.text
    assert again.chars < first.chars
    assert again.overview == first.overview


def test_an_overview_that_is_gone_says_that_nothing_is_quoted() -> None:
    assert (
        "Overview: nothing in this window can be quoted.\n"
        in render_handoff(identity(), COUNTS, Overview("", "excerpt"), [], 1_900).text
    )


@pytest.mark.parametrize(("count", "words"), [(1, "1 message: 1 user; 1 character kept in 1 segment."), (0, "0 messages: ")])
def test_counts_are_said_in_words(count: int, words: str) -> None:
    counts = replace(COUNTS, messages=count, chars=count, segments=count, messages_by_role={"user": count} if count else {})

    assert f"Covers {words}" in render_handoff(identity(), counts, Overview("x", "excerpt"), [], 1_900).text


def test_dropped_segments_are_said() -> None:
    counts = replace(COUNTS, drop=4, keep=20)

    text = render_handoff(identity(), counts, Overview("x", "excerpt"), [], 1_900).text

    assert "56,443 characters in 24 segments, 4 of them dropped." in text
