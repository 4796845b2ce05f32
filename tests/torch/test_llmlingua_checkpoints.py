"""A folder that holds no compressor is refused when it is loaded, or its answers are: a random head answers like any other."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest

from coatcheck.domain.budgets import Budget
from coatcheck.domain.errors import RefusedToStart, StageUnavailable
from coatcheck.models.llmlingua import LlmlinguaCompressor
from tests.torch import token_classifiers
from tests.torch.refusing import REFUSING, in_a_process

_TEXTS = ["The queue is there and it is really quiet, as it was on that day."]


def _without_a_head(folder: Path) -> None:
    from transformers import AutoModel

    token_classifiers.bert(folder, _TEXTS)
    AutoModel.from_pretrained(folder).save_pretrained(folder)


def _with_three_labels(folder: Path) -> None:
    token_classifiers.bert(folder, _TEXTS, num_labels=3)


def _of_another_shape(folder: Path) -> None:
    token_classifiers.bert(folder, _TEXTS)
    _edit(folder / "config.json", hidden_size=64)


def _of_another_family(folder: Path) -> None:
    token_classifiers.bert(folder, _TEXTS)
    _edit(folder / "config.json", model_type="distilbert")


def _with_more_tokens_than_embeddings(folder: Path) -> None:
    from transformers import AutoTokenizer

    token_classifiers.bert(folder, _TEXTS)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.add_tokens(["newer"])
    tokenizer.save_pretrained(folder)


def _without_weights(folder: Path) -> None:
    token_classifiers.bert(folder, _TEXTS)
    (folder / "model.safetensors").unlink()


def _of_pickled_weights(folder: Path) -> None:
    import torch

    _without_weights(folder)
    torch.save({}, folder / "pytorch_model.bin")


def _with_code_of_its_own(folder: Path) -> None:
    token_classifiers.bert(folder, _TEXTS)
    (folder / "own.py").write_text("raise SystemExit('this ran')\n")
    _edit(folder / "config.json", model_type="own", auto_map={"AutoConfig": "own.Config"})


def _of_nothing(folder: Path) -> None:
    folder.mkdir()


def _edit(path: Path, **changes: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize(
    "make",
    [
        _without_a_head, _with_three_labels, _of_another_shape, _of_another_family, _with_more_tokens_than_embeddings,
        _without_weights, _of_pickled_weights, _with_code_of_its_own, _of_nothing,
    ],
)  # fmt: skip
def test_what_is_no_compressor_is_refused(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(tmp_path / "made")

    with pytest.raises((RefusedToStart, StageUnavailable)):
        LlmlinguaCompressor(tmp_path / "made")


def test_weights_that_are_no_numbers_give_no_answer(tmp_path: Path) -> None:
    import torch
    from safetensors.torch import load_file, save_file

    weights = token_classifiers.bert(tmp_path / "made", _TEXTS) / "model.safetensors"
    save_file(
        {name: torch.full_like(tensor, float("nan")) for name, tensor in load_file(weights).items()}, weights, {"format": "pt"}
    )
    compressor = LlmlinguaCompressor(tmp_path / "made")

    with pytest.raises(StageUnavailable, match="no answer"):
        compressor.compress(_TEXTS, 0.6, Budget.of(UUID(int=1), 60))


_OURS = """
from pathlib import Path
from uuid import UUID
from coatcheck.domain.budgets import Budget
from coatcheck.models.llmlingua import LlmlinguaCompressor
lengths = []
for folder in sys.argv[2:]:
    compressor = LlmlinguaCompressor(Path(folder))
    lengths.append(len(compressor.compress([sys.argv[1]], 0.1, Budget.of(UUID(int=1), 60))[0]))
print(len(tried), *lengths)
"""


def test_no_connection_is_tried_where_the_network_is_refused(tmp_path: Path) -> None:
    """One process for both families: importing torch is most of what it takes."""
    folders = [make(tmp_path / make.__name__, _TEXTS) for make in (token_classifiers.bert, token_classifiers.xlmr)]

    tried, *lengths = in_a_process(REFUSING + _OURS, _TEXTS[0], *map(str, folders)).split()

    assert tried == "0"
    assert len(lengths) == len(folders)
    assert all(int(length) < len(_TEXTS[0]) for length in lengths)
