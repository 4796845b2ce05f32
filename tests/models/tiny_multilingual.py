"""A model of a multilingual family made of nothing: vectors in a table as ONNX, a tokenizer of unigrams, in a hub's cache."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer
from tokenizers.models import Unigram
from tokenizers.normalizers import NFKC
from tokenizers.pre_tokenizers import Metaspace, Sequence, WhitespaceSplit
from tokenizers.processors import TemplateProcessing

COMMIT = "0123456789abcdef0123456789abcdef01234567"
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
WORDS = ["▁the", "▁port", "▁порт", "端口", "数据", "数据库", "▁шлюз", "▁query", "▁passage", "ing", "ться"]
CHARACTERS = "▁abcdefghijklmnopqrstuvwxyz0123456789.,:;!?-_/абвгдежзийклмнопрстуфхцчшщъыьэюя端口数据库迁移计划写好了网关监听"
FLOAT, INT64 = 1, 7
"""ONNX's numbers of these types."""


def made_tokenizer() -> Tokenizer:
    """As XLM-R's in its parts: NFKC, words divided at white space, each with a mark of its beginning, unigrams."""
    vocabulary = [(token, 0.0) for token in SPECIAL] + [(word, -2.0 * len(word) ** 0.5) for word in WORDS]
    vocabulary += [(character, -4.0) for character in CHARACTERS]
    tokenizer = Tokenizer(Unigram(vocabulary, unk_id=3, byte_fallback=False))
    tokenizer.normalizer = NFKC()
    tokenizer.pre_tokenizer = Sequence([WhitespaceSplit(), Metaspace()])
    tokenizer.post_processor = TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    tokenizer.add_special_tokens(SPECIAL)
    return tokenizer


def table_of(dimensions: int) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    """A vector for each token, far from length one."""
    count = made_tokenizer().get_vocab_size()
    return np.random.default_rng(5).normal(size=(count, dimensions)).astype(np.float32) * 3


def put_in_cache(cache: Path, repository: str, model_file: str, dimensions: int, max_tokens: int, *, beside: str = "") -> Path:
    """The folder of the one snapshot of a hub's repository. ``beside``: another file of the model."""
    home = cache / ("models--" + repository.replace("/", "--"))
    folder = home / "snapshots" / COMMIT
    folder.mkdir(parents=True)
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text(COMMIT)
    made_tokenizer().save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": max_tokens, "pad_token": "<pad>"}))
    (folder / "config.json").write_text(json.dumps({"pad_token_id": 1}))
    (folder / "special_tokens_map.json").write_text("{}")
    (folder / model_file).parent.mkdir(exist_ok=True)
    (folder / model_file).write_bytes(_gather_model(table_of(dimensions)))
    if beside:
        (folder / beside).write_bytes(b"weights")
    return folder


def _gather_model(table: np.ndarray[tuple[int, int], np.dtype[np.float32]]) -> bytes:
    """ONNX: the table's rows at ``input_ids`` (onnx.proto3: ModelProto, GraphProto, NodeProto, TensorProto, ValueInfoProto)."""
    rows, columns = table.shape
    node = _bytes(1, b"table") + _bytes(1, b"input_ids") + _bytes(2, b"last_hidden_state") + _bytes(4, b"Gather")
    tensor = _number(1, rows) + _number(1, columns) + _number(2, FLOAT) + _bytes(8, b"table") + _bytes(9, table.tobytes())
    inputs = [_value(name, INT64, (b"batch", b"length")) for name in (b"input_ids", b"attention_mask")]
    output = _value(b"last_hidden_state", FLOAT, (b"batch", b"length", columns))
    graph = (
        _bytes(1, node) + _bytes(2, b"table") + _bytes(5, tensor) + b"".join(_bytes(11, one) for one in inputs) + _bytes(12, output)
    )
    return _number(1, 8) + _bytes(7, graph) + _bytes(8, _bytes(1, b"") + _number(2, 13))


def _value(name: bytes, kind: int, shape: tuple[bytes | int, ...]) -> bytes:
    sizes = b"".join(_bytes(1, _number(1, size) if isinstance(size, int) else _bytes(2, size)) for size in shape)
    return _bytes(1, name) + _bytes(2, _bytes(1, _number(1, kind) + _bytes(2, sizes)))


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*written, value])
