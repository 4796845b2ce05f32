"""Ownership of slots as a state machine: whatever comes in whatever order, a sequence reads what was computed for it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from coatcheck.domain.errors import GpuRefused, Overloaded
from coatcheck.gpu.nvfp4.slots import SlotPool, Write

BLOCKS, PAGE = 5, 2
PROMPTS = st.lists(st.integers(0, 1), min_size=1, max_size=7)


class Device(RuleBasedStateMachine):
    """A scheduler and a device that writes when it likes. What lies in a slot is named by all tokens up to it, as keys are."""

    make_pool = SlotPool

    def __init__(self) -> None:
        super().__init__()
        self.pool = self.make_pool(BLOCKS, PAGE)
        self.memory: dict[int, tuple[int, ...]] = {}
        self.open: dict[int, list[int]] = {}
        self.on_their_way: list[tuple[Write, list[tuple[int, ...]]]] = []
        self.names = 0
        self.broken: set[int] = set()
        """Sequences of which a write failed: they hold what was never written, and wait to be released."""

    @rule(prompt=PROMPTS)
    def admit_and_append(self, prompt: list[int]) -> None:
        self.names += 1
        there = self.pool.admit(self.names, prompt)
        assert there < len(prompt)
        assert there % PAGE == 0
        assert not self._coming() & set(self.pool.slots_of(self.names)), "what it would read is not there yet"
        self.open[self.names] = prompt[:there]
        self._append(self.names, prompt[there:])

    @precondition(lambda self: self.on_their_way)
    @rule(data=st.data())
    def a_write_fails(self, data: st.DataObject) -> None:
        write, _ = self.on_their_way.pop(data.draw(st.integers(0, len(self.on_their_way) - 1)))
        self.broken |= {name for name in self.open if set(write.slots) & set(self.pool.slots_of(name))}
        for slot in write.slots:
            self.memory[slot] = ()
        self.pool.settle(write, written=False)

    @precondition(lambda self: self.open)
    @rule(data=st.data(), more=PROMPTS)
    def append(self, data: st.DataObject, more: list[int]) -> None:
        self._append(data.draw(st.sampled_from(sorted(self.open))), more)

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def finish_cancel_or_preempt(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.open)))
        del self.open[name]
        self.pool.release(name)

    @precondition(lambda self: self.on_their_way)
    @rule(data=st.data())
    def the_device_writes(self, data: st.DataObject) -> None:
        write, contents = self.on_their_way.pop(data.draw(st.integers(0, len(self.on_their_way) - 1)))
        self.memory.update(zip(write.slots, contents, strict=True))
        self.pool.settle(write)

    @invariant()
    def everybody_reads_what_was_computed_for_it(self) -> None:
        coming = self._coming()
        for name, tokens in self.open.items():
            slots = self.pool.slots_of(name)
            assert len(slots) == len(set(slots)) == len(tokens)
            if name in self.broken:
                continue
            for position, slot in enumerate(slots):
                if slot not in coming:
                    assert self.memory[slot] == tuple(tokens[: position + 1])

    @invariant()
    def no_slot_is_written_twice_at_a_time(self) -> None:
        coming = [slot for write, _ in self.on_their_way for slot in write.slots]
        assert len(coming) == len(set(coming))

    @invariant()
    def no_block_is_lost_and_none_is_counted_twice(self) -> None:
        held = {slot // PAGE for name in self.open for slot in self.pool.slots_of(name)}
        held |= {slot // PAGE for slot in self._coming()}
        assert self.pool.free_blocks == BLOCKS - len(held)

    def _coming(self) -> set[int]:
        return {slot for write, _ in self.on_their_way for slot in write.slots}

    def _append(self, name: int, tokens: list[int]) -> None:
        before = self.pool.slots_of(name), self.pool.free_blocks
        try:
            write = self.pool.append(name, tokens)
        except Overloaded:
            assert (self.pool.slots_of(name), self.pool.free_blocks) == before
            return
        now = self.open[name] + tokens
        contents = [tuple(now[: position + 1]) for position in range(len(self.open[name]), len(now))]
        self.open[name] = now
        self.on_their_way.append((write, contents))


CAREFUL = settings(max_examples=60, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck))
FAST = settings(CAREFUL, max_examples=200, derandomize=True, database=None, phases=[Phase.generate], print_blob=False)
"""Until the first failure, which nobody wants to see small."""


def test_whatever_comes_in_whatever_order_everybody_reads_its_own() -> None:
    run_state_machine_as_test(Device, settings=CAREFUL)


class _FreesAtOnce(SlotPool):
    """Hands a cancelled sequence's blocks out while the device still writes into them."""

    def release(self, name: object) -> None:
        for number in self._sequences[name].blocks:
            self._blocks[number].unsettled = 0
        super().release(name)

    def settle(self, write: Write, *, written: bool = True) -> None:
        self._writes.pop(write.number)


class _FoundBeforeWritten(SlotPool):
    """Lets others find a block whose write is still on its way."""

    def append(self, name: object, tokens: object) -> Write:
        assert isinstance(tokens, list)
        write = super().append(name, tokens)
        sequence = self._sequences[name]
        sequence.settled.update(range(len(sequence.tokens)))
        self._make_found(sequence)
        return write


class _KnowsNoPredecessor(SlotPool):
    """Finds a block by its own tokens, whatever stood before them."""

    def admit(self, name: Hashable, tokens: Sequence[int]) -> int:
        self._by_content = {(content, key[1]): number for key, number in self._by_content.items() for content in range(200)}
        return super().admit(name, tokens)


class _FindsWhatWasNeverWritten(SlotPool):
    """Takes a write that failed for one that was done."""

    def settle(self, write: Write, *, written: bool = True) -> None:
        super().settle(write)


@pytest.mark.parametrize("faulty", [_FreesAtOnce, _FoundBeforeWritten, _KnowsNoPredecessor, _FindsWhatWasNeverWritten])
def test_a_pool_that_breaks_a_rule_is_caught(faulty: type[SlotPool]) -> None:
    class Broken(Device):
        make_pool = faulty

    with pytest.raises((AssertionError, KeyError)):
        run_state_machine_as_test(Broken, settings=FAST)


def test_the_second_prompt_finds_the_first_ones_whole_blocks_and_only_once_they_are_written() -> None:
    pool = SlotPool(8, 4)
    pool.admit("first", range(10))
    write = pool.append("first", range(10))
    assert pool.admit("too early", range(10)) == 0

    pool.settle(write)

    assert pool.admit("second", range(10)) == 8
    assert pool.slots_of("second") == pool.slots_of("first")[:8]
    assert pool.admit("eight", range(8)) == 4  # its last token has to be computed
    assert pool.admit("other", [9, *range(1, 10)]) == 0


def test_a_write_that_failed_is_no_prefix_for_anybody_and_its_blocks_come_back() -> None:
    pool = SlotPool(4, 2)
    pool.admit("first", range(5))
    failed, later = pool.append("first", range(2)), pool.append("first", range(2, 5))

    pool.settle(failed, written=False)
    pool.settle(later)

    assert pool.admit("second", range(5)) == 0
    pool.release("first")
    assert pool.free_blocks == 4


def test_a_preempted_sequence_finds_its_blocks_again_while_nobody_needed_them() -> None:
    pool = SlotPool(3, 2)
    pool.admit("a", range(5))
    pool.settle(pool.append("a", range(5)))

    pool.release("a")

    assert pool.free_blocks == 3
    assert pool.admit("a", range(5)) == 4
    pool.release("a")
    pool.admit("greedy", [])
    pool.append("greedy", [7] * 4)
    assert pool.admit("a", range(5)) == 2  # the end of the prefix went first


def test_slots_of_a_cancelled_write_are_nobodys_until_it_settles() -> None:
    pool = SlotPool(2, 2)
    pool.admit("a", [1, 2, 3])
    write = pool.append("a", [1, 2, 3])
    pool.release("a")

    assert pool.free_blocks == 0
    pool.admit("b", [1])
    with pytest.raises(Overloaded):
        pool.append("b", [1])

    pool.settle(write)
    assert pool.append("b", [1]).slots


def test_what_is_not_open_not_free_or_settled_is_refused() -> None:
    pool = SlotPool(2, 2)
    pool.admit("a", [1])
    write = pool.append("a", [1])
    pool.settle(write)

    for wrong in (
        lambda: pool.admit("a", [1]),
        lambda: pool.append("b", [1]),
        lambda: pool.release("b"),
        lambda: pool.slots_of("b"),
        lambda: pool.settle(write),
        lambda: SlotPool(0, 2),
    ):
        with pytest.raises(GpuRefused):
            wrong()
