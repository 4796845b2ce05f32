"""The sizes of the encoder, from a checkpoint's ``config.json``."""

from __future__ import annotations

from pathlib import Path

from coatcheck.domain.errors import GpuUnfit
from coatcheck.gpu.fp8.layout import EncoderShape
from coatcheck.ops.ordinary_files import read_json

_MOST_BYTES = 1024 * 1024
_MOST_BLOCKS = 1024
"""Beyond any encoder there is. Names are made for each, before a tensor is looked for."""
_DEFAULTS = {
    "num_layers": 8, "d_model": 512, "d_kv": 64, "num_heads": 6, "d_ff": 1024, "relative_attention_num_buckets": 32,
    "vocab_size": 250_112,
}  # fmt: skip
"""What transformers leaves out of the file where it is so (MT5Config)."""


def encoder_shape(folder: Path) -> EncoderShape:
    """Raises GpuRefused for anything but a GLiClass uni-encoder over an mT5 encoder with gated feed-forward layers."""
    path = folder / "config.json"
    try:
        config = read_json(path, _MOST_BYTES)
    except (OSError, ValueError) as error:
        raise GpuUnfit(f"{path} cannot be read as JSON.") from error
    encoder = config.get("encoder_config") if isinstance(config, dict) else None
    if not isinstance(encoder, dict) or config.get("architecture_type", "uni-encoder") != "uni-encoder":
        raise GpuUnfit(f"{path} is not that of a GLiClass uni-encoder.")
    if encoder.get("model_type") != "mt5" or not str(encoder.get("feed_forward_proj", "gated-gelu")).startswith("gated-"):
        raise GpuUnfit(f"The encoder in {path} is {encoder.get('model_type')}; only an mT5 with gated layers is quantised.")
    sizes = {name: encoder.get(name, default) for name, default in _DEFAULTS.items()}
    if config.get("vocab_size") is not None:
        sizes["vocab_size"] = config["vocab_size"]
    wrong = [name for name, size in sizes.items() if type(size) is not int or size < 1]
    if wrong:
        raise GpuUnfit(f"In {path}, {wrong[0]} is {sizes[wrong[0]]!r}, which is no size.")
    if sizes["num_layers"] > _MOST_BLOCKS:
        raise GpuUnfit(f"In {path}, num_layers is {sizes['num_layers']:,}; {_MOST_BLOCKS:,} are read at most.")
    return EncoderShape(
        blocks=sizes["num_layers"],
        hidden=sizes["d_model"],
        inner=sizes["num_heads"] * sizes["d_kv"],
        feed_forward=sizes["d_ff"],
        heads=sizes["num_heads"],
        buckets=sizes["relative_attention_num_buckets"],
        vocabulary=sizes["vocab_size"],
    )
