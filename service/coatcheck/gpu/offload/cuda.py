"""Streams of CUDA: events and signals are words of page-locked memory, which streams write and wait for, and the host reads.

The driver's own events would do for streams, but asking for one is a call into the driver, which another thread's launch may hold
up while it waits for room in a stream; and that stream may be waiting for whoever asks. Reading a word waits for nobody. A stream's
write of a word is ordered behind all that it did before (cuStreamWriteValue32 without the flag that leaves its barrier out).

On the host the rows, the tag and the signal are written in this order, which x86 keeps; other processors are refused.
Nothing of this file has run on a GPU yet.
"""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from coatcheck.domain.errors import GpuRefused
from coatcheck.gpu.offload.job import Memory
from coatcheck.gpu.offload.streams import Event, Signal, Stream

if TYPE_CHECKING:
    import torch
    from torch import Tensor

_WAIT_GREATER_OR_EQUAL = 0
"""CU_STREAM_WAIT_VALUE_GEQ: the difference of the two words, as a signed one, is not negative. So words may wrap."""
_ORDERS_STORES = frozenset({"x86_64", "AMD64"})
_WORD = 1 << 32


class Word:
    """32 bits of page-locked memory."""

    def __init__(self, driver: ctypes.CDLL) -> None:
        import torch

        self._memory = torch.zeros(1, dtype=torch.int32, pin_memory=True)
        self._host = ctypes.c_uint32.from_address(self._memory.data_ptr())
        address = ctypes.c_uint64()
        _check(driver.cuMemHostGetDevicePointer_v2(ctypes.byref(address), ctypes.c_void_p(self._memory.data_ptr()), 0))
        self.address = address

    def raise_to(self, number: int) -> None:
        if not self.has_reached(number):
            self._host.value = number % _WORD

    def has_reached(self, number: int) -> bool:
        return has_reached(self._host.value, number)


def has_reached(word: int, number: int) -> bool:
    """As the device compares: right as long as the two are less than 2**31 apart."""
    return (word - number) % _WORD < _WORD // 2


@dataclass(slots=True, eq=False)
class CudaStream(Stream):
    stream: torch.cuda.Stream

    @property
    def handle(self) -> ctypes.c_void_p:
        return ctypes.c_void_p(self.stream.cuda_stream)


@dataclass(slots=True, eq=False)
class CudaEvent(Event):
    word: Word
    recordings: int = 0


@dataclass(slots=True, eq=False)
class CudaSignal(Signal):
    word: Word


class CudaStreams:
    """``Streams`` over tensors of one device. Raises GpuRefused where there is none."""

    def __init__(self, device: str = "cuda") -> None:
        import torch

        if not torch.cuda.is_available():
            raise GpuRefused("Offload on CUDA needs a CUDA device, and torch finds none.")
        if platform.machine() not in _ORDERS_STORES:
            raise GpuRefused(f"Offload relies on the order in which x86 writes memory; this is {platform.machine()}.")
        self._torch: Any = torch
        self._device = device
        self._driver = ctypes.CDLL("libcuda.so.1")
        torch.cuda.init()

    def stream(self, stream: torch.cuda.Stream | None = None) -> CudaStream:
        """A stream of torch's, or a new one."""
        return CudaStream(self._torch.cuda.Stream(self._device) if stream is None else stream)

    def event(self) -> CudaEvent:
        return CudaEvent(Word(self._driver))

    def signal(self) -> CudaSignal:
        return CudaSignal(Word(self._driver))

    def record(self, stream: Stream, event: Event) -> None:
        assert isinstance(stream, CudaStream)
        assert isinstance(event, CudaEvent)
        event.recordings += 1
        number = ctypes.c_uint32(event.recordings % _WORD)
        _check(self._driver.cuStreamWriteValue32_v2(stream.handle, event.word.address, number, 0))

    def wait(self, stream: Stream, event: Event) -> None:
        assert isinstance(stream, CudaStream)
        assert isinstance(event, CudaEvent)
        self._wait(stream, event.word, event.recordings)

    def wait_signal(self, stream: Stream, signal: Signal, sequence: int) -> None:
        assert isinstance(stream, CudaStream)
        assert isinstance(signal, CudaSignal)
        self._wait(stream, signal.word, sequence)

    def copy(self, stream: Stream, source: Tensor, target: Tensor) -> None:
        assert isinstance(stream, CudaStream)
        if source.shape != target.shape or source.dtype != target.dtype:
            raise GpuRefused(f"A copy from {source.dtype} {tuple(source.shape)} to {target.dtype} {tuple(target.shape)}.")
        if source.is_cuda == target.is_cuda:
            raise GpuRefused("Offload copies between the host and the device: one of the two tensors must be on it.")
        with self._torch.cuda.stream(stream.stream):
            target.copy_(source, non_blocking=True)

    def completed(self, event: Event) -> bool:
        assert isinstance(event, CudaEvent)
        return event.word.has_reached(event.recordings)

    def raise_signal(self, signal: Signal, sequence: int) -> None:
        assert isinstance(signal, CudaSignal)
        signal.word.raise_to(sequence)

    def stamp(self, tag: Tensor, sequence: int) -> None:
        tag[0] = sequence

    def stamped(self, tag: Tensor) -> int:
        return int(tag[0])

    def size(self, memory: Tensor) -> int:
        return int(memory.shape[0])

    def part(self, memory: Tensor, size: int) -> Tensor:
        return memory[:size]

    def memory(self, tokens: int, row: Sequence[int], *, inputs: torch.dtype, rows: torch.dtype) -> Memory[Tensor]:
        """One slot's, for passes of up to so many tokens with a row of this shape for each."""
        torch = self._torch
        tag = {"size": (1,), "dtype": torch.int64}
        return Memory(
            inputs=torch.zeros(tokens, dtype=inputs, pin_memory=True),
            rows=torch.zeros((tokens, *row), dtype=rows, pin_memory=True),
            tag=torch.zeros(**tag, pin_memory=True),
            device_tag=torch.zeros(**tag, device=self._device),
            seen=torch.zeros(**tag, pin_memory=True),
        )

    def _wait(self, stream: CudaStream, word: Word, number: int) -> None:
        with self._torch.cuda.stream(stream.stream):
            if self._torch.cuda.is_current_stream_capturing():
                raise GpuRefused("A wait of offload cannot be captured: every replay would wait for the same pass.")
        value = ctypes.c_uint32(number % _WORD)
        _check(self._driver.cuStreamWaitValue32_v2(stream.handle, word.address, value, _WAIT_GREATER_OR_EQUAL))


def _check(result: int) -> None:
    if result != 0:
        raise RuntimeError(f"The CUDA driver answered {result}.")
