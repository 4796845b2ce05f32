"""Offload: the model's stream hands inputs to a worker on the CPU and waits for its rows, with passes overlapping."""

from coatcheck.gpu.offload.connector import Offload
from coatcheck.gpu.offload.job import Failure, Job, Memory

__all__ = ["Failure", "Job", "Memory", "Offload"]
