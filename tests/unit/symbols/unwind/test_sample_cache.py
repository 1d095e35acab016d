"""Walks that are found again by the return addresses of a stack."""

from __future__ import annotations

import struct
from typing import cast

import pytest

from locktop.collector.symbols.unwind import arch
from locktop.collector.symbols.unwind.cursor import Unwound
from locktop.collector.symbols.unwind.sample_cache import SampleCache
from locktop.collector.symbols.unwind.stack_memory import StackCopy
from locktop.collector.symbols.unwind.unwinder import Unwinder

X86_64 = arch.architecture("x86_64")
AARCH64 = arch.architecture("aarch64")
PC, SP = 16, 7
FOUND = Unwound((0x100, 0x200, 0x300), True, "", (0,), (0, 16, 40))


class CountingUnwinder:
    """Counts the walks."""

    def __init__(self, found: Unwound = FOUND) -> None:
        self.walks = 0
        self.version = 1
        self._found = found

    def code_version(self) -> int:
        return self.version

    def sampled_stack(self, registers: object, stack: bytes, sp: int) -> Unwound:
        self.walks += 1
        return self._found


def copy(*words: int, pc: int = 0x100) -> StackCopy:
    return StackCopy({PC: pc, SP: 0x7000, 32: pc}, struct.pack(f"={len(words)}Q", *words), 0x7000)


#: The return addresses lie 8 and 32 bytes above the stack pointer.
SAME = copy(1, 0x200, 2, 3, 0x300)


def walks(processor: arch.Architecture | None, *copies: StackCopy) -> int:
    assert processor is not None
    unwinder = CountingUnwinder()
    cache = SampleCache(processor)
    for one in copies:
        assert cache.unwind(one, cast(Unwinder, unwinder)) is FOUND
    return unwinder.walks


@pytest.mark.parametrize(
    ("other", "count"),
    [
        (copy(9, 0x200, 8, 7, 0x300, 5), 1),  # other words between
        (copy(1, 0x201, 2, 3, 0x300), 2),
        (copy(1, 0x200, 2, 3, 0x301), 2),
        (copy(1, 0x200, 2, 3), 2),  # shorter
        (copy(1, 0x200, 2, 3, 0x300, pc=0x101), 2),
    ],
)
def test_the_same_return_addresses_need_no_second_walk(other: StackCopy, count: int) -> None:
    assert walks(X86_64, SAME, other) == count


def test_a_return_address_in_a_register_needs_a_walk_each_time() -> None:
    assert walks(AARCH64, SAME, SAME) == 2


def test_other_code_needs_a_new_walk() -> None:
    assert X86_64 is not None
    unwinder, cache = CountingUnwinder(), SampleCache(X86_64)
    for version in (1, 1, 2):
        unwinder.version = version
        cache.unwind(SAME, cast(Unwinder, unwinder))
    assert unwinder.walks == 2
