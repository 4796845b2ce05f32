"""The summariser of this machine on a tiny real encoder-decoder."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from coatcheck.domain.budgets import Budget
from coatcheck.domain.errors import RefusedToStart, StageUnavailable
from coatcheck.models import pretrained, sentences
from coatcheck.models.seq2seq import Seq2SeqSummariser
from tests.torch import tiny_transformers as tiny
from tests.torch.tiny import bert_tokenizer

TEXTS = [tiny.TEXT, "", "the deploy failed twice .", tiny.TEXT]


def budget(seconds: float = 60) -> Budget:
    return Budget.of(UUID(int=1), seconds)


def test_the_same_texts_give_the_same_overview_within_its_length(tmp_path: Path) -> None:
    tiny.summariser(tmp_path)

    first = Seq2SeqSummariser(tmp_path, revision="tiny@1").summarise(TEXTS, 300, budget())

    assert first
    assert len(first) <= 300
    assert Seq2SeqSummariser(tmp_path, revision="tiny@1").summarise(TEXTS, 300, budget()) == first
    assert not {"[CLS]", "[SEP]", "[PAD]"} & set(first.split())


def test_a_long_window_is_read_in_parts_the_first_and_the_newest_none_of_them_cut_off(tmp_path: Path) -> None:
    tiny.summariser(tmp_path, task={"prefix": "the deploy : "})
    summariser = Seq2SeqSummariser(tmp_path, revision="tiny@1", max_parts=3)
    model, tokenizer = summariser._model()
    read: list[str] = []

    def note(_module: Any, _args: Any, given: dict[str, Any]) -> None:
        read.append(tokenizer.decode(given["input_ids"][0], skip_special_tokens=True))
        assert given["input_ids"].shape[1] <= 64

    model.get_encoder().register_forward_pre_hook(note, with_kwargs=True)
    with suppress(StageUnavailable):  # what the tiny model says is nothing to count on
        summariser.summarise(["alice owns the queue ."] + ["it is loud there ."] * 60 + ["the disk was full ."], 300, budget())

    assert len(read) == 3
    assert all(text.startswith("the deploy : ") for text in read)
    assert read[0].startswith("the deploy : alice owns the queue")
    assert read[-1].endswith("the disk was full.") or read[-1].endswith("the disk was full .")


def test_half_a_sentence_is_left_out(tmp_path: Path) -> None:
    """The tiny model never ends by itself: what it says last is cut off, and so is no sentence."""
    tiny.summariser(tmp_path)
    summariser = Seq2SeqSummariser(tmp_path, revision="tiny@1")
    model, _ = summariser._model()
    model.generation_config.eos_token_id = None
    model.generation_config.forced_eos_token_id = None

    try:
        said = summariser.summarise(TEXTS, 300, budget())
    except StageUnavailable:
        said = ""

    assert said == "" or said[-1] in ".!?"
    assert said == sentences.head(said, 300)


def test_time_is_kept_between_parts_and_within_one(tmp_path: Path) -> None:
    tiny.summariser(tmp_path)
    moments = iter(range(1_000))
    clocked = Budget(UUID(int=1), 3.5, monotonic=lambda: float(next(moments)))
    summariser = Seq2SeqSummariser(tmp_path, revision="tiny@1")

    with pytest.raises(StageUnavailable, match="late"):
        summariser.summarise(TEXTS * 10, 300, clocked)
    with pytest.raises(StageUnavailable, match="late"):
        summariser.summarise(TEXTS, 300, budget(0))


def test_nothing_said_is_no_overview(tmp_path: Path) -> None:
    tiny.summariser(tmp_path)

    with pytest.raises(StageUnavailable):
        Seq2SeqSummariser(tmp_path, revision="tiny@1").summarise(["", " "], 300, budget())


def test_a_folder_without_a_model_is_refused_and_one_without_all_weights_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(RefusedToStart):
        Seq2SeqSummariser(tmp_path, revision="tiny@1")

    model = tiny.summariser(tmp_path)
    decoder_alone = {name: weight for name, weight in model.state_dict().items() if "encoder.layers" not in name}
    model.save_pretrained(tmp_path, state_dict=decoder_alone)
    with pytest.raises(StageUnavailable, match="lacks"):
        Seq2SeqSummariser(tmp_path, revision="tiny@1").summarise(TEXTS, 300, budget())


@pytest.mark.parametrize("kind", ["t5", "mt5"])
def test_a_checkpoint_without_the_embeddings_that_its_decoder_shares_is_no_model(tmp_path: Path, kind: str) -> None:
    """The library ties a random matrix in, and says so in a log line alone."""
    import torch
    from transformers import MT5Config, MT5ForConditionalGeneration, T5Config, T5ForConditionalGeneration

    torch.manual_seed(1)
    words = bert_tokenizer([tiny.TEXT])
    shape = {"d_model": 32, "d_kv": 16, "d_ff": 64, "num_layers": 1, "num_heads": 2, "vocab_size": len(words)}
    made: Any = (
        T5ForConditionalGeneration(T5Config(**shape, decoder_start_token_id=0))
        if kind == "t5"
        else MT5ForConditionalGeneration(MT5Config(**shape, decoder_start_token_id=0))
    )
    made.save_pretrained(tmp_path)
    words.save_pretrained(tmp_path)
    whole = pretrained.load_whole(type(made).from_pretrained, tmp_path, "summariser")
    assert torch.equal(whole.get_input_embeddings().weight, made.get_input_embeddings().weight)

    state = dict(made.state_dict())
    embeddings = state.pop("shared.weight")
    state.pop("decoder.embed_tokens.weight", None)
    state["encoder.embed_tokens.weight"] = embeddings.clone()
    from safetensors.torch import save_file

    save_file(
        {name: weight.contiguous().clone() for name, weight in state.items()}, tmp_path / "model.safetensors", {"format": "pt"}
    )
    try:
        loaded = pretrained.load_whole(type(made).from_pretrained, tmp_path, "summariser")
    except StageUnavailable:
        return
    assert torch.equal(loaded.get_input_embeddings().weight, embeddings)
