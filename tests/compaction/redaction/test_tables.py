"""Tables with bars: a column's head names what stands below it."""

from __future__ import annotations

import pytest

from coatcheck.compaction.redaction import Redactor
from tests.compaction.redaction.fakes import KEYS, Fakes

FIRST, SECOND = Fakes(71).password(14), Fakes(72).password(14)
TABLES = {
    "psql": f" id | name | password \n----+------+-------\n  1 | bob  | {FIRST}\n  2 | eve  | {SECOND}\n(2 rows)",
    "psql, a row at a time": f"-[ RECORD 1 ]------\nusername | bob\npassword | {FIRST}\n-[ RECORD 2 ]\npassword | {SECOND}\n",
    "mysql": f"+------+-----+\n| user | password |\n+------+-----+\n| bob  | {FIRST} |\n| eve  | {SECOND} |\n+------+-----+",
    "Markdown": f"| user | API token | note |\n|---|---|---|\n| bob | `{FIRST}` | a |\n| eve | {SECOND} | b |\n",
    "the first column": f"password|user\n{FIRST}|bob\n{SECOND}|eve\n",
}


@pytest.mark.parametrize("name", TABLES)
def test_what_stands_below_a_secrets_name_goes(redactor: Redactor, name: str) -> None:
    redacted = redactor.redact_text(TABLES[name], KEYS)

    assert FIRST not in redacted.text
    assert SECOND not in redacted.text
    assert sum(redacted.counts.values()) == 2
    assert redactor.redact_text(redacted.text, KEYS).text == redacted.text


@pytest.mark.parametrize(
    "text",
    [
        "| Field | Type | Password |\n|---|---|---|\n| name | string | required |\n| pass | string | optional |\n",
        "| model | tokens | cost |\n|---|---|---|\n| small | 128,000 | 0.15 |\n| large | 200k | 3.00 |\n",
        "| token_count | id |\n|---|---|\n| 48213 | a1b2c3d4e5f6 |\n",
        "cat secrets.txt | grep token\nps aux | grep python3 | wc -l\n",
        "| user | password |\n\nThe next table | is another2 | one4all |\n",
    ],
)
def test_other_tables_stay(redactor: Redactor, text: str) -> None:
    assert redactor.redact_text(text, KEYS).text == text
