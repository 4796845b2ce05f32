"""CUDA graphs for an encoder: captured once for each of a few lengths, replayed on fresh inputs, for one request at a time."""

from coatcheck.gpu.graphs.buckets import Buckets, Shape
from coatcheck.gpu.graphs.pool import RunnerPool
from coatcheck.gpu.graphs.runner import GraphRunner

__all__ = ["Buckets", "GraphRunner", "RunnerPool", "Shape"]
