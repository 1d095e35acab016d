"""Measure what locktop's own readers save against pyelftools (docs/internals/adr/0001 to 0004).

Each figure is processor time, the least of some rounds.
"""

from __future__ import annotations

import io
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from elftools.dwarf.callframe import FDE, CallFrameInfo
from elftools.dwarf.structs import DWARFStructs
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from locktop.collector.linux import procfs
from locktop.collector.symbols.dwarf.functions import read_functions
from locktop.collector.symbols.dwarf.line_program import read_lines
from locktop.collector.symbols.dwarf.sections import DebugSections
from locktop.collector.symbols.dwarf.units import Units
from locktop.collector.symbols.elf.file import ElfFile
from locktop.collector.symbols.memory_map import parse
from locktop.collector.symbols.safe_open import open_regular
from locktop.collector.symbols.unwind.eh_frame import FrameTable
from locktop.collector.symbols.unwind.fde import FrameEntries, FrameSection
from locktop.collector.symbols.unwind.x86_64.frame_offset import MAX_CODE, frame_offset

ROUNDS = 5
_RBP = 6
_CALL, _CALL_SIZE = 0xE8, 5
#: Much debug information from few lines: templates of the C++ library.
_SOURCE = """\
#include <algorithm>
#include <map>
#include <regex>
#include <string>
#include <vector>
int main(int count, char **words)
{
    std::map<std::string, std::vector<std::string>> found;
    for (int n = 0; n < count; n++)
        if (std::regex_match(words[n], std::regex("[a-z]+(x|y)*")))
            found[words[n]].push_back(words[0]);
    for (auto &one : found)
        std::sort(one.second.begin(), one.second.end());
    return static_cast<int>(found.size());
}
"""


def opened(path: Path) -> ElfFile:
    file = open_regular(path)
    assert file is not None
    return ElfFile(file)


def min_ms(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Return the least processor time of some rounds."""
    times = []
    for _ in range(rounds):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return 1000 * min(times)


def report(what: str, count: int, ours: float, theirs: float) -> None:
    print(f"{what:28}{count:8,} {ours:9.2f} ms {theirs:9.2f} ms {theirs / ours:7.1f}")


def headers(path: Path) -> None:
    """All headers of a file: by pyelftools's layouts, and by its ELFFile."""

    def theirs() -> None:
        with path.open("rb") as stream:
            elf = ELFFile(stream)
            list(elf.iter_segments())
            list(elf.iter_sections())

    count = len(opened(path).sections)
    report("headers", count, min_ms(lambda: opened(path)), min_ms(theirs))


def scanned(elf: ElfFile) -> list[tuple[int, int]]:
    """First address and position of each FDE."""
    section = elf.section(".eh_frame")
    assert section is not None
    end = section.address + section.size
    return list(FrameEntries(FrameSection(elf.loaded_bytes, section.address, end, True)).starts())


def entries(path: Path) -> None:
    """The scan of .eh_frame, as for a file without a table, and the rows of some addresses."""
    elf = opened(path)
    section = elf.section(".eh_frame")
    assert section is not None
    data, begin = elf.data(section), section.address
    structs = DWARFStructs(little_endian=True, dwarf_format=32, address_size=8)

    def theirs() -> list[FDE]:
        info = CallFrameInfo(io.BytesIO(data), len(data), begin, structs, for_eh_frame=True)
        return [entry for entry in info.get_entries() if isinstance(entry, FDE)]

    found = scanned(elf)
    report("scan of .eh_frame", len(found), min_ms(lambda: scanned(elf)), min_ms(theirs, 2))
    addresses = [start for start, _ in found[::10]]

    def rows() -> None:
        table = FrameTable(elf)
        for address in addresses:
            table.row(address)

    each = 1000 * min_ms(rows) / len(addresses)
    failed = 0
    for entry in theirs():
        try:
            entry.get_decoded()
        except Exception:
            failed += 1
    print(f"one row: {each:.0f} us; entries that pyelftools cannot decode: {failed}")


def symbols(path: Path) -> None:
    """All functions of a symbol table, by address."""

    def theirs() -> int:
        with path.open("rb") as stream:
            section = ELFFile(stream).get_section_by_name(".dynsym")
            assert isinstance(section, SymbolTableSection)
            sorted(
                (symbol["st_value"], symbol["st_size"], symbol.name)
                for symbol in section.iter_symbols()
                if symbol["st_info"]["type"] == "STT_FUNC"
            )
            return section.num_symbols()

    ours = min_ms(lambda: opened(path).functions)
    report("symbols", theirs(), ours, min_ms(theirs))


def debug_information(path: Path) -> None:
    """The line table and the functions of the largest unit."""
    elf = opened(path)
    with path.open("rb") as stream:
        dwarf = ELFFile(stream).get_dwarf_info()
        largest = max(dwarf.iter_CUs(), key=lambda unit: int(unit["unit_length"]))
        line_offset = int(largest.get_top_DIE().attributes["DW_AT_stmt_list"].value)

    def their_lines() -> int:
        with path.open("rb") as stream:
            dwarf = ELFFile(stream).get_dwarf_info()
            program = dwarf.line_program_for_CU(dwarf.get_CU_at(largest.cu_offset))
            assert program is not None
            return len(program.get_entries())

    def their_entries() -> int:
        with path.open("rb") as stream:
            dwarf = ELFFile(stream).get_dwarf_info()
            return sum(1 for _ in dwarf.get_CU_at(largest.cu_offset).iter_DIEs())

    ours = min_ms(lambda: read_lines(DebugSections(opened(path)), line_offset))
    report("line table", their_lines(), ours, min_ms(their_lines, 2))
    units = Units(DebugSections(elf))

    def our_entries() -> None:
        units.release_memory()
        read_functions(units.unit_at(largest.cu_offset))

    report("entries of a unit", their_entries(), min_ms(our_entries), min_ms(their_entries, 2))


def frame_offsets(name: str, path: Path) -> None:
    """Functions whose frames count from rbp, and how many of their calls the code tells of."""
    elf = opened(path)
    table, functions, from_rbp, calls, known = FrameTable(elf), 0, 0, 0, 0
    took = 0.0
    for start, _ in scanned(elf):
        row = table.row(start)
        middle = table.row((row.start + row.end) // 2) if row is not None else None
        functions += 1
        if row is None or middle is None or middle.cfa is None or middle.cfa.register != _RBP:
            continue
        from_rbp += 1
        code = elf.loaded_bytes(row.start, min(row.end - row.start, MAX_CODE))
        returns = [
            row.start + at + _CALL_SIZE for at in range(len(code) - _CALL_SIZE) if code[at] == _CALL
        ]
        began = time.process_time()
        for address in returns[:3]:
            calls += 1
            found = frame_offset(code, row.start, address, _RBP, is_return=True)
            known += found is not None
        took += time.process_time() - began
    share = from_rbp / functions
    print(
        f"{name}: {functions:,} functions, {share:.0%} count from rbp; of {calls:,} calls in them"
    )
    print(
        f"  the code tells of {known / max(calls, 1):.0%}, in {1000 * took / max(calls, 1):.2f} ms"
    )


def main() -> None:
    libc = next(Path(m.path) for m in parse(procfs.maps(os.getpid())) if "/libc.so" in m.path)
    print(f"{'libc':28}{'number':>8} {'ours':>12} {'pyelftools':>12} {'times':>7}")
    headers(libc)
    entries(libc)
    symbols(libc)
    with tempfile.TemporaryDirectory() as directory:
        source, program = Path(directory, "a.cc"), Path(directory, "a")
        source.write_text(_SOURCE)
        subprocess.run(["g++", "-O1", "-g", "-o", program, source], check=True)
        print("a C++ program")
        debug_information(program)
        flags = ["-O2", "-fno-omit-frame-pointer"]
        subprocess.run(["g++", *flags, "-o", program, source], check=True)
        frame_offsets("built with frame pointers", program)
    frame_offsets("libc", libc)


if __name__ == "__main__":
    main()
