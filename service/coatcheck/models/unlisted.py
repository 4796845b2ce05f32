"""Embedding models that the library can run and does not list by itself: they become names of its own."""

from __future__ import annotations

from contextlib import suppress

_UNLISTED = {"intfloat/multilingual-e5-small": 384, "intfloat/multilingual-e5-base": 768}
"""With their dimensions. By their cards: MIT, the mean of the tokens at length one, the graph below onnx/."""


def make_known() -> None:
    """Once is enough; more changes nothing."""
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType

    listed = {str(model["model"]) for model in TextEmbedding.list_supported_models()}
    for name in _UNLISTED.keys() - listed:
        with suppress(ValueError):  # another thread was first
            TextEmbedding.add_custom_model(
                name,
                pooling=PoolingType.MEAN,
                normalization=True,
                sources=ModelSource(hf=name),
                dim=_UNLISTED[name],
                model_file="onnx/model.onnx",
                license="mit",
            )
