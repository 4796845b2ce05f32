"""What every model that runs on torch needs of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

THREADS = 2
"""As the embedder's. More than the cores that are free make each step wait for the slowest one."""

_one_at_a_time = threading.Lock()
"""Of the process, since what it guards is: transformers keeps in globals what it is about while it loads. Two loads at once found
weights missing that were there (measured)."""


@contextmanager
def loading() -> Iterator[None]:
    """Around every load: one at a time, few threads, and no progress bars or reports on the process's output."""
    import torch
    from transformers.utils import logging

    with _one_at_a_time:
        torch.set_num_threads(THREADS)
        logging.set_verbosity_error()
        logging.disable_progress_bar()
        yield
