"""The router's adapter on real GLiClass checkpoints: each way in which the library gives scores that are none, met and refused."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from coatcheck.compaction.policy_document import shipped
from coatcheck.domain.budgets import Budget
from coatcheck.domain.errors import StageUnavailable
from coatcheck.models.gliclass import GliclassRouter
from tests.torch import tiny

LABELS = shipped().label_texts
WORDS = ("the river slowly follows the garden again and again", "thanks a lot", "the port is 8443", "what is still open here")
TRAINED = dict(zip(WORDS, (LABELS[2], LABELS[3], LABELS[0], LABELS[1]), strict=True))


def _soon() -> Budget:
    return Budget.of(UUID(int=1), 60)


def _route(router: GliclassRouter, texts: Sequence[str], labels: Sequence[str] = LABELS) -> list[Mapping[str, float]]:
    return router.route(texts, labels, _soon())


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    model, tokenizer = tiny.gliclass(folder, WORDS, LABELS)
    tiny.train_gliclass(model, tokenizer, TRAINED, LABELS)
    tiny.save(model, tokenizer, folder)
    return folder


@pytest.fixture(scope="module")
def router(trained: Path) -> GliclassRouter:
    return GliclassRouter(trained)


def _best(scores: Mapping[str, float]) -> str:
    return max(scores, key=lambda label: scores[label])


def test_every_label_has_its_score_and_the_one_it_was_taught_is_the_best(router: GliclassRouter) -> None:
    found = _route(router, WORDS)

    assert [set(scores) for scores in found] == [set(LABELS)] * len(WORDS)
    assert [_best(scores) for scores in found] == [TRAINED[text] for text in WORDS]
    assert all(0 <= score <= 1 for scores in found for score in scores.values())


def test_a_text_has_the_same_scores_whatever_is_read_beside_it(router: GliclassRouter) -> None:
    alone = _route(router, [WORDS[1]])[0]
    beside = _route(router, [" ".join(WORDS) * 3, WORDS[1], WORDS[0]])[1]

    assert beside == pytest.approx(alone, abs=1e-5)


def test_no_labels_and_labels_that_are_one_are_refused(router: GliclassRouter) -> None:
    """The library raises an IndexError for the first, and gives one score for two of the second."""
    for labels in ([], ["the same", "the same"], ["<<LABEL>>", "<<LAB EL>>"]):
        with pytest.raises(StageUnavailable):
            _route(router, WORDS, labels)


@pytest.mark.parametrize(
    "hidden",
    ["<<LABEL>>", "<<label>>", "<<Label>> <<SEP>> <<LABEL>>", "[SEP] [CLS] [MASK] [PAD]", "<<<<LABEL>>LABEL>>", "<<EXAMPLE>>"],
)
def test_what_reads_like_a_special_token_in_a_text_is_text(router: GliclassRouter, hidden: str) -> None:
    """A literal label token made another label of the text behind it, and every score was another label's."""
    text = f"thanks {hidden} a lot"

    plain = router._plain(text)
    found = _route(router, [text])

    assert not set(router._tokenizer(plain, add_special_tokens=False)["input_ids"]) & router._special
    assert plain.replace(" ", "") == text.replace(" ", "")
    assert set(found[0]) == set(LABELS)


def test_a_text_without_special_tokens_is_read_as_it_stands(router: GliclassRouter) -> None:
    text = "a < b << c >> d, LABEL, [SE P], and \U0001f600"

    assert router._plain(text) == text


@pytest.mark.parametrize("prompt_first", [True, False])
def test_a_long_text_is_read_to_its_end_and_no_label_is_cut_off(tmp_path: Path, prompt_first: bool) -> None:
    """Where the labels stand behind the text the library cuts them off: each scores 0.5. A label's score is its greatest one."""
    tiny.gliclass(tmp_path, WORDS, LABELS, positions=160, prompt_first=prompt_first)
    router = GliclassRouter(tmp_path)
    text = f"{WORDS[0]}. " * 60 + WORDS[2]
    parts = router._parts(text, LABELS)

    whole = _route(router, [text])[0]
    each = _route(router, parts)

    assert len(parts) > 3
    assert "".join(parts) == text
    assert whole == pytest.approx({label: max(scores[label] for scores in each) for label in LABELS})
    assert len(set(whole.values())) == len(LABELS)


def test_labels_that_leave_no_room_are_refused_instead_of_cut(tmp_path: Path) -> None:
    tiny.gliclass(tmp_path, WORDS, LABELS, positions=64)

    with pytest.raises(StageUnavailable, match="no room"):
        _route(GliclassRouter(tmp_path), ["thanks"])


def test_chinese_and_signs_fit_too(router: GliclassRouter) -> None:
    texts = ["端口是八四四三，不要改动它。" * 120, "\U0001f600" * 900, "x" * 3_800, "", " \n"]

    assert [set(scores) for scores in _route(router, texts)] == [set(LABELS)] * len(texts)


@pytest.mark.parametrize(("kind", "total"), [("single_label_classification", 1.0), ("multi_label_classification", None)])
def test_scores_are_shares_where_the_checkpoint_was_trained_for_one_label(tmp_path: Path, kind: str, total: float | None) -> None:
    tiny.gliclass(tmp_path, WORDS, LABELS, problem_type=kind)

    found = sum(_route(GliclassRouter(tmp_path), [WORDS[0]])[0].values())

    assert (found == pytest.approx(1.0, abs=1e-5)) is (total is not None)


def test_no_time_left_is_no_answer(router: GliclassRouter) -> None:
    with pytest.raises(StageUnavailable, match="time"):
        router.route(WORDS, LABELS, Budget.of(UUID(int=1), -1))


def _edited(trained: Path, folder: Path, **changes: Any) -> Path:
    shutil.copytree(trained, folder, dirs_exist_ok=True)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **changes}))
    return folder


@pytest.mark.parametrize(
    "changes",
    [
        {"architecture_type": "bi-encoder"},
        {"encoder_config": {"model_type": "somebodys-own"}},
        {"encoder_config": None},
        {"class_token_index": 7},
    ],
)
def test_a_checkpoint_that_would_score_by_nothing_or_bring_code_is_refused(
    trained: Path, tmp_path: Path, changes: dict[str, Any]
) -> None:
    with pytest.raises(StageUnavailable):
        GliclassRouter(_edited(trained, tmp_path / "edited", **changes))


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model-2.safetensors"])
def test_a_pipe_among_the_files_of_a_model_is_refused_before_anybody_waits_for_it(trained: Path, tmp_path: Path, name: str) -> None:
    folder = _edited(trained, tmp_path / "edited")
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    found: list[str] = []

    def load() -> None:
        try:
            GliclassRouter(folder)
        except StageUnavailable as error:
            found.append(error.detail)

    asked = threading.Thread(target=load, daemon=True)
    asked.start()
    asked.join(20)

    assert found == [f"{name} in the model's folder {folder} is no ordinary file."]


def test_a_name_of_an_encoder_that_is_missing_or_foreign_is_not_followed(trained: Path, tmp_path: Path) -> None:
    """None is a TypeError of the library; any other is looked up beside the working directory."""
    for name in (None, "somebody/encoder"):
        edited = GliclassRouter(_edited(trained, tmp_path / "edited", encoder_model_name=name))

        assert _best(_route(edited, [WORDS[1]])[0]) == LABELS[3]


def test_weights_that_are_lost_are_refused_instead_of_made_up(trained: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    shutil.copytree(trained, tmp_path / "lossy")
    weights = load_file(trained / "model.safetensors")
    lost = next(name for name in weights if "classes_projector" in name)
    save_file(
        {name: tensor for name, tensor in weights.items() if name != lost},
        tmp_path / "lossy" / "model.safetensors",
        {"format": "pt"},
    )

    with pytest.raises(StageUnavailable, match="lacks weights"):
        GliclassRouter(tmp_path / "lossy")


def test_weights_that_somebody_quantised_are_refused_instead_of_read_without_their_scales(trained: Path, tmp_path: Path) -> None:
    import torch
    from safetensors.torch import load_file, save_file

    shutil.copytree(trained, tmp_path / "eight-bits")
    weights = load_file(trained / "model.safetensors")
    name = next(name for name in weights if "classes_projector" in name and weights[name].dim() == 2)
    for dtype in (torch.float8_e4m3fn, torch.int8):
        changed = {**weights, name: weights[name].to(dtype), f"{name}_scale": torch.ones(1)}
        save_file(changed, tmp_path / "eight-bits" / "model.safetensors", {"format": "pt"})

        with pytest.raises(StageUnavailable, match="quantised"):
            GliclassRouter(tmp_path / "eight-bits")


def test_pickled_weights_are_not_read(trained: Path, tmp_path: Path) -> None:
    import torch
    from safetensors.torch import load_file

    shutil.copytree(trained, tmp_path / "pickled")
    (tmp_path / "pickled" / "model.safetensors").unlink()
    torch.save(load_file(trained / "model.safetensors"), tmp_path / "pickled" / "pytorch_model.bin")

    with pytest.raises(StageUnavailable):
        GliclassRouter(tmp_path / "pickled")
