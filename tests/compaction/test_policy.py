"""The policy is one document: its hash is its name, and a file that does not fit is refused with what is wrong in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from coatcheck.compaction import policy_document, protection
from coatcheck.domain.errors import RefusedToStart
from coatcheck.domain.routes import Route


def _written(folder: Path, text: str) -> Path:
    path = folder / "policy.yaml"
    path.write_text(text, "utf-8")
    return path


def test_the_shipped_policy_protects_all_evidence_and_drops_nothing() -> None:
    policy = policy_document.shipped()

    assert policy.protections == protection.EVIDENCE
    assert not policy.drop.enabled
    assert {label.route for label in policy.labels.values()} == set(Route)
    assert policy.revision == f"3-{policy.digest[:16]}"


def test_a_file_says_what_is_otherwise_and_the_rest_is_as_shipped(tmp_path: Path) -> None:
    text = 'version: "mine-1"\nrouting: {drop: {enabled: true, max_chars: 90}}\nprotections: [path, path, placeholder]\n'

    policy = policy_document.read(_written(tmp_path, text))

    shipped = policy_document.shipped()
    assert (policy.drop.enabled, policy.drop.max_chars, policy.drop.bar) == (True, 90, shipped.drop.bar)
    assert policy.protections == {"path", "placeholder"}
    assert (policy.labels, policy.compress, policy.reduction_rate) == (shipped.labels, shipped.compress, shipped.reduction_rate)
    assert policy.revision.startswith("mine-1-")


@pytest.mark.parametrize(
    "change",
    [
        "routing: {compress: {score: 0.61}}",
        "routing: {drop: {enabled: true}}",
        "protections: [path]",
        "reduction: {rate: 0.5}",
        "gates: {entailment_margin: 0.3}",
        "labels: {a: {route: keep, text: aaa}, b: {route: compress, text: bbb}, c: {route: drop, text: ccc}}",
    ],
)
def test_every_part_of_it_is_in_its_hash(tmp_path: Path, change: str) -> None:
    same = policy_document.read(_written(tmp_path, 'version: "3"\n'))
    other = policy_document.read(_written(tmp_path, f'version: "3"\n{change}\n'))

    assert same == policy_document.shipped()
    assert other.digest != same.digest


def test_the_way_it_is_written_is_not_in_its_hash(tmp_path: Path) -> None:
    one = policy_document.read(_written(tmp_path, 'version: "x"\nprotections: [path, hash]\nreduction:\n  rate: 0.5\n'))
    two = policy_document.read(_written(tmp_path, "# mine\nreduction: {rate: 0.50}\nprotections: [hash, path]\nversion: x\n"))

    assert one.digest == two.digest


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds no policy"),
        ("- 1\n", "holds no policy"),
        ("version: [", "is no YAML"),
        ("\x00", "is no YAML"),
        ("reduction: {rate: 0.5}\n", "has no version of its own"),
        ("version: 4\n", "version: Input should be a valid string"),
        ('version: "a b"\n', "version: String should match"),
        ('version: "4"\nthresholds: {}\n', "thresholds: Extra inputs are not permitted"),
        ('version: "4"\nrouting: {compress: {score: 1.5}}\n', "routing.compress.score: Input should be less than or equal to 1"),
        ('version: "4"\nrouting: {compress: {score: .nan}}\n', "routing.compress.score: Input should be"),
        ('version: "4"\nrouting: {compress: {score: "0.7"}}\n', "routing.compress.score: Input should be a valid number"),
        ('version: "4"\nrouting: {drop: {score: 0.5}}\n', "routing: Value error, leaving text out must take at least"),
        ('version: "4"\nrouting: {drop: {enabled: 1}}\n', "routing.drop.enabled: Input should be a valid boolean"),
        ('version: "4"\nprotections: [pathh]\n', "protections: Value error, no evidence is called pathh"),
        ('version: "4"\nreduction: {rate: 0}\n', "reduction.rate: Input should be greater than 0"),
        ('version: "4"\nlabels: {a: {route: keep, text: aaa}}\n', "labels: Value error, no label speaks for compress, drop"),
        ('version: "4"\nlabels: {a: {route: kept, text: aaa}}\n', "labels.a.route: Input should be 'keep', 'compress' or 'drop'"),
        ('version: "4"\ngates: null\n', "gates: Input should be"),
        ('version: "4"\n1: 2\n', "1: "),
        ('version: "4"\nreduction: {rate: 0.5}\nreduction: {rate: 0.9}\n', "says reduction twice"),
        ('version: "4"\nrouting: {drop: {enabled: false, enabled: true}}\n', "says enabled twice"),
        ('version: "4"\n? [a]\n: 1\n', "is no YAML"),
        ('version: "4"\n' + "#" * 100_000, "cannot be read (too long: over 100,000 bytes)"),
    ],
)
def test_a_document_that_does_not_fit_is_refused_with_what_is_wrong(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(RefusedToStart) as refused:
        policy_document.read(_written(tmp_path, text))

    assert str(refused.value).startswith("COATCHECK_POLICY: ")
    assert said in str(refused.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RefusedToStart, match="cannot be read"):
        policy_document.read(tmp_path / "none.yaml")
