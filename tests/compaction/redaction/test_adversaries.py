"""Texts made to be slow, or to be more than can be judged."""

from __future__ import annotations

import time

import pytest

from coatcheck.compaction.redaction import Redactor
from coatcheck.compaction.redaction.finder import CHARS_PER_JUDGED, JUDGED_AT_LEAST
from tests.compaction.redaction.fakes import KEYS, Fakes

DASHES = "-" * 5
SLOW = {
    "prefixes": "sk-" * 20_000,
    "names": "password" * 8_000,
    "names with underscores": "token_" * 10_000,
    "open quotes": 'password="' * 5_000,
    "headers": "Authorization: Bearer " * 2_500,
    "cookies": "Cookie: a=b; " * 4_000,
    "placeholders": "[REDACTED:password:0123456789abcdef]" * 1_500,
    "escapes": "%41" * 20_000,
    "concatenations": '"a" + ' * 10_000,
    "lists": "[" * 30_000 + "]" * 30_000,
    "jwt heads": "eyJ" * 20_000,
    "at signs": "://" + "a" * 500 + ":" + "@" * 50_000,
    "backslashes": "\\" * 60_000,
    "zero widths": "a\u200b" * 30_000,
    "base64 before an end": "Ab3/" * 15_000 + f"\n{DASHES}END PRIVATE KEY{DASHES}" * 40,
    "words to a password": "password " + "a b c d e f g " * 4_000,
}


@pytest.mark.parametrize("name", SLOW)
def test_no_text_of_sixty_thousand_characters_takes_seconds(redactor: Redactor, name: str) -> None:
    began = time.thread_time()

    redactor.redact_text(SLOW[name], KEYS)

    assert time.thread_time() - began < 4


def test_what_is_beyond_the_judged_matches_is_covered_unasked(redactor: Redactor) -> None:
    fakes = Fakes(51)
    secret = fakes.password()
    matches = JUDGED_AT_LEAST + 500
    filler = "password=${PW} " * matches
    assert matches > JUDGED_AT_LEAST + len(filler) // CHARS_PER_JUDGED

    redacted = redactor.redact_text(f"{filler}password={secret} end", KEYS)

    assert secret not in redacted.text
    assert redacted.text.startswith("password=${PW} ")
    assert redacted.counts["unjudged"] > 0
