"""The operator's own rules: what they match goes; a file of which a rule would do nothing is refused before anything starts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from coatcheck.compaction.redaction import Redactor
from coatcheck.compaction.redaction.detector import Detector
from coatcheck.domain.errors import RedactionFailed, RefusedToStart
from coatcheck.domain.placeholders import PlaceholderKeys
from coatcheck.settings import cache_dir
from tests import own_rules
from tests.compaction.redaction.fakes import KEYS, OTHER_SESSION

Write = Callable[[str], Path]


def rule(name: str = "mine.customer-id", pattern: str = r"\b(cust-[0-9]{6}|[0-9]{9})\b", **more: str) -> str:
    fields = {"id": name, "name": "a customer", "pattern": f"'{pattern}'", "min_entropy": "0.0", "confidence": "medium", **more}
    first, *rest = (f"{key}: {value}" for key, value in fields.items())
    return "\n".join([f"  - {first}", *(f"    {line}" for line in rest)]) + "\n"


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(content: str) -> Path:
        path = tmp_path / "mine.yml"
        path.write_text(content, "utf-8")
        return path

    return write


def redactor(path: Path) -> Redactor:
    return Redactor(cache_dir() / "rules", path)


@pytest.fixture(scope="module")
def with_mine(tmp_path_factory: pytest.TempPathFactory) -> Redactor:
    return redactor(own_rules.write(tmp_path_factory.mktemp("rules")))


def test_what_they_match_goes_though_nothing_else_says_that_it_is_a_secret(with_mine: Redactor) -> None:
    text = with_mine.redact_text("Ask badge-204816 about 483920175, the example of number 3.", KEYS)

    assert text.text.count("[REDACTED:mine-staff-number:") == text.counts["mine-staff-number"] == 2
    assert text.text.startswith("Ask [REDACTED:")
    assert text.text.endswith(", the example of number 3.")
    assert with_mine.redact_text(text.text, KEYS).text == text.text


def test_what_can_be_guessed_is_tagged_for_its_session_alone(with_mine: Redactor) -> None:
    """Nobody has said how easily it is guessed, so that a colleague could confirm a guess by a tag of the tenant's."""

    def tag(keys: PlaceholderKeys) -> str:
        return with_mine.redact_text("badge-204816", keys).text

    assert tag(KEYS) == tag(KEYS)
    assert tag(KEYS) != tag(OTHER_SESSION)


def test_another_file_is_another_revision(write: Write, tmp_path: Path) -> None:
    none = Detector(tmp_path).revision
    one = Detector(tmp_path, write("rules:\n" + rule())).revision
    other = Detector(tmp_path, write("rules:\n" + rule() + rule("mine.badge"))).revision

    assert len({none, one, other}) == 3


def test_a_file_that_changes_while_the_process_starts_redacts_nothing_under_the_wrong_revision(write: Write) -> None:
    started = redactor(write("rules:\n" + rule()))
    write("rules:\n" + rule("mine.another"))

    with pytest.raises(RedactionFailed):
        started.redact_text("cust-204816", KEYS)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("rules: [", "is no YAML"),
        ("\x00", "is no YAML"),
        ("rules: []\nrules:\n" + rule(), "says rules twice"),
        ("", "holds no list of rules"),
        ("rules: []", "holds no list of rules"),
        ("rules:\n  - cust", "holds no list of rules"),
        ("rules:\n" + rule(pattern="cust-[0-9"), "does not compile"),
        ("rules:\n" + rule(pattern="(?=cust)cust"), "does not compile"),
        ("rules:\n  - id: mine.nothing\n", "does not compile"),
        ("rules:\n" + rule(confidence="low"), "does not compile"),
        ("rules:\n" + rule() + rule("mine.unsure", confidence="low"), "would find nothing .*mine.unsure"),
        ("rules:\n" + rule(visible="false"), "would find nothing .*mine.customer-id"),
        ("rules:\n" + rule() + rule(), "more than once"),
        ("rules:\n" + rule("coatcheck.assignment.password"), "not one for a rule of yours"),
        ("rules:\n" + rule("betterleaks.jwt"), "not one for a rule of yours"),
        ("rules:\n" + rule("客户"), "not one for a rule of yours"),
    ],
)
def test_a_file_of_which_a_rule_would_do_nothing_is_refused(write: Write, content: str, why: str) -> None:
    with pytest.raises(RefusedToStart, match=f"COATCHECK_REDACTION_RULES: .*{why}"):
        redactor(write(content))


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RefusedToStart, match=r"COATCHECK_REDACTION_RULES: .*cannot be read"):
        redactor(tmp_path / "nowhere.yml")
    with pytest.raises(RefusedToStart, match=r"COATCHECK_REDACTION_RULES: .*cannot be read"):
        redactor(tmp_path)
