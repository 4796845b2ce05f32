"""Held against the library llmlingua: the model's opinion of each token is the same; what the library does besides is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from coatcheck.models.token_classifier import TokenClassifier
from tests.torch import token_classifiers
from tests.torch.refusing import REFUSING, in_a_process

_TEXTS = ["The queue is there and it is really quiet, as it was on that day."]
_LIBRARY = """
from llmlingua import PromptCompressor
try:
    PromptCompressor(sys.argv[1], device_map="cpu", use_llmlingua2=True, model_config={"local_files_only": True})
except OSError:
    pass
print(len(tried))
"""


def test_the_model_says_of_each_token_what_it_says_in_the_library(tmp_path: Path) -> None:
    import torch
    from llmlingua.utils import TokenClfDataset
    from transformers import AutoModelForTokenClassification, AutoTokenizer

    folder = token_classifiers.bert(tmp_path / "made", _TEXTS)
    ours = TokenClassifier(folder, "compressor")

    needed = ours.needed(ours.tokens(_TEXTS[0]).ids)

    read = TokenClfDataset(_TEXTS, tokenizer=AutoTokenizer.from_pretrained(folder), max_len=512)[0]
    with torch.no_grad():
        logits = AutoModelForTokenClassification.from_pretrained(folder)(read["ids"][None], read["mask"][None]).logits
    assert needed == pytest.approx(logits[0].softmax(-1)[1 : len(needed) + 1, 1].tolist(), abs=1e-4)


def test_the_library_itself_would_ask_the_network(tmp_path: Path) -> None:
    folder = token_classifiers.bert(tmp_path / "made", _TEXTS)

    assert int(in_a_process(REFUSING + _LIBRARY, str(folder))) > 0
