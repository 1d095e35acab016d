"""A process that a core has saved: memory, mappings and threads, as the kernel shows those.

A core seldom has the code of a process. The mapped files have that code, if their build is the one
that the memory of the process tells.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from locktop.collector.linux import saved_process, thread_descriptor
from locktop.collector.linux.saved_process import SavedThread
from locktop.collector.sanitize import clean
from locktop.collector.sources.core import core_threads
from locktop.collector.sources.core.core_file import (
    CoreFile,
    MappedRange,
    SavedSegment,
    mapped_ranges,
)
from locktop.collector.symbols.elf.file import ElfFile
from locktop.collector.symbols.mapped_file import identity_in_maps
from locktop.collector.symbols.safe_open import OpenFile, open_regular

_MAX_FILES = 4096  # that are opened
_PAGE = 4096
_AUXILIARY_ENTRY, _VDSO_ADDRESS, _VDSO_SIZE = 16, 33, 2 * _PAGE  # AT_SYSINFO_EHDR
_EXECUTABLE = 1
_RIGHTS = (("r", 4), ("w", 2), ("x", _EXECUTABLE))


class _MemoryPart(NamedTuple):
    """A part of memory without a change of its origin."""

    start: int
    end: int
    saved: SavedSegment | None
    mapped: MappedRange | None


class _ModuleFile(NamedTuple):
    """A mapped file: open if it is of the same build."""

    file: OpenFile | None
    elf: ElfFile | None
    identity: tuple[str, int]  # device and inode, as in a memory map


class _SavedImage:
    """The part of a module that the core has, as a source for ElfFile."""

    def __init__(self, process: CoreProcess, ranges: list[MappedRange]) -> None:
        self._process = process
        self._ranges = ranges
        self.size = max(r.offset + r.end - r.start for r in ranges)

    def read_at(self, offset: int, size: int) -> bytes:
        """Return up to ``size`` bytes; fewer where the core has no more."""
        for mapped in self._ranges:
            inside = offset - mapped.offset
            if 0 <= inside < mapped.end - mapped.start:
                size = min(size, mapped.end - mapped.start - inside)
                return self._process.saved_memory(mapped.start + inside, size)
        return b""


class CoreProcess:
    """One process of a core; see SavedProcess."""

    def __init__(self, path: str) -> None:
        """Raises:
        LocktopError: the file is no core that locktop understands.
        """
        self.path = path
        self.core = CoreFile(path)
        notes = self.core.notes
        first = dict(reversed(notes))
        self.facts = core_threads.process_facts(first.get("PRPSINFO", b""))
        statuses = [data for name, data in notes if name == "PRSTATUS"]
        self.signal = core_threads.signal_of(statuses[0])
        self._starts = [segment.start for segment in self.core.segments]
        self.pid = self.facts.pid
        self.threads: Sequence[SavedThread] = self._threads(statuses)
        self.warnings: list[str] = []
        self._auxiliary = first.get("AUXV", b"")
        ranges = sorted(mapped_ranges(first.get("FILE", b"")))
        self._files = self._open_files(ranges)
        self._parts = list(_parts(self.core.segments, ranges))
        self._part_starts = [part.start for part in self._parts]
        self.exe = self._program(ranges)
        if self.core.missing_bytes:
            self.warnings.append(
                f"the core was cut: {self.core.missing_bytes:,} bytes of memory are missing"
            )

    def __str__(self) -> str:
        signal = f", signal {self.signal}" if self.signal else ""
        return f"{self.facts.name} {self.pid}{signal}"

    def _threads(self, statuses: list[bytes]) -> Sequence[SavedThread]:
        """Return the threads with the ids that the process itself has for them.

        If gcore ran outside of a container, the ids of the core are others than those in the locks.
        """
        threads: dict[int, SavedThread] = {}
        for data in statuses:
            thread = core_threads.thread(data, "")
            if thread is None:
                continue
            descriptor = thread.registers[core_threads.FS_BASE]
            head = self.saved_memory(descriptor, thread_descriptor.SIZE)
            tid = thread_descriptor.tid_in(descriptor, head)
            own = replace(thread, tid=tid) if 0 < tid <= core_threads.MAX_TID else thread
            if thread.tid == self.facts.pid:
                own, self.pid = replace(own, name=self.facts.name), own.tid
            threads.setdefault(own.tid, own)
        if not threads:
            raise self.core.damaged("no thread of it can be read")
        self.pid = self.pid or min(threads)
        return list(threads.values())

    def _program(self, ranges: list[MappedRange]) -> str:
        """Return the path of the program: the lowest file with the process's name, or the first."""
        paths = [os.fsdecode(r.path) for r in ranges if not r.offset]
        name = self.facts.name
        return next((p for p in paths if name and os.path.basename(p).startswith(name)), "")

    # ---- the mapped files ----

    def _open_files(self, ranges: list[MappedRange]) -> dict[bytes, _ModuleFile]:
        by_path: dict[bytes, list[MappedRange]] = {}
        for mapped in ranges:
            by_path.setdefault(mapped.path, []).append(mapped)
        some = list(by_path.items())[:_MAX_FILES]
        return {path: self._open(path, of_path) for path, of_path in some}

    def _open(self, path: bytes, ranges: list[MappedRange]) -> _ModuleFile:
        """Open a mapped file, if it is the one that the process had mapped."""
        text = clean(os.fsdecode(path))
        saved = self._saved_elf(ranges)
        file = open_regular(os.fsdecode(path))
        if file is None:
            if saved is not None:
                self.warnings.append(f"{text} is not here: its functions have no names")
            return _ModuleFile(None, None, ("00:00", 1))
        try:
            elf = ElfFile(file)
        except ValueError:
            return _ModuleFile(None, None, ("00:00", 1))  # data: what was changed is in the core
        if saved is not None and saved.build_id != elf.build_id:
            self.warnings.append(
                f"{text} is of another build than in the core ({elf.build_id[:12] or 'none'}, not"
                f" {saved.build_id[:12] or 'none'}): its functions have no names"
            )
            return _ModuleFile(None, None, ("00:00", 1))
        return _ModuleFile(file, elf, identity_in_maps(file) or ("00:00", 1))

    def _saved_elf(self, ranges: list[MappedRange]) -> ElfFile | None:
        """Return the module as the core has it; None if the core lacks its header."""
        first = ranges[0]
        if first.offset or self.saved_memory(first.start, 4) != b"\x7fELF":
            return None
        try:
            return ElfFile(_SavedImage(self, ranges))
        except ValueError:
            return None

    # ---- memory ----

    def saved_memory(self, address: int, size: int) -> bytes:
        """Return up to ``size`` bytes of memory, as far as the core itself has them."""
        parts = []
        while size > 0:
            index = bisect_right(self._starts, address) - 1
            segment = self.core.segments[index] if index >= 0 else None
            left = segment.start + segment.file_size - address if segment is not None else 0
            if segment is None or left <= 0 or address >= segment.end:
                break
            data = self._read(segment.offset + address - segment.start, min(size, left))
            if not data:
                break
            parts.append(data)
            address, size = address + len(data), size - len(data)
        return b"".join(parts)

    def _read(self, offset: int, size: int) -> bytes:
        try:
            return self.core.file.read_at(offset, size) if offset < self.core.file.size else b""
        except (OSError, OverflowError):
            return b""

    def memory(self, address: int, size: int) -> bytes:
        """Return up to ``size`` bytes of memory, of the core or of a mapped file."""
        data = self.saved_memory(address, size)
        while len(data) < size:
            more = self._mapped_memory(address + len(data), size - len(data))
            if not more:
                break
            data += more
            data += self.saved_memory(address + len(data), size - len(data))
        return data

    def _mapped_memory(self, address: int, size: int) -> bytes:
        index = bisect_right(self._part_starts, address) - 1
        part = self._parts[index] if index >= 0 else None
        if part is None or part.mapped is None or address >= part.end:
            return b""
        if part.saved is not None and address < part.start + part.saved.file_size:
            return b""  # the core was cut: the file has what the memory was at first
        module = self._files.get(part.mapped.path)
        if module is None or module.file is None:
            return b""
        offset = part.mapped.offset + address - part.mapped.start
        try:
            return module.file.read_at(offset, min(size, part.end - address))
        except OSError:
            return b""

    # ---- the files of /proc ----

    def proc_file(self, name: str, number: int) -> bytes:
        """See SavedProcess."""
        if name == "maps":
            return self._maps
        if name == "stat":
            cpu_s = sum(thread.cpu_s for thread in self.threads)
            count = len(self.threads)
            return saved_process.stat_line(self.pid, self.facts.name, cpu_s, "S", count)
        if name == "status":
            threads = len(self.threads)
            lines = [
                f"Tgid:\t{number}", f"NSpid:\t{number}\t{self.pid}", f"Threads:\t{threads}",
                "Uid:" + f"\t{self.facts.uid}" * 4, "TracerPid:\t0", "SigCgt:\t0",
            ]  # fmt: skip
            return "\n".join(lines).encode() + b"\n"
        if name == "cmdline":
            return self.facts.arguments.replace(" ", "\0").encode()
        if name == "environ":
            return b""
        raise FileNotFoundError(name)

    @property
    def _maps(self) -> bytes:
        if self._text_of_maps is None:
            self._text_of_maps = b"\n".join(map(self._line, self._parts)) + b"\n"
        return self._text_of_maps

    _text_of_maps: bytes | None = None

    def _line(self, part: _MemoryPart) -> bytes:
        """Return a line as proc_pid_maps(5) has it."""
        mapped = part.mapped
        module = self._files.get(mapped.path) if mapped is not None else None
        flags = part.saved.flags if part.saved is not None else _flags_of(module, mapped)
        rights = "".join(sign if flags & bit else "-" for sign, bit in _RIGHTS)
        begin = f"{part.start:x}-{part.end:x} {rights}p"
        if mapped is None:
            name = b"[vdso]" if part.start == self._vdso else b""
            return begin.encode() + b" 00000000 00:00 0 " + name
        device, inode = module.identity if module is not None else ("00:00", 1)
        path = mapped.path.replace(b"\\", b"\\134").replace(b"\n", b"\\012")
        if module is None or module.file is None:
            path += b" (deleted)"
        offset = mapped.offset + part.start - mapped.start
        return f"{begin} {offset:08x} {device} {inode} ".encode() + path

    @property
    def _vdso(self) -> int:
        """The address of the kernel's own code; 0 if it is not known."""
        auxiliary = self._auxiliary
        for begin in range(0, len(auxiliary) - _AUXILIARY_ENTRY + 1, _AUXILIARY_ENTRY):
            entry = auxiliary[begin : begin + _AUXILIARY_ENTRY]
            if int.from_bytes(entry[:8], "little") == _VDSO_ADDRESS:
                return int.from_bytes(entry[8:], "little")
        return 0


def _flags_of(module: _ModuleFile | None, mapped: MappedRange | None) -> int:
    """Return the rights of a mapping that the core lacks, by the segments of its file."""
    if module is None or module.elf is None or mapped is None:
        return 4
    size = mapped.end - mapped.start
    for segment in module.elf.segments:
        begin = segment.offset - segment.offset % _PAGE
        overlaps = begin < mapped.offset + size
        if segment.executable and overlaps and mapped.offset < segment.offset + segment.file_size:
            return 4 | _EXECUTABLE
    return 4


def _parts(segments: list[SavedSegment], ranges: list[MappedRange]) -> Iterator[_MemoryPart]:
    """Yield the parts of memory by address: those of the core, and those of files alone."""
    starts = [mapped.start for mapped in ranges]
    covered = set()
    parts = []
    for segment in segments:
        index = bisect_right(starts, segment.start) - 1
        mapped = ranges[index] if index >= 0 and segment.start < ranges[index].end else None
        if mapped is not None:
            covered.add(index)
        parts.append(_MemoryPart(segment.start, segment.end, segment, mapped))
    only_mapped = (mapped for index, mapped in enumerate(ranges) if index not in covered)
    parts += [_MemoryPart(mapped.start, mapped.end, None, mapped) for mapped in only_mapped]
    yield from sorted(parts, key=lambda part: part.start)
