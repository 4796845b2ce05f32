"""Graphs without a GPU: torch's operations are recorded while the region runs, and replayed on the very same memory.

So a buffer that nobody wrote gives stale answers, as on a GPU, and two replays leave their results in one place. As on a GPU,
too: capturing computes nothing (what it made is spoiled afterwards), and what a region made for itself is nobody's once it has
run, since other graphs use that memory. What would make the host wait for the device is refused by torch's own tags, and what
passes torch's dispatcher by (a kernel's launch, an array of numpy) by its name. A copy to the host that names a device cannot be
told from none where the device is the CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from coatcheck.domain.errors import GpuRefused

_PAST_THE_DISPATCHER = frozenset({"cpu", "numpy", "tolist", "__array__", "pin_memory", "data_ptr"})
_BY_INDEX = frozenset({"aten::index.Tensor", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_"})
_FROM_THE_HOST = frozenset({"aten::lift_fresh", "aten::lift_fresh_copy"})
"""What stands between ``torch.tensor(number)`` and the tensor."""
_SPOILED = 0xFF
"""Every byte: NaN in each type of floating point, -1 in each of whole numbers."""


@dataclass(frozen=True, slots=True)
class Step:
    """One operation, the tensors that it read, and those that it made (None for one that shares memory with what it read)."""

    operation: Any
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    made: tuple[torch.Tensor | None, ...]

    def again(self) -> None:
        results = _tensors(self.operation(*self.args, **self.kwargs))
        for made, result in zip(self.made, results, strict=True):
            if made is not None:
                made.copy_(result)


class Recorded:
    """Captured, by recording."""

    def __init__(self, steps: Sequence[Step], output: torch.Tensor) -> None:
        self.output = output
        self._steps = tuple(steps)
        made = [tensor for step in steps for tensor in step.made if tensor is not None]
        for tensor in made:
            _spoil(tensor)
        self._own = [tensor for tensor in made if _memory(tensor) != _memory(output)]

    @property
    def operations(self) -> tuple[str, ...]:
        """Their names, in order; views, which do nothing, are left out."""
        return tuple(step.operation.name() for step in self._steps)

    def replay(self) -> None:
        with torch.no_grad():
            for step in self._steps:
                step.again()
            for tensor in self._own:
                _spoil(tensor)


class RecordingGraphs:
    """GraphBackend on the CPU."""

    def __init__(self, device: str = "cpu") -> None:
        self.device = torch.device(device)

    def capture(self, region: Callable[[], torch.Tensor]) -> Recorded:
        region()
        recorder = _Recorder()
        with _PastTheDispatcher(), recorder:
            output = region()
        return Recorded(recorder.steps, output)

    def serving(self) -> AbstractContextManager[None]:
        return nullcontext()


class _Recorder(TorchDispatchMode):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.steps: list[Step] = []

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing is compiled here: torch's compiler, which this would import to be kept out, stays out by itself (six seconds)."""
        return False

    def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        refused = _why_not(operation, args, kwargs)
        if refused is not None:
            raise GpuRefused(f"A graph cannot capture {operation.name()}: {refused}.")
        result = operation(*args, **kwargs)
        read = {_memory(tensor) for tensor in _tensors((args, kwargs))}
        made = tuple(None if _memory(tensor) in read else tensor for tensor in _tensors(result))
        if operation._schema.is_mutable or any(tensor is not None for tensor in made):
            self.steps.append(Step(operation, args, kwargs, made))
        return result


class _PastTheDispatcher(TorchFunctionMode):  # type: ignore[misc]
    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(function, "__name__", "")
        if name in _PAST_THE_DISPATCHER:
            raise GpuRefused(f"A graph cannot capture Tensor.{name}: it hands memory to the host, or to what torch does not see.")
        return function(*args, **(kwargs or {}))


def _why_not(operation: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
    name = operation.name()
    if name in _BY_INDEX:
        flags = (torch.bool, torch.uint8)
        return "how many places are marked is known on the device alone" if any(
            tensor.dtype in flags for tensor in _tensors(args[1])
        ) else None  # fmt: skip
    if torch.Tag.data_dependent_output in operation.tags:
        return "the host waits for a number"
    if torch.Tag.dynamic_output_shape in operation.tags:
        return "the shape of its result is known on the device alone"
    if name in _FROM_THE_HOST:
        return "each replay would have the number of the first run"
    devices = {tensor.device.type for tensor in _tensors((args, kwargs)) if tensor.dim()} | set(_named_device(kwargs))
    return "it copies between the host and the device" if "cpu" in devices and len(devices) > 1 else None


def _named_device(kwargs: Mapping[str, Any]) -> Iterator[str]:
    if kwargs.get("device") is not None:
        yield torch.device(kwargs["device"]).type


def _tensors(given: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(given) if isinstance(leaf, torch.Tensor)]


def _memory(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _spoil(tensor: torch.Tensor) -> None:
    torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage()).fill_(_SPOILED)
