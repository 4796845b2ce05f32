"""A multilingual family by its name in the settings: prefixes, spans of tokens, size and length of the vectors."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest

from coatcheck.domain.errors import StageUnavailable
from coatcheck.index.passages import split
from coatcheck.models.cards import card
from coatcheck.models.fastembed import FastembedEmbedder, hub_embedder
from coatcheck.models.prefixes import Prefixes, prefixes_of
from coatcheck.models.reranker import hub_reranker
from tests.models.tiny_multilingual import COMMIT, made_tokenizer, put_in_cache, table_of

MINILM = "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2"
E5 = "intfloat/multilingual-e5-large"
TEXTS = [
    "the port of the gateway is 8443",
    "порт шлюза 8443, и он закрыт",
    "网关监听端口8443，数据库迁移计划写好了",
    "ﬁle ① ｆｕｌｌ width 🙂 数据\u200b库",
    "mixed порт端口the",
]


@pytest.fixture(scope="module")
def minilm(tmp_path_factory: pytest.TempPathFactory) -> FastembedEmbedder:
    cache = tmp_path_factory.mktemp("minilm")
    put_in_cache(cache, "Qdrant/paraphrase-multilingual-MiniLM-L12-v2-onnx-Q", "model_optimized.onnx", 384, 128)
    return hub_embedder(MINILM, cache, local_files_only=True)


@pytest.fixture(scope="module")
def e5_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cache = tmp_path_factory.mktemp("e5")
    put_in_cache(cache, "Qdrant/multilingual-e5-large-onnx", "model.onnx", 1024, 512, beside="model.onnx_data")
    return cache


@pytest.fixture(scope="module")
def e5(e5_cache: Path) -> FastembedEmbedder:
    return hub_embedder(E5, e5_cache, local_files_only=True)


def by_hand(text: str, dimensions: int) -> list[float]:
    """The mean of the tokens' vectors, of length one."""
    vector = table_of(dimensions)[made_tokenizer().encode(text).ids].mean(axis=0)
    return [float(value) for value in vector / np.linalg.norm(vector)]


@pytest.mark.parametrize("text", TEXTS)
def test_vectors_are_of_length_one_and_of_the_models_size(minilm: FastembedEmbedder, e5: FastembedEmbedder, text: str) -> None:
    for embedder, size in ((minilm, 384), (e5, 1024)):
        for vector in (embedder.embed_passages([text])[0], embedder.embed_query(text)):
            assert len(vector) == embedder.dimensions == size
            assert math.isclose(math.hypot(*vector), 1.0, abs_tol=1e-5)


def test_e5_sees_a_query_and_a_passage_as_it_was_trained_to(e5: FastembedEmbedder) -> None:
    text = TEXTS[1]

    assert np.allclose(e5.embed_query(text), by_hand("query: " + text, 1024), atol=1e-5)
    assert np.allclose(e5.embed_passages([text])[0], by_hand("passage: " + text, 1024), atol=1e-5)


def test_a_model_that_was_trained_without_prefixes_gets_none(minilm: FastembedEmbedder) -> None:
    assert np.allclose(minilm.embed_query(TEXTS[2]), by_hand(TEXTS[2], 384), atol=1e-5)
    assert np.allclose(minilm.embed_passages([TEXTS[2]])[0], by_hand(TEXTS[2], 384), atol=1e-5)


def test_a_small_e5_is_known_by_its_name_although_the_library_lists_none(tmp_path: Path) -> None:
    name = "intfloat/multilingual-e5-small"
    put_in_cache(tmp_path, name, "onnx/model.onnx", 384, 512)

    embedder = hub_embedder(name, tmp_path, local_files_only=True)
    known = card("embedder", name, cache_dir=tmp_path)

    assert np.allclose(embedder.embed_query(TEXTS[0]), by_hand("query: " + TEXTS[0], 384), atol=1e-5)
    assert (known.state, known.licence, known.revision) == ("here", "mit", COMMIT)


@pytest.mark.parametrize("file", ["model.onnx", "model.onnx_data", "tokenizer.json"])
def test_a_model_whose_files_are_broken_or_away_is_unavailable(tmp_path: Path, file: str) -> None:
    folder = put_in_cache(tmp_path, "Qdrant/multilingual-e5-large-onnx", "model.onnx", 1024, 512, beside="model.onnx_data")
    (folder / file).unlink()
    if file == "model.onnx":
        (folder / file).write_bytes(b"half a model")

    with pytest.raises(StageUnavailable):
        hub_embedder(E5, tmp_path, local_files_only=True)


def test_a_reranker_whose_weights_are_broken_is_unavailable(tmp_path: Path) -> None:
    folder = put_in_cache(tmp_path, "Xenova/ms-marco-MiniLM-L-6-v2", "onnx/model.onnx", 1, 512)
    (folder / "onnx" / "model.onnx").write_bytes(b"half a model")

    with pytest.raises(StageUnavailable):
        hub_reranker("Xenova/ms-marco-MiniLM-L-6-v2", tmp_path, local_files_only=True)


@pytest.mark.parametrize("name", [E5, E5.upper(), "intfloat/multilingual-e5-small"])
def test_prefixes_go_by_the_name_whatever_its_case(name: str) -> None:
    assert prefixes_of(name) == Prefixes("query: ", "passage: ")


@pytest.mark.parametrize("text", TEXTS)
def test_spans_of_tokens_are_code_points_of_the_text_in_order(minilm: FastembedEmbedder, text: str) -> None:
    [offsets] = minilm.token_offsets([text])

    assert offsets
    assert all(0 <= start <= end <= len(text) for start, end in offsets)
    assert all(before[0] <= after[0] for before, after in itertools.pairwise(offsets))
    covered = {place for start, end in offsets for place in range(start, end)}
    assert {place for place, char in enumerate(text) if char.isalnum()} <= covered


def test_a_word_is_where_its_token_says(minilm: FastembedEmbedder) -> None:
    text = "🙂 порт 网关数据库"

    [offsets] = minilm.token_offsets([text])

    assert {"порт", "数据库"} <= {text[start:end].strip() for start, end in offsets}


@pytest.mark.parametrize(
    "text",
    [
        "порт шлюза закрыт до среды, и следующий начался. " * 60,
        "数据库迁移计划写好了网关监听端口" * 60,
        "antidisestablishmentarianism" * 60,
        "\n".join(f"{number}: the port of 网关 {number} закрыт" for number in range(120)),
    ],
    ids=["Russian", "Chinese", "one word", "lines"],
)
def test_every_passage_is_read_whole(minilm: FastembedEmbedder, text: str) -> None:
    [offsets] = minilm.token_offsets([text])

    spans = split(text, offsets, minilm.input_tokens)

    sizes = [len(made_tokenizer().encode(text[span.start : span.end]).ids) for span in spans]
    assert "".join(text[span.start : span.end] for span in spans) == text
    assert max(sizes) <= 128
    assert len(spans) <= math.ceil(len(offsets) / minilm.input_tokens)


def test_the_mark_that_begins_a_passage_inside_a_word_has_room(minilm: FastembedEmbedder) -> None:
    text = "写" * (4 * minilm.input_tokens - 1)
    [offsets] = minilm.token_offsets([text])

    spans = split(text, offsets, minilm.input_tokens)

    assert len(offsets) == 4 * minilm.input_tokens
    assert [len(made_tokenizer().encode(text[span.start : span.end]).ids) for span in spans] == [127, 128, 128, 128]


def test_a_prefix_takes_room_from_the_input(e5: FastembedEmbedder) -> None:
    text = "数据库迁移计划写好了" * 200
    [offsets] = e5.token_offsets([text])

    spans = split(text, offsets, e5.input_tokens)

    assert max(len(made_tokenizer().encode("passage: " + text[span.start : span.end]).ids) for span in spans) <= 512


def test_the_revision_is_of_all_files_and_the_weights_are_where_they_are(e5: FastembedEmbedder, e5_cache: Path) -> None:
    assert e5.weights is not None
    assert e5.weights.name == "model.onnx_data"
    before = e5.revision
    (e5_cache / "models--Qdrant--multilingual-e5-large-onnx" / "snapshots" / COMMIT / "model.onnx_data").write_bytes(b"others")

    after = hub_embedder(E5, e5_cache, local_files_only=True).revision

    assert before.startswith(f"{E5}@")
    assert after != before
