"""Who owns which slot of a cache: appending, prefixes that are reused, and sequences that finish, are cancelled or preempted.

Three rules keep a byte from meaning two things. A slot is handed out for writing to one sequence, and to nobody else before
that write has settled on the device, even if its sequence is long gone. A block is found as a prefix only once all its
slots are written. A block that more than one may read is full, and so nobody writes into it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from itertools import count

from coatcheck.domain.errors import GpuRefused, Overloaded

_ROOT = 0
"""The content before the first block."""


@dataclass(frozen=True, slots=True)
class Write:
    """Slots that one sequence's next tokens go into, until it is settled."""

    number: int
    slots: tuple[int, ...]


@dataclass(slots=True)
class _Block:
    readers: int = 0
    unsettled: int = 0
    content: int | None = None
    """Which content it is found as; none while it is not."""


@dataclass(slots=True)
class _Sequence:
    tokens: list[int]
    blocks: list[int] = field(default_factory=list)
    settled: set[int] = field(default_factory=set)
    """Positions that are written."""
    content: int = _ROOT
    found_blocks: int = 0
    """How many first blocks others can find, and as which content the last of them."""


class SlotPool:
    """The slots of ``blocks`` pages of ``page_size`` tokens. One thread at a time, as a scheduler is."""

    def __init__(self, blocks: int, page_size: int) -> None:
        if min(blocks, page_size) < 1:
            raise GpuRefused(f"{blocks} blocks of {page_size} slots hold nothing.")
        self.page_size = page_size
        self._blocks = [_Block() for _ in range(blocks)]
        self._free = list(range(blocks))
        self._unread: OrderedDict[int, None] = OrderedDict()
        """Blocks that nobody reads but that are found as a prefix, the longest unread first."""
        self._by_content: dict[tuple[int, tuple[int, ...]], int] = {}
        self._keys: dict[int, tuple[int, tuple[int, ...]]] = {}
        self._sequences: dict[Hashable, _Sequence] = {}
        self._writes: dict[int, tuple[_Sequence, int, Write]] = {}
        self._contents, self._numbers = count(_ROOT + 1), count()

    @property
    def free_blocks(self) -> int:
        """That could be handed out now, unread prefixes among them."""
        return len(self._free) + len(self._unread)

    def admit(self, name: Hashable, tokens: Sequence[int]) -> int:
        """Opens a sequence and says how many of the tokens are in the cache: append the others. Takes no free block.

        At least the last token is left to append, since something has to be computed. Raises GpuRefused for a name in use.
        """
        if name in self._sequences:
            raise GpuRefused("A sequence of this name is open.")
        sequence = _Sequence([])
        size = self.page_size
        for start in range(0, (len(tokens) - 1) // size * size, size):
            part = tuple(tokens[start : start + size])
            number = self._by_content.get((sequence.content, part))
            if number is None:
                break
            block = self._blocks[number]
            block.readers += 1
            self._unread.pop(number, None)
            sequence.tokens += part
            sequence.blocks.append(number)
            sequence.content, sequence.found_blocks = block.content or _ROOT, len(sequence.blocks)
        sequence.settled.update(range(len(sequence.tokens)))
        self._sequences[name] = sequence
        return len(sequence.tokens)

    def append(self, name: Hashable, tokens: Sequence[int]) -> Write:
        """Slots for the sequence's next tokens, all or none. Raises Overloaded where there are too few: preempt somebody."""
        sequence = self._open(name)
        start, size = len(sequence.tokens), self.page_size
        missing = -(-(start + len(tokens)) // size) - len(sequence.blocks)
        if missing > self.free_blocks:
            raise Overloaded(f"{missing} more blocks are needed, {self.free_blocks} are free.")
        for _ in range(missing):
            number = self._take()
            self._blocks[number].readers = 1
            sequence.blocks.append(number)
        sequence.tokens += tokens
        slots = tuple(self._slot(sequence, position) for position in range(start, len(sequence.tokens)))
        for slot in slots:
            self._blocks[slot // size].unsettled += 1
        write = Write(next(self._numbers), slots)
        self._writes[write.number] = (sequence, start, write)
        return write

    def settle(self, write: Write, *, written: bool = True) -> None:
        """The device has written the slots, or (not ``written``) never will: then nobody finds them, nor what follows them, as a
        prefix. Raises GpuRefused for one that is settled already."""
        if write.number not in self._writes:
            raise GpuRefused("This write has been settled, or is another pool's.")
        sequence, start, _ = self._writes.pop(write.number)
        if written:
            sequence.settled.update(range(start, start + len(write.slots)))
        for slot in write.slots:
            self._blocks[slot // self.page_size].unsettled -= 1
        for number in {slot // self.page_size for slot in write.slots}:
            self._park(number)
        if any(open_one is sequence for open_one in self._sequences.values()):
            self._make_found(sequence)

    def release(self, name: Hashable) -> None:
        """The sequence is finished, cancelled or preempted: admit it again to go on, which finds what was kept of it."""
        sequence = self._open(name)
        del self._sequences[name]
        for number in reversed(sequence.blocks):  # so that a prefix's end goes before its beginning
            self._blocks[number].readers -= 1
            self._park(number)

    def slots_of(self, name: Hashable) -> tuple[int, ...]:
        """Where the sequence's tokens lie, written or not, in their order."""
        sequence = self._open(name)
        return tuple(self._slot(sequence, position) for position in range(len(sequence.tokens)))

    def _open(self, name: Hashable) -> _Sequence:
        if name not in self._sequences:
            raise GpuRefused("No sequence of this name is open.")
        return self._sequences[name]

    def _slot(self, sequence: _Sequence, position: int) -> int:
        return sequence.blocks[position // self.page_size] * self.page_size + position % self.page_size

    def _take(self) -> int:
        if self._free:
            return self._free.pop()
        number, _ = self._unread.popitem(last=False)
        del self._by_content[self._keys.pop(number)]
        self._blocks[number].content = None
        return number

    def _park(self, number: int) -> None:
        """Where a block goes that nobody reads and nothing is being written to."""
        block = self._blocks[number]
        if block.readers or block.unsettled:
            return
        if block.content is None:
            self._free.append(number)
        else:
            self._unread[number] = None

    def _make_found(self, sequence: _Sequence) -> None:
        """Full, written blocks become prefixes that others find, the first first; one whose content is there already does not."""
        size = self.page_size
        while (end := (sequence.found_blocks + 1) * size) <= len(sequence.tokens):
            if not sequence.settled.issuperset(range(end - size, end)):
                return
            number = sequence.blocks[sequence.found_blocks]
            key = (sequence.content, tuple(sequence.tokens[end - size : end]))
            other = self._by_content.get(key)
            if other is None:
                self._by_content[key], self._keys[number] = number, key
                self._blocks[number].content = other_content = next(self._contents)
            else:
                other_content = self._blocks[other].content or _ROOT
            sequence.content, sequence.found_blocks = other_content, sequence.found_blocks + 1
