"""The words of a stack, and the answers to the queries of a walk."""

from __future__ import annotations

import pytest

from locktop.collector.symbols.unwind.cursor import Unwound
from locktop.collector.symbols.unwind.stack_memory import (
    StackCut,
    StackMemory,
    StackQuery,
    rest_of_page,
)
from locktop.collector.symbols.unwind.walk_cache import WalkCache

BEGIN, SIZE = 0x7000_0000, 0x20000
PC, OTHER = 0x40_0000, 0x40_1000


class Memory:
    """Bytes at an address, as a process has them."""

    def __init__(self, begin: int = BEGIN) -> None:
        self.begin = begin
        self.data = bytearray(range(256)) * (SIZE // 256)

    def read(self, address: int, size: int) -> bytes:
        at = address - self.begin
        return bytes(self.data[at : at + size]) if 0 <= at < SIZE else b""

    def put(self, at: int, number: int) -> None:
        self.data[at : at + 8] = number.to_bytes(8, "little")


@pytest.fixture
def memory() -> Memory:
    return Memory()


def test_numbers_of_each_size_are_read_at_any_address(memory: Memory) -> None:
    stack = StackMemory(BEGIN, memory.read)
    for address, size in ((0x18, 8), (0x10, 8), (0x5008, 4), (0x3FFD, 8), (0x18, 1), (0x18, 8)):
        wanted = int.from_bytes(memory.data[address : address + size], "little")
        assert stack.load(BEGIN + address, size) == wanted
    assert stack.end == BEGIN + 0x500C


def test_a_copy_has_the_copied_bytes_alone() -> None:
    stack = StackMemory.from_copy(BEGIN, bytes(range(24)))
    assert stack.load(BEGIN + 16) == int.from_bytes(bytes(range(16, 24)), "little")
    with pytest.raises(StackCut):
        stack.load(BEGIN + 20)


def test_answers_are_in_the_order_of_queries(memory: Memory) -> None:
    memory.put(0x10, PC)
    memory.put(0x20, BEGIN + 0x80)
    stack = StackMemory(BEGIN, memory.read)
    stack.frame(BEGIN + 0x20)
    stack.load(BEGIN + 0x10)
    stack.pin()
    assert stack.answers == [
        (StackQuery(0x20, is_frame=True), 0x80),
        (StackQuery(0x10, is_frame=False), PC),
        (StackQuery(None, is_frame=False), BEGIN),
    ]


@pytest.mark.parametrize(("at", "size"), [(-8, 8), (0x10, 4), (0x10000 - 4, 8), (SIZE, 8)])
def test_a_query_of_another_sort_leaves_no_answers(at: int, size: int) -> None:
    memory = Memory(BEGIN - 4096)
    stack = StackMemory(BEGIN, memory.read)
    stack.load(BEGIN)
    try:
        stack.load(BEGIN + at, size)
    except StackCut:
        pass
    stack.load(BEGIN + 8)
    assert stack.answers is None


# ---- the walk cache ----


def kept(memory: Memory, *queries: tuple[int, bool]) -> tuple[WalkCache, Unwound]:
    """A cache with one walk that queried words at these distances, each as a frame or not."""
    walks, found = WalkCache(), Unwound((PC, 1), True, "")
    stack = StackMemory(memory.begin, memory.read)
    for distance, is_frame in queries:
        (stack.frame if is_frame else stack.load)(memory.begin + distance)
    assert stack.answers is not None
    walks.keep(PC, stack.answers, found)
    return walks, found


def test_only_the_queried_words_matter(memory: Memory) -> None:
    walks, found = kept(memory, (0x18, False), (0x1008, False))
    for other in (0x17, 0x20, 0x1007, 0x1010):
        memory.data[other] ^= 1
    assert walks.find(PC, BEGIN, memory.data) is found
    assert walks.find(OTHER, BEGIN, memory.data) is None
    for queries in (0x18, 0x1F, 0x1008, 0x100F):
        memory.data[queries] ^= 1
        assert walks.find(PC, BEGIN, memory.data) is None
        memory.data[queries] ^= 1


def test_too_few_bytes_find_no_walk(memory: Memory) -> None:
    walks, found = kept(memory, (0x18, False), (0x1008, False))
    assert walks.find(PC, BEGIN, b"") == 0x20
    assert walks.find(PC, BEGIN, memory.data[:0x1F]) == 0x20
    assert walks.find(PC, BEGIN, memory.data[:0x20]) == 0x1010
    assert walks.find(PC, BEGIN, memory.data[:0x1010]) is found


def test_a_walk_fits_moved_frames_but_no_other_return_address() -> None:
    memory = Memory()
    memory.put(0x10, BEGIN + 0x80)
    memory.put(0x18, OTHER)
    walks, found = kept(memory, (0x10, True), (0x18, False))
    for there in (BEGIN + 0x70_0000, BEGIN - 8):
        memory.put(0x10, there + 0x80)
        assert walks.find(PC, there, memory.data) is found
        memory.put(0x18, OTHER + there - BEGIN)
        assert walks.find(PC, there, memory.data) is None
        memory.put(0x18, OTHER)
    memory.put(0x10, BEGIN + 0x88)
    assert walks.find(PC, BEGIN, memory.data) is None


def test_a_walk_that_queried_the_address_of_the_stack_depends_on_it(memory: Memory) -> None:
    walks, found = WalkCache(), Unwound((PC,), True, "")
    stack = StackMemory(BEGIN, memory.read)
    stack.pin()
    assert stack.answers is not None
    walks.keep(PC, stack.answers, found)
    assert walks.find(PC, BEGIN, b"") is found
    assert walks.find(PC, BEGIN + 64, b"") is None


def test_walks_part_at_different_answers(memory: Memory) -> None:
    walks, first = kept(memory, (0x10, False), (0x20, False))
    memory.put(0x10, OTHER)
    stack, second = StackMemory(BEGIN, memory.read), Unwound((PC, OTHER), True, "")
    stack.load(BEGIN + 0x10)
    assert stack.answers is not None
    walks.keep(PC, stack.answers, second)
    assert walks.find(PC, BEGIN, memory.data) is second
    assert walks.find(PC, BEGIN, Memory().data) is first


def test_the_cache_is_bounded() -> None:
    walks, found = WalkCache(max_kept=10), Unwound((PC,), True, "")
    for number in range(100):
        walks.keep(
            number, [(StackQuery(0, is_frame=False), 1), (StackQuery(8, is_frame=False), 2)], found
        )
        assert walks.find(number, BEGIN, bytes([1, *bytes(7), 2, *bytes(7)])) is found
    assert walks.find(0, BEGIN, bytes([1, *bytes(7), 2, *bytes(7)])) is None
    for number in range(100):
        walks.keep(number, [], found)
    assert sum(number in walks for number in range(100)) <= 10


def test_the_rest_of_a_page_is_counted_from_the_address() -> None:
    assert rest_of_page(0x7000_0000) == 4096
    assert rest_of_page(0x7000_0FF8) == 8
