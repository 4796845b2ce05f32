"""Workspaces: scratch memory that layers share which need the same of it and run one after the other."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from coatcheck.domain.errors import GpuRefused

W = TypeVar("W")


@dataclass(frozen=True, slots=True)
class WorkspaceKey:
    """All that decides what a layer's kernels need of scratch memory. Layers share where all of it is equal."""

    experts: int
    top_k: int
    hidden: int
    intermediate: int
    max_tokens: int
    local_experts: int
    dtype: str
    device: str
    activation: str
    quantisation: str
    source_format: str


@dataclass(slots=True)
class _Shared(Generic[W]):
    buffers: W
    stream: Hashable | None = None
    user: str | None = None


class Workspaces(Generic[W]):
    """One workspace a key, made at its first use.

    Its users run one after the other: in one stream, whose order keeps their kernels apart, and never one within another. Anything
    else would write into memory that is being read, and is refused.
    """

    def __init__(self, allocate: Callable[[WorkspaceKey], W]) -> None:
        self._allocate = allocate
        self._lock = threading.Lock()
        self._shared: dict[WorkspaceKey, _Shared[W]] = {}

    def __len__(self) -> int:
        return len(self._shared)

    @contextmanager
    def using(self, key: WorkspaceKey, user: str, stream: Hashable) -> Iterator[W]:
        """The key's buffers, for as long as the block runs. ``stream`` names the one that the kernels are put into.

        Raises GpuRefused where another user has them, or had them in another stream.
        """
        shared = self._taken(key, user, stream)
        try:
            yield shared.buffers
        finally:
            with self._lock:
                shared.user = None

    def _taken(self, key: WorkspaceKey, user: str, stream: Hashable) -> _Shared[W]:
        with self._lock:
            shared = self._shared.get(key)
            if shared is None:
                shared = self._shared[key] = _Shared(self._allocate(key))
            if shared.user is not None:
                raise GpuRefused(f"{user} would use the workspace that {shared.user} is using.")
            if shared.stream is not None and shared.stream != stream:
                raise GpuRefused(f"{user} would use a workspace of stream {shared.stream!r} in stream {stream!r}.")
            shared.stream, shared.user = stream, user
            return shared
