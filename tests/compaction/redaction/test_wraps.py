"""Secrets that a terminal, a mailer or a person broke over lines, and what is told on the line below its name."""

from __future__ import annotations

import base64
import hashlib
import random
import uuid

import pytest

from coatcheck.compaction.redaction import Redactor
from tests.compaction.redaction.fakes import KEYS, Fakes, left_of

FAKES = Fakes(91)
GITHUB, ANTHROPIC, JWT, OPAQUE = FAKES.github(), FAKES.anthropic(), FAKES.jwt(padding=200), FAKES.opaque(40)
PASSWORD, LONG_PASSWORD, AWS = FAKES.password(14), FAKES.password(24), FAKES.aws_id()


def wrapped(line: str, width: int, before: str = "$ env | sort\nHOME=/home/bob\n") -> str:
    """As a terminal shows it."""
    return before + "\n".join(line[at : at + width] for at in range(0, len(line), width)) + "\nSHELL=/bin/bash\n"


def at_column(secret: str, before_break: int, width: int, head: str, tail: str = "") -> tuple[str, list[str]]:
    """A line in which the terminal's edge falls so many characters behind the secret's beginning."""
    filler = ("word " * 60)[: width - before_break - len(head) - 1]
    line = f"{filler} {head}{secret}{tail}"
    return wrapped(line, width), [secret[:before_break], secret[before_break:]]


WRAPPED = {
    "a token behind its prefix": at_column(GITHUB, 7, 80, "token "),
    "a token in its prefix": at_column(GITHUB, 2, 80, "export GITHUB_TOKEN="),
    "a token in its middle": at_column(GITHUB, 22, 80, "token "),
    "a token before its end": at_column(GITHUB, 36, 80, "token "),
    "a long token": at_column(ANTHROPIC, 9, 100, "key: "),
    "a password": at_column(LONG_PASSWORD, 7, 80, "DB_PASSWORD="),
    "a password near its end": at_column(LONG_PASSWORD, 18, 80, "--password="),
    "a password in JSON": at_column(LONG_PASSWORD, 9, 120, '{"user": "app", "password": "'),
    "a name": (wrapped("x" * 66 + " DB_PASSW" + "ORD=" + LONG_PASSWORD, 76), [LONG_PASSWORD]),
    "a header": at_column(OPAQUE, 11, 80, "Authorization: Bearer "),
    "a URL": at_column(LONG_PASSWORD, 8, 80, "postgres://app:", "@db/app"),
    "a token over many lines": (wrapped(f"{'x ' * 30}token: {JWT}", 72), [JWT[40:], JWT[-60:]]),
    "a token with Windows line ends": (at_column(GITHUB, 7, 80, "token ")[0].replace("\n", "\r\n"), [GITHUB[:7], GITHUB[7:]]),
    "a narrow pane": at_column(GITHUB, 6, 61, "token "),
    "a wide pane": at_column(GITHUB, 6, 203, "token "),
    "an AWS id with a space in it": (f"the id is {AWS[:18]} {AWS[18:]} of that account", [AWS[:18], AWS[18:]]),
    "a token with a space in it": (f"use {GITHUB[:21]} {GITHUB[21:]} for the clone", [GITHUB[:21], GITHUB[21:]]),
    "a token in a box": (f"│ TOKEN={GITHUB[:24]} │\n│ {GITHUB[24:]} │", [GITHUB[:24], GITHUB[24:]]),
    "a token in quoted-printable": (f"token={GITHUB[:24]}=\n{GITHUB[24:]}", [GITHUB[:24], GITHUB[24:]]),
    "a folded header": (f"Authorization: Bearer\n {OPAQUE}\nAccept: */*", [OPAQUE]),
    "a token over indented lines": (f"token:\n    {GITHUB[:24]}\n    {GITHUB[24:]}\nnext: 1", [GITHUB[:24], GITHUB[24:]]),
}  # fmt: skip


@pytest.mark.parametrize("name", WRAPPED)
def test_a_broken_secret_goes(redactor: Redactor, name: str) -> None:
    text, pieces = WRAPPED[name]

    redacted = redactor.redact_text(text, KEYS).text

    assert [left_of(piece, redacted) for piece in pieces if len(piece) >= 6 and left_of(piece, redacted) >= 6] == []
    assert redactor.redact_text(redacted, KEYS).text == redacted


BELOW = {
    "a password": f"Here is the password:\n\n{PASSWORD}\n\nPlease change it.",
    "a password in a fence": f"The admin password is:\n```\n{PASSWORD}\n```\n",
    "a password in bold": f"**Password:**\n`{PASSWORD}`\n",
    "a token": f"Your API key:\n{OPAQUE}\n",
    "a token in a list": f"access token:\n- {OPAQUE}\n",
    "wrapped prose": f"Since the change of yesterday the password of the staging database is\n{PASSWORD} and the user is app.",
    "quoted mail": f"> new password:\n> {PASSWORD}\n> regards",
}


@pytest.mark.parametrize("name", BELOW)
def test_a_secret_below_its_name_goes(redactor: Redactor, name: str) -> None:
    redacted = redactor.redact_text(BELOW[name], KEYS).text

    assert left_of(PASSWORD, redacted) < 6
    assert left_of(OPAQUE, redacted) < 6
    assert redactor.redact_text(redacted, KEYS).text == redacted


RNG = random.Random(92)


def log_line(number: int) -> str:
    return (
        f"2026-11-29T20:15:{number:02d}.{RNG.randrange(1000):03d}Z INFO worker-{RNG.randrange(9)} "
        f"req={uuid.UUID(int=RNG.getrandbits(128))} path=/v1/items/{RNG.randrange(10**6)} status=200 dur={RNG.randrange(900)}ms"
    )


SHA = [hashlib.sha256(bytes([n])).hexdigest() for n in range(20)]
PLAIN = {
    "a log": "\n".join(log_line(n) for n in range(40)),
    "a wrapped log": "\n".join(
        chunk for n in range(10) for line in [log_line(n)] for chunk in (line[at : at + 80] for at in range(0, len(line), 80))
    ),
    "hashes": "\n".join(SHA),
    "wrapped hashes": "\n".join((" ".join(SHA))[at : at + 80] for at in range(0, 1_300, 80)),
    "a wrapped commit list": "\n".join(f"commit {sha[:40]} fix the token refresh of the store when idle"[:80] for sha in SHA),
    "prose at 72": "\n".join([
        "The token limit is 200k and the context window is 1M. A password is what",
        "you choose yourself and a token is what the server makes, so that the",
        "first is short and the second is not. The key is to keep both apart from",
        "code2 and config3 files that anybody may read.",
    ]),
    "code at 79": "def rotate(session_token, password_hash, keyring, now, leeway_s=30, retry3=1):\n    token = keyring.sign(it)\n",
    "a table of names": "\n".join(f"{'value_' + str(n):<60}{'token_count_' + str(n):<20}"[:80] for n in range(12)),
    "base64 lines": "\n".join(base64.b64encode(RNG.randbytes(57)).decode() for _ in range(12)),
    "YAML below": "token:\n  sha256: abc123\n  ttl: 30m\npassword:\n  min_length: 12\nsecrets:\n  - db-cert\n  - tls-cert-2\n",
    "a section below": "## Tokens:\n\n- max_tokens: 8192\n- eos2\n\nPassword:\n\nmust hold 1 digit\n",
    "code below": "if password is\\\n   None:\n    secret:\n        str = x1\n",
    "prose below": "The secret is\nto name things well, v2 or not.\nThe password was\nchanged on 2026-11-29 by the admin1 account.",
    "headings below": "Credentials:\n\nuser-service-v2\n\nTokens:\n\nUTF-8\n",
    "a commit below": f"the token is\n{SHA[3][:40]} in that commit",
    "a token and a commit": f"token {'*' * 8}\n{SHA[0][:40]}\n",
}  # fmt: skip


@pytest.mark.parametrize("name", PLAIN)
def test_lines_that_only_look_broken_stay(redactor: Redactor, name: str) -> None:
    assert redactor.redact_text(PLAIN[name], KEYS).text == PLAIN[name]


def test_what_follows_a_whole_token_is_none_of_it(redactor: Redactor) -> None:
    following = FAKES.opaque(14)

    for text in (f"{GITHUB} {following}", f"{GITHUB}\n{following}", f"{AWS} {following}"):
        assert redactor.redact_text(text, KEYS).text.endswith(text[-15:])
