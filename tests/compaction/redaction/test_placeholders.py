"""Placeholders: typed, keyed, stable, and no shield for anybody who forges one."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coatcheck.compaction.redaction import Redactor
from coatcheck.domain.placeholders import PLACEHOLDER
from tests.compaction.redaction.fakes import KEYS, OTHER_SESSION, Fakes, left_of

FAKES = Fakes(21)
GITHUB, JWT, PASSWORD = FAKES.github(), FAKES.jwt(), FAKES.password()
FORGED = "[REDACTED:x:0123456789abcdef]"

PIECES = [
    "password", "token", "api_key", "secret", "key", "Authorization: ", "Bearer ", "Cookie: ", "sid=", "example",
    "=", " = ", ": ", '":"', '"', "'", "`", '\\"', "\\n", "\n", "\r\n", "\t", " ", ",", ";", "&", "?", "\\",
    "{", "}", "[", "]", "(", ")", "<password>", "</password>", "hunter2", PASSWORD, GITHUB, GITHUB[:20], JWT[:60],
    "://user:", "@host/", "https", "mysql -u root -p", "--token ", "curl -u bob:", FORGED, "[REDACTED:x:00",
    "密码是", "пароль: ", "the password is ", "\u200b", "\x1b[31m", "\x00", "\ud800", "ｐａｓｓ", "%3D", "%41",
    "\\u0061", "&quot;", "-" * 5 + "BEGIN PRIVATE KEY" + "-" * 5, "-" * 5 + "END PRIVATE KEY" + "-" * 5,
    "Ab3/" * 16, '" + "', "name: X_TOKEN, value: ", "$VAR", "export ", "|\n  ", "9fceb02d0ae598e95dc970b74767f19372d61af8",
]  # fmt: skip


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pieces=st.lists(st.sampled_from(PIECES) | st.text(max_size=6), max_size=30), as_json=st.booleans())
def test_redacting_what_is_redacted_changes_nothing(redactor: Redactor, pieces: list[str], as_json: bool) -> None:
    text = "".join(pieces)
    if as_json:
        text = json.dumps({"content": text, "password": "".join(pieces[:2])})

    once = redactor.redact_text(text, KEYS)
    twice = redactor.redact_text(once.text, KEYS)

    assert twice.text == once.text
    assert not twice.counts


@pytest.mark.parametrize(
    "text",
    [
        f"password={FORGED}SECRET",
        f'"password": "{FORGED}SECRET"',
        f"password=SECRET{FORGED}",
        f"Authorization: Bearer {FORGED}SECRET",
        f"postgres://app:{FORGED}SECRET@db/app",
        f"Cookie: sid={FORGED}SECRET",
        f"the password is {FORGED}SECRET",
        f"{FORGED}API_TOKEN=SECRET",
        f"--token={FORGED}SECRET",
        "password=[REDACTED:x:SECRET]",
    ],
)
def test_a_forged_placeholder_shields_nothing(redactor: Redactor, text: str) -> None:
    secret = FAKES.password(20)

    redacted = redactor.redact_text(text.replace("SECRET", secret), KEYS).text

    assert left_of(secret, redacted) < 6


def test_a_token_right_beside_a_placeholder_goes(redactor: Redactor) -> None:
    redacted = redactor.redact_text(f"{FORGED}{GITHUB}{FORGED}", KEYS).text

    assert GITHUB[4:12] not in redacted
    assert redacted.startswith(FORGED)
    assert redacted.endswith(FORGED)


def test_a_real_placeholder_is_left_as_it_is(redactor: Redactor) -> None:
    text = f'password={FORGED}, "token": "{FORGED}", Authorization: Bearer {FORGED}\nhttps://u:{FORGED}@host/ and pem: {FORGED}'

    assert redactor.redact_text(text, KEYS).text == text


def test_a_token_has_one_tag_in_the_tenant_and_a_password_one_in_its_session(redactor: Redactor) -> None:
    text = f"token {GITHUB}\npassword: {PASSWORD}\n"

    here = PLACEHOLDER.findall(redactor.redact_text(text, KEYS).text)
    there = PLACEHOLDER.findall(redactor.redact_text(text, OTHER_SESSION).text)

    assert here[0] == there[0]
    assert here[1].startswith("[REDACTED:password:")
    assert here[1] != there[1]


def test_a_short_secret_under_a_tokens_name_can_be_guessed_and_is_keyed_by_session(redactor: Redactor) -> None:
    here = redactor.redact_text("API_TOKEN=mypassword\n", KEYS).text
    there = redactor.redact_text("API_TOKEN=mypassword\n", OTHER_SESSION).text

    assert here != there


def test_counts_say_how_many_of_each_kind_went(redactor: Redactor) -> None:
    other = FAKES.github()
    text = f"{GITHUB} {other}\npassword: {PASSWORD}\n"

    counts = redactor.redact_text(text, KEYS).counts

    assert counts == {"github-token": 2, "password": 1}


def test_a_placeholder_repeats_nothing_of_the_token_it_stands_for(redactor: Redactor) -> None:
    token = "github" + "_pat_" + FAKES.opaque(22) + "_" + FAKES.opaque(59)

    redacted = redactor.redact_text(f"creds {token}", KEYS).text

    assert left_of(token, redacted) < 6
