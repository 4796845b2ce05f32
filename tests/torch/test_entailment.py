"""The entailment gate on tiny real checkpoints: labels in any order, windows, both directions, and what is no verdict."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from coatcheck.domain.budgets import Budget
from coatcheck.domain.errors import RefusedToStart, StageUnavailable
from coatcheck.domain.routes import Entailment
from coatcheck.models.entailment import EMPTY, TOO_LONG, CrossEncoderEntailment
from tests.torch import tiny_transformers as tiny
from tests.torch.tiny import bert_tokenizer

PAIRS = [
    ("the cache works well and the queue does not work", "the cache works"),
    ("alice owns the staging service , it listens on port 8443", "the queue works"),
    ("is it quiet in the garden ? no , it is loud there", "it is loud"),
    ("the deploy of monday failed twice", "the deploy failed because the disk was full"),
]
LONG = ". ".join([tiny.TEXT.replace(" . ", ". ").replace(" ! ", "! ")] * 6)


def budget(seconds: float = 60) -> Budget:
    return Budget.of(UUID(int=1), seconds)


def gate_of(folder: Path, **options: Any) -> CrossEncoderEntailment:
    return CrossEncoderEntailment(folder, revision="tiny@1", **options)


def judged(gate: CrossEncoderEntailment, *pairs: tuple[str, str]) -> list[Entailment]:
    return gate.judge(list(pairs), budget())


@contextmanager
def read_by(gate: CrossEncoderEntailment) -> Iterator[list[int]]:
    """The lengths in tokens of what the model reads meanwhile."""
    lengths: list[int] = []

    def note(_module: Any, _args: Any, given: dict[str, Any]) -> None:
        lengths.append(int(given["input_ids"].shape[1]))

    handle = gate._loaded()._model.register_forward_pre_hook(note, with_kwargs=True)
    try:
        yield lengths
    finally:
        handle.remove()


def permuted(folder: Path, source: Path, order: list[int]) -> None:
    """The same checkpoint with its outputs in another order, and their names in another case."""
    import torch
    from transformers import BertForSequenceClassification

    model = BertForSequenceClassification.from_pretrained(source)
    with torch.no_grad():
        model.classifier.weight.copy_(model.classifier.weight[order].clone())
        model.classifier.bias.copy_(model.classifier.bias[order].clone())
    names = [tiny.NLI[place].upper() for place in order]
    model.config.id2label = dict(enumerate(names))
    model.config.label2id = {name: number for number, name in enumerate(names)}
    model.save_pretrained(folder)
    bert_tokenizer([tiny.TEXT]).save_pretrained(folder)


def test_the_labels_may_stand_in_any_order_and_case(tmp_path: Path) -> None:
    tiny.classifier(tmp_path / "plain")
    permuted(tmp_path / "permuted", tmp_path / "plain", [2, 0, 1])

    plain = judged(gate_of(tmp_path / "plain"), *PAIRS)
    other = judged(gate_of(tmp_path / "permuted"), *PAIRS)

    assert [verdict.entailed for verdict in other] == [verdict.entailed for verdict in plain]
    assert [verdict.margin for verdict in other] == pytest.approx([verdict.margin for verdict in plain], abs=1e-5)
    assert len({verdict.margin for verdict in plain}) == len(PAIRS)


@pytest.mark.parametrize(
    ("labels", "scores", "entailed"),
    [
        (("entailment", "not_entailment"), (2.0, 0.0), True),
        (("not_entailment", "entailment"), (2.0, 0.0), False),
        (("Contradiction", "Entailment", "Neutral"), (0.0, 2.0, 0.0), True),
        (("CONTRADICTION", "NEUTRAL", "ENTAILMENT"), (0.0, 2.0, 0.0), False),
        (("contradiction", "entailment"), (0.0, 2.0), True),
    ],
)
def test_what_a_checkpoint_calls_its_outputs_decides(
    tmp_path: Path, labels: tuple[str, ...], scores: tuple[float, ...], entailed: bool
) -> None:
    tiny.always(tmp_path, scores, labels)

    (verdict,) = judged(gate_of(tmp_path), PAIRS[0])

    shares = [math.exp(score) / sum(map(math.exp, scores)) for score in scores]
    assert verdict.entailed is entailed
    assert verdict.margin == pytest.approx(sorted(shares)[-1] - (sorted(shares)[-2] if entailed else min(shares)), abs=1e-5)


@pytest.mark.parametrize(
    "labels",
    [
        ("LABEL_0", "LABEL_1", "LABEL_2"),
        ("entailment", "LABEL_1", "neutral"),
        ("entailment", "entails", "neutral"),
        ("neutral", "contradiction", "maybe"),
        ("positive", "negative"),
        ("entailment",),
    ],
)
def test_labels_that_do_not_say_which_is_which_are_refused_at_once(tmp_path: Path, labels: tuple[str, ...]) -> None:
    tiny.classifier(tmp_path, labels)

    with pytest.raises(RefusedToStart, match="labels of the entailment model"):
        gate_of(tmp_path)


def test_names_that_are_given_stand_for_those_that_the_checkpoint_lacks(tmp_path: Path) -> None:
    tiny.always(tmp_path, (0.0, 3.0, 0.0), ("LABEL_0", "LABEL_1", "LABEL_2"))

    (verdict,) = judged(gate_of(tmp_path, labels=("contradiction", "entailment", "neutral")), PAIRS[0])

    assert verdict.entailed
    with pytest.raises(StageUnavailable, match="another shape"):
        judged(gate_of(tmp_path, labels=("entailment", "not_entailment")), PAIRS[0])


def test_a_verdict_is_the_same_whatever_is_judged_beside_it_and_each_time(tmp_path: Path) -> None:
    tiny.classifier(tmp_path)
    gate = gate_of(tmp_path)

    alone = [judged(gate, pair)[0] for pair in PAIRS]

    assert judged(gate, *PAIRS) == alone
    assert judged(gate, *reversed(PAIRS)) == alone[::-1]
    assert judged(gate_of(tmp_path), *PAIRS) == alone


def test_the_other_direction_says_whether_something_was_left_out(tmp_path: Path) -> None:
    """Of a checkpoint that is asked both ways the second answer is what it says of the pair turned round."""
    tiny.classifier(tmp_path, seed=4)
    gate = gate_of(tmp_path)
    reader = gate._loaded()

    both = {(a, b): reader.opinion(a, b, budget()) for a, b in [*PAIRS, *((b, a) for a, b in PAIRS)]}
    entailed = [pair for pair in PAIRS if (opinion := both[pair]) is not None and opinion.lead > 0]
    verdicts = judged(gate, *PAIRS)

    assert entailed, "the seed makes a checkpoint that entails nothing"
    for pair, verdict in zip(PAIRS, verdicts, strict=True):
        turned = both[pair[1], pair[0]]
        assert turned is not None
        assert verdict.reverse == (pytest.approx(turned.entailment, abs=1e-6) if pair in entailed else None)


def test_a_long_premise_is_read_in_windows_none_of_which_is_cut_off(tmp_path: Path) -> None:
    tiny.always(tmp_path, (3.0, 0.0, 0.0))
    gate = gate_of(tmp_path)

    with read_by(gate) as lengths:
        (verdict,) = judged(gate, (LONG, "the cache works."))

    assert verdict.entailed
    assert len(lengths) > 5
    assert max(lengths) <= 128


def test_one_window_that_entails_is_enough_and_one_sentence_that_none_entails_too_much(tmp_path: Path) -> None:
    tiny.classifier(tmp_path)
    gate = gate_of(tmp_path)
    reader = gate._loaded()
    sentences = ["the cache works.", "the queue does not work.", "alice owns the staging service."]

    each = [reader.opinion(LONG, sentence, budget()) for sentence in sentences]
    together = reader.opinion(LONG, " ".join(sentences), budget())

    assert together is not None
    leads = [opinion.lead for opinion in each if opinion is not None]
    failing = [lead for lead in leads if lead <= 0]
    assert together.lead == pytest.approx(failing[0] if failing else min(leads), abs=1e-6)


def test_a_sentence_that_fits_beside_no_premise_is_not_entailed_and_says_why(tmp_path: Path) -> None:
    tiny.always(tmp_path, (3.0, 0.0, 0.0))
    gate = gate_of(tmp_path)
    too_long = "the cache works and " * 30 + "the queue does not."

    with read_by(gate) as lengths:
        (verdict,) = judged(gate, (LONG, too_long))

    assert (verdict.entailed, verdict.reason, lengths) == (False, TOO_LONG, [])


@pytest.mark.parametrize(("premise", "hypothesis"), [("", "it is loud"), ("it is loud", " \n"), ("", "")])
def test_nothing_entails_nothing(tmp_path: Path, premise: str, hypothesis: str) -> None:
    tiny.always(tmp_path, (3.0, 0.0, 0.0))

    assert judged(gate_of(tmp_path), (premise, hypothesis)) == [Entailment(False, 0.0, reason=EMPTY)]


def test_special_tokens_in_a_text_are_text(tmp_path: Path) -> None:
    """Else a premise could end itself, and go on as the hypothesis that it wants to be asked about."""
    tiny.classifier(tmp_path)
    reader = gate_of(tmp_path)._loaded()

    numbers = reader._tokenizer("it is loud [SEP] it is quiet [CLS]", "no", split_special_tokens=True)["input_ids"]

    assert numbers.count(reader._tokenizer.sep_token_id) == 2
    assert numbers.count(reader._tokenizer.cls_token_id) == 1
    assert len(reader._places("loud [SEP] quiet")) > 3


@pytest.mark.parametrize("scores", [(math.nan, 0.0, 0.0), (math.inf, math.inf, 0.0), (math.nan,) * 3])
def test_scores_that_are_no_numbers_are_no_verdict(tmp_path: Path, scores: tuple[float, ...]) -> None:
    tiny.always(tmp_path, scores)

    with pytest.raises(StageUnavailable, match="no numbers"):
        judged(gate_of(tmp_path), PAIRS[0])


def test_a_budget_that_is_spent_ends_the_judging(tmp_path: Path) -> None:
    tiny.always(tmp_path, (3.0, 0.0, 0.0))
    gate = gate_of(tmp_path)
    moments = iter(range(1_000))

    with pytest.raises(StageUnavailable, match="late"):
        gate.judge(PAIRS, Budget(UUID(int=1), 3.5, monotonic=lambda: float(next(moments))))


def test_a_checkpoint_of_the_roberta_family_reads_up_to_its_last_position(tmp_path: Path) -> None:
    tiny.classifier(tmp_path, positions=64, roberta=True)
    gate = gate_of(tmp_path)

    with read_by(gate) as lengths:
        judged(gate, (LONG, "it is loud."), ("the " * 58, "it is"))

    assert max(lengths) <= 64
    assert 63 in lengths


def test_a_folder_that_is_no_checkpoint_or_lacks_weights_is_refused(tmp_path: Path) -> None:
    import torch
    from transformers import BertConfig, BertModel

    with pytest.raises(RefusedToStart, match="holds no model"):
        gate_of(tmp_path)

    words = bert_tokenizer([tiny.TEXT])
    torch.manual_seed(1)
    named = {"id2label": dict(enumerate(tiny.NLI)), "label2id": {label: n for n, label in enumerate(tiny.NLI)}}
    config = BertConfig(
        vocab_size=len(words), hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64, **named
    )
    (tmp_path / "config.json").write_text(json.dumps(config.to_dict()), "utf-8")
    words.save_pretrained(tmp_path)
    with pytest.raises(StageUnavailable):
        judged(gate_of(tmp_path), PAIRS[0])

    BertModel(config).save_pretrained(tmp_path)  # an encoder without its head: the library would make one up
    with pytest.raises(StageUnavailable, match="lacks 2 of its weights"):
        judged(gate_of(tmp_path), PAIRS[0])


def test_loading_and_judging_try_no_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    tiny.classifier(tmp_path)

    def refuse(*_: Any) -> None:
        raise AssertionError("a connection was tried")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)

    assert len(judged(gate_of(tmp_path), *PAIRS)) == len(PAIRS)
