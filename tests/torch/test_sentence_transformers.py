"""An embedder and a reranker that only sentence-transformers reads, from folders, by the names of the settings."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from coatcheck.domain.errors import RefusedToStart
from coatcheck.models import build_embedder, build_reranker
from tests.torch import tiny

TEXTS = ("the port is 8443", "how nice, well done", "the river follows the garden again and again and again")


@pytest.fixture(scope="module")
def embedder_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import BertModel

    folder = tmp_path_factory.mktemp("embedder")
    torch.manual_seed(3)
    tokenizer = tiny.bert_tokenizer(TEXTS)
    tiny.save(BertModel(tiny.bert_config(tokenizer, positions=64)), tokenizer, folder / "plain")
    inner = Transformer(str(folder / "plain"), max_seq_length=64)
    made = SentenceTransformer(modules=[inner, Pooling(32)], prompts={"query": "query: ", "document": "passage: "}, device="cpu")
    made.save_pretrained(str(folder / "made"))
    return folder / "made"


def test_an_embedder_in_a_folder_gives_unit_vectors_that_no_neighbour_moves(embedder_folder: Path) -> None:
    embedder = build_embedder(str(embedder_folder)).model
    assert embedder is not None

    together = embedder.embed_passages(TEXTS)
    alone = [embedder.embed_passages([text])[0] for text in TEXTS]

    assert together == alone
    assert [math.hypot(*vector) for vector in together] == pytest.approx([1.0] * 3)
    assert {len(vector) for vector in together} == {embedder.dimensions} == {32}
    assert embedder.embed_query(TEXTS[0]) != alone[0]
    assert embedder.revision.startswith("made@")


def test_its_spans_are_the_texts_own_and_its_longest_input_leaves_room_for_what_is_put_before(embedder_folder: Path) -> None:
    embedder = build_embedder(str(embedder_folder)).model
    assert embedder is not None

    (spans,) = embedder.token_offsets([TEXTS[0]])

    assert [TEXTS[0][start:end] for start, end in spans] == ["the", "port", "is", "8443"]
    assert len(embedder.token_offsets(["port " * 500])[0]) == 500
    assert 40 < embedder.input_tokens < 64 - 2


def _reranker(folder: Path, *, outputs: int = 1, card: str = "") -> Path:
    import torch
    from transformers import BertForSequenceClassification

    torch.manual_seed(5)
    tokenizer = tiny.bert_tokenizer(TEXTS)
    config = tiny.bert_config(tokenizer)
    config.num_labels = outputs
    tiny.save(BertForSequenceClassification(config), tokenizer, folder)
    if card:
        (folder / "README.md").write_text(card)
    return folder


@pytest.mark.parametrize(
    ("card", "english"),
    [
        ("---\nlanguage: en\nlicense: mit\n---\n", True),
        ("---\nlanguage:\n- en\n- de\n---\n", False),
        ("---\nlanguage: no\n---\n", False),
        ("", False),
    ],
)
def test_a_reranker_in_a_folder_gives_the_same_logits_in_any_company(tmp_path: Path, card: str, english: bool) -> None:
    reranker: Any = build_reranker(str(_reranker(tmp_path, card=card))).model

    together = reranker.score("which port", TEXTS)

    assert together == [reranker.score("which port", [text])[0] for text in TEXTS]
    assert len(set(together)) == 3
    assert reranker.english_only is english


def test_a_model_that_gives_no_single_score_is_no_reranker(tmp_path: Path) -> None:
    reranker: Any = build_reranker(str(_reranker(tmp_path, outputs=3))).model

    with pytest.raises(Exception, match="more than one score"):
        reranker.score("which port", TEXTS)


def test_a_named_folder_without_a_model_refuses_to_start(tmp_path: Path) -> None:
    for build in (build_embedder, build_reranker):
        with pytest.raises(RefusedToStart, match="no model in the folder"):
            build(str(tmp_path / "nowhere"))
