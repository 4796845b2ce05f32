"""The encoders that GLiClass comes with: T5's two names for one matrix, RoBERTa's shifted positions, DeBERTa. And no network."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from coatcheck.domain.budgets import Budget
from coatcheck.models.gliclass import GliclassRouter
from tests.torch import tiny

LABELS = ("facts and figures", "small talk")
TEXTS = ("the port is 8443", "thanks a lot, how nice", "the river follows the garden " * 200)


def _tokenizer() -> Any:
    return tiny.bert_tokenizer([*TEXTS, *LABELS], tiny.GLICLASS)


def _scores(folder: Path) -> list[list[float]]:
    found = GliclassRouter(folder).route(TEXTS, LABELS, Budget.of(UUID(int=1), 60))
    return [[scores[label] for label in LABELS] for scores in found]


@pytest.fixture
def mt5(tmp_path: Path) -> Path:
    from transformers import MT5Config

    tokenizer = _tokenizer()
    encoder = MT5Config(
        vocab_size=len(tokenizer), d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, decoder_start_token_id=0
    )  # fmt: skip
    tiny.gliclass(tmp_path / "mt5", TEXTS, LABELS, encoder=encoder, tokenizer=tokenizer)
    return tmp_path / "mt5"


def _renamed(folder: Path, names: tuple[str, ...]) -> None:
    """Leaves the embeddings under these names alone."""
    from safetensors.torch import load_file, save_file

    path = folder / "model.safetensors"
    tensors = load_file(path)
    ends = ("shared.weight", "embed_tokens.weight")
    matrix = next(tensor for name, tensor in tensors.items() if name.endswith(ends))
    kept = {name: tensor for name, tensor in tensors.items() if not name.endswith(ends)}
    save_file({**kept, **{f"model.encoder_model.{name}": matrix.clone() for name in names}}, path, {"format": "pt"})


def test_an_mt5_checkpoint_has_its_embeddings_under_whichever_name_they_stand(mt5: Path) -> None:
    """Under its second name alone the library ties a random matrix in, without an error (measured)."""
    shared, embed = "shared.weight", "encoder.embed_tokens.weight"
    found = []
    for names in ((shared,), (embed,), (shared, embed)):
        _renamed(mt5, names)
        found.append(_scores(mt5))

    assert found[1] == found[0]
    assert found[2] == found[0]


def test_an_mt5_checkpoint_without_embeddings_is_refused(mt5: Path) -> None:
    _renamed(mt5, ())

    with pytest.raises(Exception, match="embeddings"):
        GliclassRouter(mt5)


@pytest.mark.parametrize("family", ["xlm-roberta", "deberta-v2", "modernbert"])
def test_a_text_longer_than_the_positions_is_read_whole_by_every_family(tmp_path: Path, family: str) -> None:
    from transformers import AutoConfig

    tokenizer = _tokenizer()
    encoder = AutoConfig.for_model(
        family,
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=96,
        pad_token_id=1 if family == "xlm-roberta" else 0,
    )
    tiny.gliclass(tmp_path, TEXTS, LABELS, encoder=encoder, tokenizer=tokenizer)
    router = GliclassRouter(tmp_path)

    found = router.route(TEXTS, LABELS, Budget.of(UUID(int=1), 60))

    assert router._max_tokens == (94 if family == "xlm-roberta" else 96)
    assert len(router._parts(TEXTS[2], LABELS)) > 5
    assert all(score == score for scores in found for score in scores.values())


def test_it_is_loaded_and_asked_without_trying_any_connection(tmp_path: Path) -> None:
    """Also no look-up of a name: every socket of the process is refused and written down."""
    tiny.gliclass(tmp_path, TEXTS, LABELS)
    code = textwrap.dedent("""
        import pathlib, socket, sys, uuid
        tried = []
        def refused(*given, **more):
            tried.append(given)
            raise OSError("the network is refused")
        for name in ("connect", "connect_ex", "sendto"):
            setattr(socket.socket, name, refused)
        socket.getaddrinfo = socket.create_connection = refused
        from coatcheck.domain.budgets import Budget
        from coatcheck.models.gliclass import GliclassRouter
        found = GliclassRouter(pathlib.Path(sys.argv[1])).route(["thanks"], ["facts"], Budget.of(uuid.UUID(int=1), 60))
        assert list(found[0]) == ["facts"]
        assert tried == [], tried
    """)

    found = subprocess.run([sys.executable, "-W", "ignore", "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)

    assert found.returncode == 0, found.stderr
