"""The code of a process: the file of an address, and the frame information that the file has."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from locktop.collector.linux import process_memory, procfs
from locktop.collector.symbols.elf import debug_files
from locktop.collector.symbols.elf.file import ElfFile
from locktop.collector.symbols.mapped_file import NotMapped, open_mapped, roots
from locktop.collector.symbols.memory_map import AddressSpace, Mapping, parse
from locktop.collector.symbols.safe_open import OpenFile
from locktop.collector.symbols.unwind.arch import Architecture
from locktop.collector.symbols.unwind.cfi_program import UnwindRow
from locktop.collector.symbols.unwind.eh_frame import FrameTable
from locktop.collector.symbols.unwind.stack_memory import StackCut

_VDSO = "[vdso]"
#: The share of time for reading the map: that of 10,000 threads has 20,000 lines.
_MAX_SHARE = 0.05
_MAX_FILES = 128  # kept open
#: Lines of the map with code, or of a file: not those of threads' stacks.
_RELEVANT = re.compile(rb"^\S+ (?:..x|\S+ \S+ \S+ [1-9]).*", re.MULTILINE)


class CodeFrame(NamedTuple):
    """The frame information for one instruction of the program."""

    row: UnwindRow
    table: FrameTable
    bias: int  # what to add to the addresses of the row

    @property
    def start(self) -> int:
        """The address where the function begins, in the program."""
        return self.row.start + self.bias

    def code(self, max_size: int) -> bytes:
        """Return up to ``max_size`` bytes of the function's machine code. Raises StackCut."""
        try:
            return self.table.code(self.row.start, min(self.row.end - self.row.start, max_size))
        except ValueError as error:
            raise StackCut(str(error)) from None

    def function_named(self, name: str) -> int | None:
        """Return the address of a function of the same file; None if there is none.

        Raises:
            StackCut: The symbol table is damaged.
        """
        try:
            address = self.table.function_named(name)
        except ValueError as error:
            raise StackCut(str(error)) from None
        return None if address is None else address + self.bias


class MappedImage:
    """A source for ElfFile: the mappings of a file that cannot be opened.

    The kernel's vdso is in no file. A library that an update has replaced still runs in the
    process. Only loaded parts can be read, so there are no sections.
    """

    def __init__(self, read: Callable[[int, int], bytes], mappings: Sequence[Mapping]) -> None:
        self._read = read
        self._mappings = mappings
        self.size = max(m.offset + m.end - m.start for m in mappings)

    def read_at(self, offset: int, size: int) -> bytes:
        """Return up to ``size`` bytes at an offset in the file; fewer where no more is mapped."""
        for mapping in self._mappings:
            inside = offset - mapping.offset
            if 0 <= inside < mapping.end - mapping.start:
                size = min(size, mapping.end - mapping.start - inside)
                return self._read(mapping.start + inside, size)
        return b""


class CodeMap:
    """The code of one process."""

    def __init__(self, pid: int, architecture: Architecture, pause_s: float = 0.0) -> None:
        """``pause_s``: seconds from one reading of the memory map to the next, at least."""
        self._pause_s = pause_s
        self._pid = pid
        self._architecture = architecture
        self._raw = b""
        self._relevant: list[bytes] = []
        self._space = AddressSpace([])
        self._again_at = 0.0
        self._tables: dict[Mapping, tuple[FrameTable, int] | str] = {}
        self.version = 0  # changes whenever code or a file lies elsewhere

    def refresh(self) -> None:
        """Read the memory map, unless that was just done.

        Raises:
            OSError: The map may not be read.
        """
        began = time.monotonic()
        if began < self._again_at:
            return
        raw = procfs.maps(self._pid)
        if raw != self._raw:
            self._raw, relevant = raw, _RELEVANT.findall(raw)
            if relevant != self._relevant:
                self._relevant = relevant
                self._learn(parse(raw))
        now = time.monotonic()
        self._again_at = now + max((now - began) / _MAX_SHARE, self._pause_s)

    def _learn(self, mappings: list[Mapping]) -> None:
        self._space = AddressSpace(mappings)
        self.version += 1
        kept = frozenset(mappings)
        self._tables = {base: table for base, table in self._tables.items() if base in kept}

    def is_code(self, address: int) -> bool:
        """Tell whether an address belongs to executable memory."""
        mapping = self._space.find(address)
        return mapping is not None and mapping.executable

    def file(self, address: int) -> tuple[str, int, str] | None:
        """Return the identity of the file whose code lies at an address; None if none does."""
        mapping = self._space.find(address)
        executable = mapping is not None and mapping.executable and mapping.is_file
        return mapping.file if mapping is not None and executable else None

    def read(self, address: int, size: int) -> bytes:
        """Return up to ``size`` bytes of the program's memory; b"" if they cannot be read."""
        return process_memory.read(self._pid, address, size)

    def frame_at(self, address: int) -> CodeFrame:
        """Return the frame information for an instruction.

        Raises:
            StackCut: There is none.
        """
        mapping = self._space.find(address)
        if mapping is None or not mapping.executable:
            raise StackCut("the stack leads where no code is")
        if not mapping.is_file and mapping.path != _VDSO:
            raise StackCut("code that is in no file")
        table, bias = self._table(mapping)
        try:
            row = table.row(address - bias)
        except ValueError as error:
            raise StackCut(str(error)) from None
        if row is None:
            raise StackCut("code without call frame information")
        return CodeFrame(row, table, bias)

    def linked_function(self, slot: int) -> int:
        """Return the function that a slot of a linkage table is for; 0 if that is not known.

        The dynamic linker may not have bound the slot yet.
        """
        mapping = self._space.find(slot)
        if mapping is None or not mapping.is_file:
            return 0
        try:
            table, bias = self._table(mapping)
            name = table.linked_names.get(slot - bias)
            return self.function_named(name) if name is not None else 0
        except (StackCut, ValueError):
            return 0

    def function_named(self, name: str) -> int:
        """Return the function of that name in the first file that has it; 0 if none has it."""
        for mapping in self._space.mappings:
            if mapping.executable and mapping.is_file:
                try:
                    table, bias = self._table(mapping)
                    address = table.own_function_named(name)
                except (StackCut, ValueError):
                    continue
                if address is not None:
                    return address + bias
        return 0

    def _table(self, mapping: Mapping) -> tuple[FrameTable, int]:
        """Return the table of the file of a mapping, and its bias. Raises StackCut."""
        base = self._space.base(mapping) if mapping.is_file else mapping
        loaded = self._tables.get(base)
        if loaded is None:
            loaded = self._tables[base] = self._load(base)
            if len(self._tables) > _MAX_FILES:
                del self._tables[next(iter(self._tables))]
        if isinstance(loaded, str):
            raise StackCut(loaded)
        return loaded

    def _load(self, base: Mapping) -> tuple[FrameTable, int] | str:
        """Return the table and its bias, or the reason why there is none."""
        file = None
        if base.is_file:
            try:
                file = open_mapped(self._pid, base)
            except NotMapped:
                pass  # the file is still in the program's memory
        try:
            elf = ElfFile(file or MappedImage(self.read, self._parts(base)))
        except ValueError:
            return "code in a file that is no sound ELF file"
        bias = elf.bias(base.start, base.offset)
        if bias is None or elf.machine != self._architecture.elf:
            return "code of another kind of processor"
        return FrameTable(elf, lambda: self._debug(elf, file, base)), bias

    def _parts(self, base: Mapping) -> list[Mapping]:
        if not base.is_file:
            return [base]
        same = (m for m in self._space.mappings if m.file == base.file)
        return [m for m in same if self._space.base(m) == base]

    def _debug(
        self, elf: ElfFile, file: OpenFile | None, base: Mapping
    ) -> tuple[ElfFile, int] | None:
        debug_file = (
            debug_files.find(elf, base.path, roots(self._pid)) if file is not None else None
        )
        if not isinstance(debug_file, debug_files.DebugFile):
            return None
        return debug_file.elf, debug_file.elf.first_address() - elf.first_address()
