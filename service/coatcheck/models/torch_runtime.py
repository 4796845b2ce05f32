"""What every model that runs on torch needs of it, once for each process."""

from __future__ import annotations

THREADS = 2
"""As the embedder's. More than the cores that are free make each step wait for the slowest one."""


def settle() -> None:
    """Few threads, and no progress bars or reports on the process's output. Called before a model is loaded."""
    import torch
    from transformers.utils import logging

    torch.set_num_threads(THREADS)
    logging.set_verbosity_error()
    logging.disable_progress_bar()
