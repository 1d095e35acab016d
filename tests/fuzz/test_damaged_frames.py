"""Damaged call frame information, and random stacks.

The result is a row, no row, or a ValueError, and a stack that is cut short. There is never another
error, and no query takes long. `make fuzz` takes longer (LOCKTOP_FUZZ, see test_damaged_files.py).
"""

from __future__ import annotations

import os
import random
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from fuzz.mutate import damaged
from locktop.collector.linux import procfs
from locktop.collector.symbols.elf.bounded_file import InMemory
from locktop.collector.symbols.elf.file import ElfFile
from locktop.collector.symbols.memory_map import parse
from locktop.collector.symbols.unwind import dwarf_expression
from locktop.collector.symbols.unwind.cfi_program import UnwindRow, row
from locktop.collector.symbols.unwind.eh_frame import FrameTable
from locktop.collector.symbols.unwind.fde import FrameEntries, FrameSection
from locktop.collector.symbols.unwind.stack_memory import StackCut
from locktop.collector.symbols.unwind.unwinder import Unwinder
from locktop.collector.symbols.unwind.x86_64 import frame_offset

ROUNDS, _, FIRST = os.environ.get("LOCKTOP_FUZZ", "30").partition(":")
SEEDS = range(int(FIRST or 0), int(FIRST or 0) + int(ROUNDS))
#: The CPU time for one file, stack or program of instructions; sound ones take 1 ms.
MAX_S = 5.0
SOURCE = """\
#include <stdio.h>
int taken(int n)
{
    char some[n + 20];
    return printf("%d", n) + some[n];
}
int main(int count, char **words)
{
    return count > 1 ? taken(count) + words[0][0] : puts(words[0]);
}
"""


@contextmanager
def timed(seed: int) -> Iterator[None]:
    began = time.thread_time()
    yield
    assert time.thread_time() - began < MAX_S, f"seed {seed}"


@pytest.fixture(scope="session")
def sound(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    directory = tmp_path_factory.mktemp("frames")
    (directory / "a.c").write_text(SOURCE)
    without = ["-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-gz"]
    kinds: dict[str, list[str]] = {
        "eh_frame_hdr": [],
        "eh_frame": ["-Wl,--no-eh-frame-hdr"],
        "debug_frame": without,
    }
    for kind, flags in kinds.items():
        command = ["cc", "-O2", "-g", *flags, "-o", kind, "a.c"]
        subprocess.run(command, cwd=directory, check=True)
    return {kind: (directory / kind).read_bytes() for kind in kinds}


def rows(data: bytes, addresses: list[int]) -> int:
    """Query the rows of all addresses; return the number of rows."""
    try:
        elf = ElfFile(InMemory(data))
    except ValueError:
        return 0
    table = FrameTable(elf)
    found = 0
    for address in addresses:
        try:
            one = table.row(address)
        except ValueError:
            continue
        assert one is None or isinstance(one, UnwindRow)
        found += one is not None
    return found


@pytest.mark.parametrize("kind", ["eh_frame_hdr", "eh_frame", "debug_frame"])
def test_damaged_files(kind: str, sound: dict[str, bytes]) -> None:
    data = sound[kind]
    elf = ElfFile(InMemory(data))
    text = elf.section(".text")
    assert text is not None
    addresses = [*range(text.address, text.address + text.size, 7), 0, 1, (1 << 64) - 1]
    assert rows(data, addresses)
    sections = [elf.section(name) for name in (".eh_frame_hdr", ".eh_frame", ".debug_frame")]
    table = int.from_bytes(data[40:48], "little")
    ranges = [(s.offset, s.size) for s in sections if s is not None]
    ranges += [*ranges, *ranges, (64, 13 * 56), (table, len(data) - table)]
    found = 0
    for seed in SEEDS:
        with timed(seed):
            found += rows(damaged(data, seed, ranges), addresses)
    assert found, "every file was refused, so nothing was tested"


@pytest.mark.parametrize("seed", SEEDS)
def test_instructions_of_nonsense(seed: int) -> None:
    chance = random.Random(seed)
    # Most programs end at once; instructions that remember, set and advance last longer.
    bytes_of_work = bytes([0x0A, 0x0B, 0x41, 0x86, 0x02, 0x10, 0x04, 0x00, 0x0C, 0x07, 0x08, 0xC6])
    with timed(seed):
        for size in (10, 1000, (256 << 10) - 100):
            code = bytes(chance.choices(chance.choice((range(256), bytes_of_work)), k=size))
            entries = section_of(code, chance.choice((0, 1, 4)), chance.choice((b"", code[:20])))
            try:
                found = entries.function(next(at for _, at in entries.starts()))
                assert isinstance(row(found, 1 << 62), UnwindRow)
            except (ValueError, StopIteration):
                pass


def section_of(instructions: bytes, code_factor: int, common: bytes) -> FrameEntries:
    """A section like .debug_frame: a CIE with the instructions ``common``, and one FDE."""
    head = struct.pack("<IBxBbB", 0xFFFF_FFFF, 1, code_factor, -8 & 0x7F, 16) + common
    body = struct.pack("<IQQ", 0, 0x1000, 0x1000) + instructions
    data = b"".join(struct.pack("<I", len(part)) + part for part in (head, body))
    return FrameEntries(
        FrameSection(lambda at, size: data[at : at + size], 0, len(data), is_loaded=False)
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_expressions_of_nonsense(seed: int) -> None:
    chance = random.Random(seed)
    with timed(seed):
        for _ in range(500):
            # Mostly known operations: an unknown one ends the expression.
            known = [*range(0x10, 0x60), 0x77, 0x06, 0x08, 0x09, 0x0A, 0x96]
            code = bytes(chance.choices(known, k=chance.randrange(1, 60)))
            try:
                value = dwarf_expression.evaluate(
                    code, {7: 1 << 40}, lambda at, size: at ^ size, (5,)
                )
                assert 0 <= value < 1 << 64
            except (ValueError, StackCut):
                pass


def test_an_expression_that_never_ends() -> None:
    with pytest.raises(ValueError, match="end"):
        dwarf_expression.evaluate(b"\x2f" + struct.pack("<h", -3), {}, lambda at, size: 0, (1,))


@pytest.mark.parametrize("seed", SEEDS)
def test_code_of_nonsense(seed: int) -> None:
    chance = random.Random(seed)
    code = chance.randbytes(chance.choice((100, 5000, 60000)))
    with timed(seed):
        for is_return in (False, True):
            at = 0x1000 + chance.randrange(len(code))
            found = frame_offset.frame_offset(code, 0x1000, at, 6, is_return=is_return)
            assert found is None or isinstance(found, frame_offset.FrameOffset)
        assert isinstance(frame_offset.jumps_out(code, 0x1000), bool)


def test_stacks_of_nonsense() -> None:
    """Stacks over the code of this process: most end at once, and none takes long."""
    unwinder = Unwinder(os.getpid())
    mappings = parse(procfs.maps(os.getpid()))
    code = [(m.start, m.end) for m in mappings if m.executable and m.is_file]
    largest = max(code, key=lambda part: part[1] - part[0])
    lengths = set()
    for seed in SEEDS:
        chance = random.Random(seed)

        def word(chance: random.Random = chance) -> int:
            begin, end = chance.choice((largest, *code))
            sp = 0x7FFF_0000_0000 + chance.randrange(1 << 16)
            return chance.choice((chance.randrange(begin, end), sp, chance.getrandbits(64), 0))

        stack = b"".join(word().to_bytes(8, "little") for _ in range(1 << 13))
        with timed(seed):
            registers = {16: chance.randrange(*largest), 7: 0x7FFF_0000_0000, 6: word()}
            found = unwinder.sampled_stack(registers, stack, 0x7FFF_0000_0000)
            lengths.add(len(found.addresses))
            assert found.complete != bool(found.reason)
    assert len(lengths) > 1
