"""Secrets that an encoding, a break or an invisible character hides."""

from __future__ import annotations

import base64
import json

import pytest

from coatcheck.compaction.redaction import Redactor
from tests.compaction.redaction.fakes import KEYS, Fakes, left_of

FAKES = Fakes(11)
GITHUB, ANTHROPIC, SLACK, JWT = FAKES.github(), FAKES.anthropic(), FAKES.slack(), FAKES.jwt(padding=120)
PASSWORD = FAKES.password()
ENCODED_VARIABLE = base64.b64encode(f"API_KEY={ANTHROPIC}".encode()).decode()
COLOUR = "\x1b[32m"

HIDDEN = {
    "zero width": ("key: " + GITHUB[:10] + "\u200b" + GITHUB[10:], [GITHUB[10:]]),
    "soft hyphen": ("key: " + GITHUB[:20] + "\u00ad" + GITHUB[20:], [GITHUB[4:20], GITHUB[20:]]),
    "nul": ("key: " + GITHUB[:12] + "\x00" + GITHUB[12:], [GITHUB[12:]]),
    "full width": ("key: " + "".join(chr(ord(char) + 0xFEE0) for char in GITHUB[:4]) + GITHUB[4:], [GITHUB[4:]]),
    "styled letters": ("key: " + "𝐠𝐡𝐩" + GITHUB[3:], [GITHUB[4:]]),
    "terminal colours": (f"{COLOUR}API_KEY\x1b[0m={COLOUR}{ANTHROPIC}\x1b[0m", [ANTHROPIC]),
    "colours as text": (rf"\u001b[32mDB_PASSWORD\u001b[0m={PASSWORD}\u001b[0m", [PASSWORD]),
    "base64 of a variable": (ENCODED_VARIABLE, [ENCODED_VARIABLE[30:]]),
    "percent": ("?t=" + "".join(f"%{ord(char):02X}" for char in SLACK), ["".join(f"%{ord(char):02X}" for char in SLACK)[30:]]),
    "percent in a nested url": (f"redirect=https%3A%2F%2Fhost.example%3Fapi_key%3D{GITHUB[4:]}", [GITHUB[4:]]),
    "unicode escape": (r"\u0067" + GITHUB[1:], [GITHUB[4:]]),
    "html entity": ("&#103;" + GITHUB[1:], [GITHUB[4:]]),
    "json in json": (json.dumps({"a": json.dumps({"token": GITHUB})}), [GITHUB]),
    "json in json in json": (json.dumps({"a": json.dumps({"b": json.dumps({"password": PASSWORD})})}), [PASSWORD]),
    "hard wrap": ("key=" + ANTHROPIC[:76] + "\n" + ANTHROPIC[76:], [ANTHROPIC[:76], ANTHROPIC[76:]]),
    "hard wrap over lines": ("\n".join(("t: " + JWT)[at : at + 76] for at in range(0, len(JWT) + 3, 76)), [JWT[73:149], JWT[149:]]),
    "concatenation": (f'k = "{ANTHROPIC[:40]}" + "{ANTHROPIC[40:]}"', [ANTHROPIC[:40], ANTHROPIC[40:]]),
    "concatenation at the prefix": (f"k = '{GITHUB[:4]}' + '{GITHUB[4:]}'", [GITHUB[4:]]),
    "a joined list": (f"k = ['{GITHUB[:4]}', '{GITHUB[4:]}'].join('')", [GITHUB[4:]]),
    "adjacent literals": (f'token = "{GITHUB[:12]}" \\\n    "{GITHUB[12:]}"', [GITHUB[12:]]),
    "cut short": (f"key starts {ANTHROPIC[:60]}…", [ANTHROPIC[:60]]),
    "bad checksum": (f"GITHUB_TOKEN={GITHUB[:-1]}", [GITHUB[:-1]]),
    "an allow comment": (f"token = '{GITHUB}'  # gitleaks:allow kingfisher:ignore pragma: allowlist secret", [GITHUB]),
    "example beside it": (f"example config test: GITHUB_TOKEN={GITHUB} # example", [GITHUB]),
    "second on a line": (f"{FAKES.github()} and {GITHUB}", [GITHUB]),
    "lone surrogate before it": (f"\ud800 password={PASSWORD}", [PASSWORD]),
}  # fmt: skip


@pytest.mark.parametrize("name", HIDDEN)
def test_a_hidden_secret_goes(redactor: Redactor, name: str) -> None:
    text, secrets = HIDDEN[name]

    redacted = redactor.redact_text(text, KEYS).text

    assert [left_of(secret, redacted) for secret in secrets if left_of(secret, redacted) >= 6] == []
    assert redactor.redact_text(redacted, KEYS).text == redacted


def test_two_spellings_of_one_token_have_one_tag(redactor: Redactor) -> None:
    plain = redactor.redact_text(f"key: {GITHUB}", KEYS).text
    hidden = redactor.redact_text(f"key: {GITHUB[:9]}\u200b{GITHUB[9:]}", KEYS).text

    assert plain == hidden


def test_what_surrounds_a_hidden_secret_keeps_its_own_characters(redactor: Redactor) -> None:
    text = f"“quoted” ｆｕｌｌ \ud800 caf\u00ad\u00e9 {GITHUB} 末尾。"

    redacted = redactor.redact_text(text, KEYS).text

    assert redacted.startswith("“quoted” ｆｕｌｌ \ud800 caf\u00ad\u00e9 [REDACTED:")
    assert redacted.endswith("] 末尾。")
