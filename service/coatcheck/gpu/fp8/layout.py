"""What of a GLiClass checkpoint with an mT5 encoder is quantised, and what each of its tensors is called and shaped.

The seven projections of every encoder block become E4M3 with one float32 scale per output channel: ``weight`` keeps its name,
``weight_scale`` (channels, 1) comes beside it, and ``weight * weight_scale`` is what it stands for. All else stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from coatcheck.domain.errors import GpuUnfit

E4M3_MAX = 448.0
SMALLEST_SCALE = 2.0**-126
"""The smallest normal float32. A row of zeros has it, and so has one that is nearly so: a subnormal scale would be a coarse one."""
ALIGNED = 16
"""FP8 products on a GPU want their sides in multiples of this."""
WEIGHTS_FILE = "fp8.safetensors"
"""Not ``model.safetensors``: transformers would load that, leave the scales out, and answer nonsense without an error."""
RECORD_FILE = "quantization.json"
SCALE_SUFFIX = "_scale"

_ENCODER = "model.encoder_model."
EMBEDDINGS = (f"{_ENCODER}shared.weight", f"{_ENCODER}encoder.embed_tokens.weight")
"""One matrix of T5 under two names; a checkpoint has either or both."""
_HEADS = ("model.text_projector.", "model.classes_projector.", "model.scorer.", "model.lstm.", "model.layer_wise_attention.")
_OTHERS = (*_HEADS, "model.segment_embeddings.", "calibrator.")
"""Where else gliclass 0.1.21 keeps tensors of a uni-encoder; which of them there are is for its configuration to say."""
_LOGIT_SCALE = "model.logit_scale"
_ALWAYS = tuple(f"{head}{layer}.{kind}" for head in _HEADS[:2] for layer in ("linear_1", "linear_2") for kind in ("weight", "bias"))

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Header:
    """What a checkpoint says of a tensor ahead of its bytes; ``dtype`` in safetensors' words (BF16, F8_E4M3, F32)."""

    dtype: str
    shape: Shape


@dataclass(frozen=True, slots=True)
class EncoderShape:
    """The sizes of an mT5 encoder. ``inner`` is heads times the size of one."""

    blocks: int
    hidden: int
    inner: int
    feed_forward: int
    heads: int
    buckets: int
    vocabulary: int

    def matrices(self) -> dict[str, Shape]:
        """The projections that are quantised, (output channels, input channels): seven a block."""
        narrow, wide = (self.inner, self.hidden), (self.feed_forward, self.hidden)
        found: dict[str, Shape] = {}
        for block in range(self.blocks):
            attention, forward = _block(block, 0, "SelfAttention"), _block(block, 1, "DenseReluDense")
            found |= {f"{attention}.{name}.weight": narrow for name in ("q", "k", "v")}
            found[f"{attention}.o.weight"] = narrow[::-1]
            found |= {f"{forward}.{name}.weight": wide for name in ("wi_0", "wi_1")}
            found[f"{forward}.wo.weight"] = wide[::-1]
        return found

    def kept(self) -> dict[str, Shape]:
        """The encoder's other tensors, but for the embeddings."""
        norms = [_block(block, layer, "layer_norm.weight") for block in range(self.blocks) for layer in (0, 1)]
        return {
            **{name: (self.hidden,) for name in norms},
            _block(0, 0, "SelfAttention.relative_attention_bias.weight"): (self.buckets, self.heads),
            f"{_ENCODER}encoder.final_layer_norm.weight": (self.hidden,),
        }

    def check(self, headers: Mapping[str, Header]) -> None:
        """Raises GpuRefused, naming the tensor, unless these are a checkpoint's: all of them, in BF16, no other one."""
        expected = {**self.matrices(), **self.kept()}
        embeddings = [name for name in EMBEDDINGS if name in headers]
        missing = [name for name in (*expected, *_ALWAYS, _LOGIT_SCALE) if name not in headers]
        if not embeddings:
            missing.insert(0, EMBEDDINGS[0])
        if missing:
            raise GpuUnfit(f"The checkpoint lacks {len(missing)} tensors that its configuration promises: {_named(missing)}.")
        expected |= {name: (self.vocabulary, self.hidden) for name in embeddings}
        unknown = [name for name in headers if name not in expected and not name.startswith(_OTHERS) and name != _LOGIT_SCALE]
        if unknown:
            raise GpuUnfit(f"The checkpoint has {len(unknown)} tensors that are not known: {_named(unknown)}.")
        for name, header in headers.items():
            if header.dtype != "BF16":
                raise GpuUnfit(f"The tensor {name!r} is {header.dtype}; only a checkpoint in BF16 is quantised.")
            if header.shape != expected.get(name, header.shape):
                raise GpuUnfit(f"The tensor {name!r} has the shape {header.shape}; its configuration says {expected[name]}.")

    def check_quantised(self, headers: Mapping[str, Header]) -> None:
        """Raises GpuRefused, naming the tensor, unless these are a quantised checkpoint's."""
        matrices = self.matrices()
        scales = {name + SCALE_SUFFIX for name in matrices}
        as_source = {
            name: Header("BF16", header.shape) if name in matrices else header
            for name, header in headers.items()
            if name not in scales
        }
        self.check(as_source)
        for name, expected in self.quantised(as_source).items():
            if headers.get(name) != expected:
                raise GpuUnfit(f"The tensor {name!r} is {headers.get(name)}; in a quantised checkpoint it is {expected}.")

    def quantised(self, headers: Mapping[str, Header]) -> dict[str, Header]:
        """What a quantised checkpoint of these tensors holds."""
        made: dict[str, Header] = {}
        matrices = self.matrices()
        for name, header in headers.items():
            if name in matrices:
                made[name] = Header("F8_E4M3", header.shape)
                made[name + SCALE_SUFFIX] = Header("F32", (header.shape[0], 1))
            else:
                made[name] = header
        return made


def _block(block: int, layer: int, rest: str) -> str:
    return f"{_ENCODER}encoder.block.{block}.layer.{layer}.{rest}"


def _named(names: list[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:3])
    return shown if len(names) <= 3 else f"{shown} and others"
