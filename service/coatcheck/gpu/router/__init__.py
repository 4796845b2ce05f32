"""A quantised GLiClass where it runs: on a GPU with its kernels and graphs, or on a CPU by the kernels' reference."""

from coatcheck.gpu.router.classifier import graph, load
from coatcheck.gpu.router.placement import REFERENCE, Placement, gpu

__all__ = ["REFERENCE", "Placement", "gpu", "graph", "load"]
