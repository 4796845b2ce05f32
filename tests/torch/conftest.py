"""What needs torch runs where it is: ``make test`` runs this folder in .venv-models, and .venv does not collect it.

The checkpoints are tiny and made here, some of them trained for a second: real formats, real libraries, no network.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

if importlib.util.find_spec("torch") is None:
    collect_ignore_glob = ["*"]
else:
    import torch

    if not torch.cuda.is_available():
        # Read by triton when it is first imported: from here on its kernels run on the CPU, in this process.
        os.environ["TRITON_INTERPRET"] = "1"

_LIBRARIES_WARN = ("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What the libraries deprecate among themselves is not ours to mend; elsewhere a warning is an error."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            for line in _LIBRARIES_WARN:
                item.add_marker(pytest.mark.filterwarnings(line))


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    """Tiny models take microseconds a step: two threads would wait for one another, on a busy machine most of the time."""
    import torch

    from coatcheck.models import torch_runtime

    torch_runtime.THREADS = 1
    torch.set_num_threads(1)
