"""The words of a stack: what led the way once is known again, and nothing else is taken for it."""

from __future__ import annotations

import pytest

from locktop.collector.unwind.cut import Cut
from locktop.collector.unwind.stack import Stack

BEGIN, SIZE = 0x7000_0000, 0x8000


class Memory:
    """Bytes at an address, as a process has them."""

    def __init__(self) -> None:
        self.data = bytearray(range(256)) * (SIZE // 256)

    def read(self, address: int, size: int) -> bytes:
        at = address - BEGIN
        return bytes(self.data[at : at + size]) if 0 <= at < SIZE else b""


@pytest.fixture
def memory() -> Memory:
    return Memory()


def test_the_words_that_were_asked_for_are_compared_and_no_others(memory: Memory) -> None:
    stack = Stack(memory.read)
    for address, size in ((0x18, 8), (0x10, 8), (0x5008, 4), (0x18, 8)):
        at = address % 256
        wanted = int.from_bytes(memory.data[at : at + size], "little")
        assert stack.load(BEGIN + address, size) == wanted
    words = stack.words()
    assert words is not None
    assert words.are_there(memory.read)
    for other in (0x0F, 0x20, 0x5007, 0x500C):
        memory.data[other] ^= 1
    assert words.are_there(memory.read)
    for asked in (0x10, 0x1F, 0x5008, 0x500B):
        memory.data[asked] ^= 1
        assert not words.are_there(memory.read)
        memory.data[asked] ^= 1
    del memory.data[0x500A:]
    assert not words.are_there(memory.read)


def test_where_something_could_not_be_read_there_is_nothing_to_compare(memory: Memory) -> None:
    stack = Stack(memory.read)
    stack.load(BEGIN)
    with pytest.raises(Cut):
        stack.load(BEGIN + SIZE)
    assert stack.words() is None


@pytest.mark.parametrize("places", [((0, 8), (4, 8)), ((0, 8), (0, 4)), ((0, 8), (SIZE - 8, 8))])
def test_words_that_overlap_or_lie_far_apart(
    places: tuple[tuple[int, int], ...], memory: Memory
) -> None:
    stack = Stack(memory.read)
    for address, size in places:
        stack.load(BEGIN + address, size)
    words = stack.words()
    assert words is None or words.are_there(memory.read)
