"""Neural models behind the pipeline's ports, and the worker that runs the embedder. A model is loaded when it is first used."""

from coatcheck.models.registry import Built, build_embedder, build_reranker

__all__ = ["Built", "build_embedder", "build_reranker"]
