"""A model's ``config.json`` as the planner sees it: which layers keep tokens, which keep a state, and how much of either.

Read as transformers writes it for full-attention models and for hybrids with gated delta nets. A layer type that is not one of the
two is refused: a plan that leaves layers out would promise memory that is not there.
"""

from __future__ import annotations

from collections.abc import Mapping

from coatcheck.domain.errors import GpuRefused
from coatcheck.gpu.nvfp4.planner import KvFormat, Plan, StateLayers, full_attention, gated_delta_net, plan

_FULL, _LINEAR = "full_attention", "linear_attention"
_ELEMENT_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


def planned(config: object, kind: KvFormat, block_tokens: int | None = None) -> Plan:
    """Raises GpuRefused for a field that is missing or no number, for other kinds of layers, and as ``planner.plan`` does."""
    if not isinstance(config, Mapping):
        raise GpuRefused("The model's configuration is no JSON object.")
    text = config.get("text_config", config)
    if not isinstance(text, Mapping):
        raise GpuRefused("text_config is no JSON object.")
    kinds = _layer_types(text)
    if _FULL not in kinds:
        raise GpuRefused("The model has no layer with full attention: there are no pages to plan.")
    attention = full_attention("full attention", kinds.count(_FULL), _number(text, "num_key_value_heads"), _head_size(text), kind)
    return plan([attention], _states(text, kinds.count(_LINEAR)), block_tokens)


def _layer_types(text: Mapping[str, object]) -> list[str]:
    """By ``layer_types`` where they stand, else every ``full_attention_interval``-th layer is a full one."""
    layers, listed = _number(text, "num_hidden_layers"), text.get("layer_types")
    if listed is None:
        every = _number(text, "full_attention_interval", 1)
        return [_FULL if (layer + 1) % every == 0 else _LINEAR for layer in range(layers)]
    if not isinstance(listed, list) or len(listed) != layers:
        raise GpuRefused(f"layer_types is no list of {layers} names, one for each layer.")
    others = sorted({str(name) for name in listed} - {_FULL, _LINEAR})
    if others:
        raise GpuRefused(f"Layers of these types cannot be planned: {', '.join(others)}. {_FULL} and {_LINEAR} can.")
    return [str(name) for name in listed]


def _head_size(text: Mapping[str, object]) -> int:
    if text.get("head_dim") is not None:
        return _number(text, "head_dim")
    return _number(text, "hidden_size") // _number(text, "num_attention_heads")


def _states(text: Mapping[str, object], layers: int) -> list[StateLayers]:
    if not layers:
        return []
    kept_as = text.get("mamba_ssm_dtype", "float32")
    if not isinstance(kept_as, str) or kept_as not in _ELEMENT_BYTES:
        raise GpuRefused(f"mamba_ssm_dtype is not one of {', '.join(_ELEMENT_BYTES)}.")
    return [
        gated_delta_net(
            "linear attention",
            layers,
            _number(text, "linear_num_key_heads"),
            _number(text, "linear_num_value_heads"),
            _number(text, "linear_key_head_dim"),
            _number(text, "linear_value_head_dim"),
            convolution=_number(text, "linear_conv_kernel_dim"),
            state_element_bytes=_ELEMENT_BYTES[kept_as],
        )
    ]


def _number(text: Mapping[str, object], name: str, default: int | None = None) -> int:
    found = text.get(name, default)
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise GpuRefused(f"{name} is missing, or no whole number from 1 on.")
    return found
