"""Where a model library's errors become ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from coatcheck.domain.errors import CoatcheckError, StageFailed


@contextmanager
def native(stage: str) -> Iterator[None]:
    """Raises StageFailed for whatever a model library raises: their kinds are many, and none of them is ours to know."""
    try:
        yield
    except CoatcheckError:
        raise
    except Exception as error:
        raise StageFailed(f"The model of the stage {stage} failed.") from error
