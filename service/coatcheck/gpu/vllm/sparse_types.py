"""Sparse attention called full in a model's configuration, before anything reads it; only where ``VLLM_PLUGINS`` names this.

It lets a runtime take a checkpoint whose layers' type it does not know; that the outputs are the same is not known.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from coatcheck.gpu.attention_types import SPARSE, sparse_as_full
from coatcheck.gpu.vllm.parts import Outcome, Part, State

NAME, ENTRY_POINT = "sparse-as-full", "coatcheck_sparse_as_full"
MODULE = "transformers.configuration_utils"
Override = Callable[[tuple[str, ...]], tuple[str, ...]]
CLASSES = ("PreTrainedConfig", "PretrainedConfig")
"""The class's names, of transformers 5 and before."""
METHOD = "get_config_dict"


def part() -> Part:
    return Part(NAME, f"calls {SPARSE} full_attention, which proves nothing about the outputs", (MODULE,), _apply)


def overridden(config: Mapping[str, Any], override: Override) -> dict[str, Any]:
    """The configuration with its layers' types overridden, its text part's too. Raises what the override raises."""
    changed = dict(config)
    types, text = config.get("layer_types"), config.get("text_config")
    if isinstance(types, list) and SPARSE in types:
        changed["layer_types"] = list(override(tuple(types)))
    if isinstance(text, Mapping):
        changed["text_config"] = overridden(text, override)
    return changed


def _apply(module: ModuleType) -> Outcome:
    for name in CLASSES:
        config = getattr(module, name, None)
        method = vars(config).get(METHOD) if isinstance(config, type) else None
        if isinstance(method, classmethod):
            _change(config, method)
            return Outcome(State.APPLIED, "asked for: layers' types are overridden as a configuration is read")
    return Outcome(State.UNSUITABLE, f"no {CLASSES[0]}.{METHOD}")


def _change(config: Any, method: Any) -> None:
    read = method.__func__
    if hasattr(read, "coatcheck"):
        return

    # A process reads its configuration many times over; the warning is for once.
    @functools.cache
    def override(types: tuple[str, ...]) -> tuple[str, ...]:
        return sparse_as_full(types).layer_types

    def get_config_dict(own: type[Any], /, *given: object, **named: object) -> tuple[dict[str, Any], dict[str, Any]]:
        found, unused = read(own, *given, **named)
        return overridden(found, override), unused

    setattr(get_config_dict, "coatcheck", True)  # noqa: B010 - a function's own attribute
    setattr(config, METHOD, classmethod(functools.update_wrapper(get_config_dict, read)))
