"""Private keys in PEM, in every shape that a transcript bends them into."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from coatcheck.compaction.redaction import Redactor
from tests.compaction.redaction.fakes import KEYS, Fakes, left_of

BENT: dict[str, Callable[[str], str]] = {
    "as it is": lambda pem: f"here:\n{pem}\nthanks",
    "windows lines": lambda pem: pem.replace("\n", "\r\n"),
    "json": lambda pem: json.dumps({"content": pem}),
    "json twice": lambda pem: json.dumps({"x": json.dumps({"content": pem})}),
    "numbered": lambda pem: "\n".join(f"{number:6d}\t{line}" for number, line in enumerate(pem.split("\n"), 1)),
    "numbered with colons": lambda pem: "\n".join(f"id_rsa:{number}:{line}" for number, line in enumerate(pem.split("\n"), 1)),
    "diff": lambda pem: "\n".join("+" + line for line in pem.split("\n")),
    "quoted mail": lambda pem: "\n".join("> " + line for line in pem.split("\n")),
    "indented": lambda pem: "key: |\n" + "\n".join("    " + line for line in pem.split("\n")),
    "string literals": lambda pem: "\n".join(f'    "{line}\\n" +' for line in pem.split("\n")),
    "on one line": lambda pem: pem.replace("\n", " "),
    "coloured": lambda pem: "\n".join(f"\x1b[31m{line}\x1b[0m" for line in pem.split("\n")),
    "after prose": lambda pem: f"It begins with -----BEGIN and so on.\n\n{pem}",
}


@pytest.mark.parametrize("shape", BENT)
@pytest.mark.parametrize("label", ["RSA PRIVATE KEY", "PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"])
def test_a_bent_private_key_goes_whole(redactor: Redactor, shape: str, label: str) -> None:
    pem, body = Fakes(3).pem(label)

    redacted = redactor.redact_text(BENT[shape](pem), KEYS)

    assert [line for line in body if left_of(line, redacted.text) >= 6] == []
    assert redacted.counts == {"private-key": 1}


def test_a_key_without_its_end_goes_as_far_as_it_is_there(redactor: Redactor) -> None:
    pem, body = Fakes(4).pem(lines=20)
    cut = pem[: pem.index(body[12]) + 30] + "\n... [truncated 800 characters]\nnext line"

    redacted = redactor.redact_text(cut, KEYS).text

    assert [line for line in body[:12] if left_of(line, redacted) >= 6] == []
    assert redacted.endswith("\n... [truncated 800 characters]\nnext line")


def test_a_key_without_its_beginning_goes_from_where_it_starts(redactor: Redactor) -> None:
    pem, body = Fakes(5).pem(lines=20)
    cut = "the file ends like this:\n" + pem[pem.index(body[4]) :] + "\nthanks"

    redacted = redactor.redact_text(cut, KEYS).text

    assert [line for line in body[4:] if left_of(line, redacted) >= 6] == []
    assert redacted.startswith("the file ends like this:\n[REDACTED:private-key:")
    assert redacted.endswith("\nthanks")


def test_a_body_with_neither_end_is_known_by_its_first_bytes(redactor: Redactor) -> None:
    _, body = Fakes(6).pem(lines=8)
    first = "MII" + "Evg" + "IBADAN" + "BgkqhkiG9w0BAQEFAASC" + body[0][:32]

    redacted = redactor.redact_text("\n".join(["data:", first, *body[1:], "done"]), KEYS).text

    assert [line for line in body[1:] if left_of(line, redacted) >= 6] == []
    assert redacted.startswith("data:\n[REDACTED:private-key:")
    assert redacted.endswith("\ndone")


def test_a_key_longer_than_a_chunk_goes_whole(redactor: Redactor) -> None:
    pem, body = Fakes(7).pem(lines=500)
    text = "x " * 15_000 + pem + " y" * 15_000

    redacted = redactor.redact_text(text, KEYS)

    assert [line for line in body if line in redacted.text] == []
    assert redacted.counts == {"private-key": 1}


def test_a_thousand_marks_of_keys_cost_no_more_than_their_length(redactor: Redactor) -> None:
    dashes = "-" * 5
    text = f"{dashes}BEGIN PRIVATE KEY{dashes}\n" * 2_000 + f"{dashes}END PRIVATE KEY{dashes}\n" * 2_000

    assert redactor.redact_text(text, KEYS).text == text
