"""Secrets whose halves are handed in as texts of their own: parts of a message, and messages one after the other."""

from __future__ import annotations

import itertools

import pytest

from coatcheck.compaction.redaction import Redactor
from coatcheck.domain.canonical import JsonObject, JsonValue, to_text
from coatcheck.domain.messages import WindowFormat
from coatcheck.formats import get
from tests.compaction.redaction.fakes import KEYS, Fakes, left_of

FAKES = Fakes(121)
GITHUB, ANTHROPIC, JWT = FAKES.github(), FAKES.anthropic(), FAKES.jwt(padding=80)
PASSWORD, OPAQUE = FAKES.password(24), FAKES.opaque(40)
SHA = FAKES.hexadecimal(40)


def chat(*texts: str, roles: tuple[str, ...] = ("user",)) -> list[JsonObject]:
    return [{"role": roles[at % len(roles)], "content": text} for at, text in enumerate(texts)]


def parts(*texts: str) -> list[JsonObject]:
    content: list[JsonValue] = [{"type": "text", "text": text} for text in texts]
    return [{"role": "user", "content": content}]


def cut(secret: str, *at: int) -> list[str]:
    edges = [0, *at, len(secret)]
    return [secret[start:end] for start, end in itertools.pairwise(edges)]


def over(before: str, pieces: list[str], after: str) -> list[str]:
    return [before + pieces[0], *pieces[1:-1], pieces[-1] + after]


BROKEN = {
    "a token": (GITHUB, over("use ", cut(GITHUB, 9), " please")),
    "a token in its prefix": (GITHUB, over("use ", cut(GITHUB, 3), "")),
    "a token whose first half is one by itself": (ANTHROPIC, over("key: ", cut(ANTHROPIC, 60), "\nok")),
    "a token over many": (ANTHROPIC, over("key: ", cut(ANTHROPIC, 8, 20, 31, 55, 80), " and so on")),
    "a JWT": (JWT, over("Authorization: Bearer ", cut(JWT, 12), "\n")),
    "a password": (PASSWORD, over("export DB_PASSWORD=", cut(PASSWORD, 6), "\n")),
    "a header's credential": (OPAQUE, over("x-api-key: ", cut(OPAQUE, 7), "\nAccept: */*")),
    "a URL's password": (PASSWORD, over("postgres://app:", cut(PASSWORD, 5), "@db/app")),
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize(
    ("made", "wire"), [(chat, "openai-chat"), (parts, "openai-chat"), (chat, "anthropic"), (parts, "anthropic")]
)
def test_a_secret_over_two_texts_goes_on_both_sides(redactor: Redactor, made: object, wire: WindowFormat, name: str) -> None:
    secret, texts = BROKEN[name]
    messages = made(*texts)  # type: ignore[operator]

    redacted = redactor.redact_messages(get(wire), messages, KEYS, at=("window", "messages"))

    text = to_text([one.message for one in redacted])
    assert left_of(secret, text) < 6
    assert sum(sum(one.counts.values()) for one in redacted) >= 2
    again = redactor.redact_messages(get(wire), [one.message for one in redacted], KEYS, at=("window", "messages"))
    assert [one.message for one in again] == [one.message for one in redacted]


def test_both_sides_bear_one_tag(redactor: Redactor) -> None:
    messages = chat(*over("use ", cut(GITHUB, 9), " please"))

    first, second = (one.message["content"] for one in redactor.redact_messages(get("openai-chat"), messages, KEYS, at=()))

    assert isinstance(first, str)
    assert isinstance(second, str)
    assert first.removeprefix("use ") == second.removesuffix(" please")
    assert first.startswith("use [REDACTED:github-token:")


APART = {
    "words": ["please look at the token", "izer of the model, version2 of it"],
    "numbers": ["it was 2026-11-29T20:15:00", "Z and 48213 ms later it failed"],
    "a hash in two": [f"commit {SHA[:20]}", f"{SHA[20:]} is the one"],
    "a hash and an answer": [f"commit {SHA}", "ok2 then"],
    "paths": ["see /usr/share/doc/openssl3", "/changelog.Debian.gz of v3"],
    "an answer to a question": ["which one is it: v1 or v2", "v2-beta"],
    "two ids": ["req_011CSHoEeqs5C35K2UUqR7Fy", "msg_01XFDUDYJgAACzvnptvVoYEL"],
    "code": ["def rotate(token_v2", "=None, key_id3=0):"],
    "base64": [FAKES.opaque(60), FAKES.opaque(60)],
    "JSON": ['{"a": 1}', '{"b": 2}'],
    "one word each": ["yes1", "no2", "maybe3", "x4", "y5"],
}


@pytest.mark.parametrize("name", APART)
@pytest.mark.parametrize("made", [chat, parts])
def test_texts_that_only_stand_together_stay(redactor: Redactor, made: object, name: str) -> None:
    messages = made(*APART[name])  # type: ignore[operator]

    redacted = redactor.redact_messages(get("openai-chat"), messages, KEYS, at=())

    assert [one.message for one in redacted] == messages


def test_what_follows_a_whole_token_in_the_next_message_stays(redactor: Redactor) -> None:
    messages = chat(f"the token is {GITHUB}", "2nd question: v1x or v2y?", roles=("user", "assistant"))

    redacted = redactor.redact_messages(get("openai-chat"), messages, KEYS, at=())

    assert redacted[1].message == messages[1]
    assert GITHUB[4:] not in to_text(redacted[0].message)
