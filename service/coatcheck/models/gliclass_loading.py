"""A GLiClass uni-encoder from a local folder, by its library, and what has to be right about it before it is asked anything.

Each check stands for a way in which gliclass 0.1.21 under transformers 5 gives scores that are none, or runs what the folder names,
without an error (measured).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coatcheck.domain.errors import StageUnfit
from coatcheck.models import torch_runtime
from coatcheck.models.checkpoints import require_ordinary
from coatcheck.ops import ordinary_files

MAX_TOKENS = 1_024
"""Of an input of a model without positions of its own (T5): what the library reads."""
_CONFIG_BYTES = 1024 * 1024
_STORED = frozenset({"F64", "F32", "F16", "BF16", "I64", "I32", "BOOL"})
"""Types of tensors that stand for themselves. The library reads others as well, and leaves out the scales that belong to them."""
_TIED = ("shared.weight", "embed_tokens.weight")
"""One matrix under two names in the family of T5."""


Filled = Callable[[Path, Any], Any]
"""Makes the model of a folder by its configuration, with its weights, where it will run."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model ready to be asked, and its bounds."""

    model: Any
    tokenizer: Any
    max_tokens: int
    max_labels: int | None
    special_ids: frozenset[int]
    """Tokens that mean something to the model or its library wherever they stand; the unknown one is none of them."""
    classification: str
    """``multi-label``: each label by itself; ``single-label``: shares of one. As the checkpoint was trained."""


def load(folder: Path, filled: Filled | None = None) -> Loaded:
    """Asks no network and runs nothing of the folder. Raises StageUnfit, and what ``filled`` raises."""
    with torch_runtime.loading():
        return _loaded(folder, filled or in_float32)


def _loaded(folder: Path, filled: Filled) -> Loaded:
    from gliclass import GLiClassModelConfig
    from transformers import AutoTokenizer

    require_ordinary(folder)
    _check_config(folder)
    config = GLiClassModelConfig.from_pretrained(folder, local_files_only=True)
    config.encoder_model_name = str(folder)  # the library looks for adapters there, and fails where it is None
    model = filled(folder, config)
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    _check_tokenizer(tokenizer, config)
    special = {*tokenizer.all_special_ids, *tokenizer.get_added_vocab().values()} - {tokenizer.unk_token_id}
    return Loaded(
        model.eval(),
        tokenizer,
        _max_tokens(model, tokenizer),
        config.max_num_classes if config.max_labels_alloc == "fixed" else None,
        frozenset(special),
        "single-label" if config.problem_type == "single_label_classification" else "multi-label",
    )


def in_float32(folder: Path, config: Any) -> Any:
    """The model with the weights of the folder, whatever type they are stored in."""
    import torch
    from gliclass import GLiClassModel

    _check_types(folder)
    model, report = GLiClassModel.from_pretrained(
        folder, config=config, local_files_only=True, use_safetensors=True, dtype=torch.float32, output_loading_info=True
    )
    _mend_tied(model, folder)
    lost = [name for name in report["missing_keys"] if not _is_tied(model, name)]
    if lost or report["mismatched_keys"]:
        raise StageUnfit(f"The router's checkpoint lacks weights, such as {next(iter(lost), 'those of another shape')}.")
    return model


def _check_config(folder: Path) -> None:
    """Before the library reads it: for an encoder that it does not know it would load code by name, from the hub."""
    from transformers.models.auto import CONFIG_MAPPING

    try:
        config = ordinary_files.read_json(folder / "config.json", _CONFIG_BYTES)
        if not isinstance(config, dict):
            raise ValueError("no object")
    except (OSError, ValueError) as error:
        raise StageUnfit("The router's checkpoint has no config.json that can be read.") from error
    architecture = config.get("architecture_type", "uni-encoder")
    if architecture != "uni-encoder":
        raise StageUnfit(f"The router's checkpoint is a {architecture}; only a uni-encoder is read.")
    encoder = config.get("encoder_config")
    if not isinstance(encoder, dict) or encoder.get("model_type", "deberta-v2") not in CONFIG_MAPPING:
        raise StageUnfit("The encoder of the router's checkpoint is of no known kind.")


def _check_types(folder: Path) -> None:
    with _tensors(folder) as tensors:
        for name, file in tensors.items():
            stored = file.get_slice(name).get_dtype()
            if stored not in _STORED:
                raise StageUnfit(f"The router's checkpoint has {name} in {stored}: name the one that it was quantised from.")


def _check_tokenizer(tokenizer: Any, config: Any) -> None:
    """A label whose token is another one than the model looks for is scored like any other, by nothing."""
    if not tokenizer.is_fast:
        raise StageUnfit("The router's tokenizer cannot say where its tokens stand.")
    if tokenizer.convert_tokens_to_ids("<<LABEL>>") != config.class_token_index:
        raise StageUnfit("The router's tokenizer does not know the label token of its model.")
    if len(tokenizer) > config.vocab_size:
        raise StageUnfit("The router's tokenizer has tokens that its model does not know.")


def _max_tokens(model: Any, tokenizer: Any) -> int:
    """The longest input, special tokens included: by the tokenizer, and by the positions that there are."""
    found = [MAX_TOKENS, int(min(tokenizer.model_max_length, MAX_TOKENS))]
    encoder = model.config.encoder_config.get_text_config()
    positions = getattr(encoder, "max_position_embeddings", None)
    if positions:
        # The family of RoBERTa counts its positions from behind that of the padding.
        padding = [m.padding_idx for name, m in model.named_modules() if name.endswith("position_embeddings")]
        found.append(positions - max((index + 1 for index in padding if index is not None), default=0))
    return min(found)


def _mend_tied(model: Any, folder: Path) -> None:
    """A checkpoint that has T5's matrix under its second name alone is loaded with a random one: it is put in its place."""
    import torch

    encoder = model.model.encoder_model
    if not hasattr(encoder, "shared"):
        return
    with _tensors(folder) as tensors:
        names = {name: file for name, file in tensors.items() if name.endswith(_TIED)}
        if not names:
            raise StageUnfit("The router's checkpoint lacks its embeddings.")
        if any(name.endswith("shared.weight") for name in names):
            return
        name, file = next(iter(names.items()))
        with torch.no_grad():
            encoder.shared.weight.copy_(file.get_tensor(name))


def _is_tied(model: Any, name: str) -> bool:
    return hasattr(model.model.encoder_model, "shared") and name.endswith(_TIED)


@contextmanager
def _tensors(folder: Path) -> Iterator[dict[str, Any]]:
    """Each tensor's file by its name."""
    from safetensors import safe_open

    with ExitStack() as stack:
        files = [stack.enter_context(safe_open(path, "pt")) for path in sorted(folder.glob("*.safetensors"))]
        yield {name: file for file in files for name in file.keys()}  # noqa: SIM118 - no mapping
