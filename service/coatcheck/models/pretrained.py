"""A checkpoint of the transformers library in a local folder: what it says of itself, and that it is whole.

Nothing is looked for outside of the folder, no code of it is run, and weights are read as safetensors alone: other formats can
hold code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from coatcheck.domain.errors import RefusedToStart, StageUnfit
from coatcheck.models import torch_runtime
from coatcheck.models.checkpoints import require_ordinary
from coatcheck.ops import ordinary_files

LOCAL_ONLY: Mapping[str, Any] = {"local_files_only": True, "trust_remote_code": False}
_CONFIG_BYTES = 16 * 1024 * 1024
_LONGEST_SEEN = 100_000
"""A tokenizer that knows no limit says so by a huge number."""
_OFFSET_POSITIONS = frozenset(("roberta", "xlm-roberta", "xlm-roberta-xl", "camembert", "roberta-prelayernorm"))
"""Their positions are counted from the padding's number on, so that as many of them are never used."""
_DEFAULT_TOKENS = 512


def config_of(folder: Path) -> Mapping[str, Any]:
    """The checkpoint's configuration. Raises RefusedToStart where the folder holds none."""
    try:
        config = ordinary_files.read_json(folder / "config.json", _CONFIG_BYTES)
    except (OSError, ValueError) as error:
        raise RefusedToStart(f"{folder} holds no model: its config.json cannot be read.") from error
    if not isinstance(config, dict):
        raise RefusedToStart(f"{folder} holds no model: its config.json is no object.")
    return config


def load_whole(from_pretrained: Callable[..., Any], folder: Path, stage: str) -> Any:
    """The model in 32 bits, ready to answer. Raises StageUnfit where a weight is missing: the library would make one up."""
    import torch

    require_ordinary(folder)
    with torch_runtime.loading():
        model, report = from_pretrained(
            str(folder), dtype=torch.float32, use_safetensors=True, output_loading_info=True, **LOCAL_ONLY
        )
    lacking = [*report["missing_keys"], *report["mismatched_keys"]]
    if lacking:
        raise StageUnfit(f"The checkpoint of the stage {stage} lacks {len(lacking)} of its weights.")
    return model.eval()


def load_tokenizer(folder: Path) -> Any:
    """The checkpoint's tokenizer. What a text holds of special tokens is text to it: no text may end itself."""
    from transformers import AutoTokenizer

    require_ordinary(folder)
    tokenizer = AutoTokenizer.from_pretrained(str(folder), use_fast=True, **LOCAL_ONLY)
    if not tokenizer.is_fast:
        raise StageUnfit("The checkpoint's tokenizer gives no places: it has no tokenizer.json.")
    tokenizer.split_special_tokens = True
    return tokenizer


def input_tokens(tokenizer: Any, config: Any) -> int:
    """The longest input that the model reads whole, special tokens included."""
    limits = [_DEFAULT_TOKENS]
    if 0 < tokenizer.model_max_length < _LONGEST_SEEN:
        limits.append(int(tokenizer.model_max_length))
    positions = getattr(config, "max_position_embeddings", None)
    if isinstance(positions, int) and positions > 0:
        unused = int(config.pad_token_id or 0) + 1 if config.model_type in _OFFSET_POSITIONS else 0
        limits.append(positions - unused)
    return min(limits)
