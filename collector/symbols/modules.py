"""The mapped files of processes, each opened once, with their debug files."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from typing import Literal

import msgpack

from locktop.collector.symbols.disk_cache import DiskCache, usual_directory
from locktop.collector.symbols.dwarf.reader import Dwarf
from locktop.collector.symbols.dwarf.split import SplitFiles
from locktop.collector.symbols.dwarf.unit_index import SourceLocation
from locktop.collector.symbols.elf import debug_files
from locktop.collector.symbols.elf.file import ElfFile
from locktop.collector.symbols.elf.symbol_table import Symbol, Symbols
from locktop.collector.symbols.mapped_file import NotMapped, open_mapped, roots
from locktop.collector.symbols.memory_map import Mapping
from locktop.collector.symbols.safe_open import OpenFile

#: Modules kept open for all processes. Each has up to three descriptors, of often 1024.
MAX_MODULES = 128
#: Bytes: the size of C++'s lock with glibc's reader-writer lock in it.
_MAX_LOCK = 64
#: Rust's names end with a hash or begin with _R. The members of its locks name nothing.
_RUST = re.compile(r"^_R|17h[0-9a-f]{16}E")
#: Names of functions without lines on disk, for one file.
_MAX_SYMBOLS = 4096

_Kind = Literal["functions", "objects"]


class NoSymbols(Exception):
    """The functions of a file cannot be named; the message is a line for the user."""


class Module:
    """One ELF file with its separate debug file, if there is one.

    Args:
        file: The file.
        path: Its path in the first of ``roots``.
        roots: Directories where debug files are searched.

    Attributes:
        note: A line for the user if something about the file is wrong, else "".

    Raises:
        ValueError: The constructor raises it if the file is no sound ELF file.
    """

    def __init__(self, file: OpenFile, path: str, roots: Sequence[str]) -> None:
        self.elf = ElfFile(file)
        self.note = ""
        self._path = path
        self._roots = roots
        self._without: set[tuple[str, _Kind]] = set()  # tables that do not exist
        self._debug = self.elf
        self._shift = 0  # to be added to an address for the debug file
        debug_file = debug_files.find(self.elf, path, roots)
        if isinstance(debug_file, str):
            self.note = debug_file
        elif debug_file is not None:
            self._debug, file = debug_file.elf, debug_file.file
            self._shift = self._debug.first_address() - self.elf.first_address()
        self._supplement = debug_files.supplement(self._debug, file, roots)
        self._new_symbols = False
        # A copy of the file, in a container, is the same build. Without a build id that is unknown.
        about = file.about
        identity = (about.st_dev, about.st_ino, about.st_mtime_ns)
        files = [self.elf, self._debug, *filter(None, [self._supplement])]
        builds = [(elf.build_id, elf.shape) for elf in files]
        self._cache = _BuildCache(repr(builds if all(b for b, _ in builds) else (identity, builds)))

    def function(self, address: int) -> Symbol | None:
        """Return the function at a link-time address."""
        return self._find(address, "functions")

    def data(self, address: int) -> Symbol | None:
        """Return the data object at a link-time address."""
        return self._find(address, "objects") if self.elf.is_loaded(address) else None

    def part(self, symbol: Symbol, address: int) -> tuple[str, str] | None:
        """Return the source file of a data object, and which part lies at a link-time address.

        Returns:
            The file and the part, as ".member[3]"; None if that is not known, or if the object is
            no larger than a lock.
        """
        whole = address == symbol.address and symbol.size <= _MAX_LOCK
        if whole or _RUST.search(symbol.name):
            return None
        variable = symbol.address + self._shift_of_dwarf
        return self._dwarf.part_at(variable, address - symbol.address)

    def locations(self, address: int) -> tuple[SourceLocation, ...]:
        """Return the source locations of a link-time address, innermost first; () if unknown.

        Inlined functions come first, then the function that the code belongs to.
        """
        locations = self._dwarf.find(address + self._shift_of_dwarf)
        if self._dwarf.damaged:
            self.note = self.note or (
                f"debug information of {self._path} is damaged or larger than is sane:"
                " lines or inlined functions may be missing"
            )
        elif self._dwarf.missing:
            self.note = self.note or (
                f"a part of the debug information of {self._path} is not here"
                f" ({self._dwarf.missing}): inlined functions may be missing"
            )
        elif not locations:
            self._store_symbol(address)
        return locations

    def stored_locations(self, address: int) -> tuple[SourceLocation, ...]:
        """As `locations()`, but () if that would take long."""
        locations = self._dwarf.find_stored(address + self._shift_of_dwarf)
        name = "" if locations else self._stored_symbols.get(address, "")
        return (SourceLocation(name, "", 0),) if name else locations

    def release_memory(self) -> None:
        """Release memory that only the search for names needs, and store new names."""
        self._dwarf.release_memory()
        if self._new_symbols:
            self._new_symbols = False
            self._cache.put("symbols", msgpack.packb(self._stored_symbols))

    def _store_symbol(self, address: int) -> None:
        """Store a name: to read a symbol table takes long, for one function without lines."""
        symbol = self.function(address)
        if symbol is not None and len(self._stored_symbols) < _MAX_SYMBOLS:
            self._stored_symbols[address] = symbol.name
            self._new_symbols = True

    @cached_property
    def _stored_symbols(self) -> dict[int, str]:
        try:
            stored = msgpack.unpackb(self._cache.get("symbols") or b"", strict_map_key=False)
            return {int(address): str(name) for address, name in stored.items()}
        except Exception:
            return {}

    @cached_property
    def _dwarf(self) -> Dwarf:
        file = self._debug if self._debug.has_dwarf() else self.elf
        split = SplitFiles(self._path, self._roots)
        return Dwarf(file, self._symbol_at, self._supplement, self._cache, split)

    @cached_property
    def _shift_of_dwarf(self) -> int:
        return self._shift if self._debug.has_dwarf() else 0

    def _symbol_at(self, address: int) -> str:
        """Return the name of the function that begins at an address of the debug information."""
        address -= self._shift_of_dwarf
        symbol = self.function(address)
        return symbol.name if symbol is not None and symbol.address == address else ""

    def detach(self) -> None:
        """Break the reference cycle, so that the last user of the module closes the files."""
        self.__dict__.pop("_dwarf", None)

    def _find(self, address: int, kind: _Kind) -> Symbol | None:
        unsized = None
        for symbols, shift in self._tables(kind):
            symbol = symbols.find(address + shift)
            if symbol is not None:
                symbol = Symbol(symbol.address - shift, symbol.size, symbol.name)
                if symbol.size:
                    return symbol
                unsized = unsized or symbol
        return unsized

    def _tables(self, kind: _Kind) -> Iterator[tuple[Symbols, int]]:
        """The symbol tables, the fullest first, each with the shift of its addresses."""
        for origin in ("debug", "elf", "mini"):
            if (origin, kind) in self._without or (origin == "debug" and self._debug is self.elf):
                continue
            symbols = None
            try:
                elf = self._debug if origin == "debug" else self.elf
                source = elf.mini if origin == "mini" else elf
                if source is not None:
                    symbols = source.functions if kind == "functions" else source.objects
            except ValueError as error:
                self.note = self.note or f"not all symbols from {self._path}: {error}"
            if symbols is None:
                self._without.add((origin, kind))  # a damaged table takes as long each time
            else:
                yield symbols, self._shift if origin == "debug" else 0


class _BuildCache:
    """The results on disk about one build of a file."""

    def __init__(self, identity: str) -> None:
        self._identity = identity

    def get(self, key: str) -> bytes | None:
        """Return a result; None if there is none."""
        return disk_cache().get(f"{self._identity}/{key}")

    def put(self, key: str, data: bytes) -> None:
        """Store a result."""
        disk_cache().put(f"{self._identity}/{key}", data)


@cache
def disk_cache() -> DiskCache:
    """Return the results on disk that all modules share."""
    return DiskCache(usual_directory())


#: The modules of all processes; a file that was replaced has another key. A value of text says why
#: the file cannot be read.
open_modules: OrderedDict[tuple[int, int, int, int], Module | str] = OrderedDict()


def release_memory() -> None:
    """Release memory that only the search for names needs."""
    for module in tuple(open_modules.values()):  # another thread may add one meanwhile
        if isinstance(module, Module):
            module.release_memory()


def load(pid: int, mapping: Mapping) -> Module:
    """Return the module of a mapping.

    Raises:
        NoSymbols: The file cannot be read, or is no ELF file.
    """
    try:
        file = open_mapped(pid, mapping)
    except NotMapped as why:
        raise NoSymbols(
            f"{mapping.path} {why}: its functions cannot be named"
            if str(why)
            else f"no symbols from {mapping.path}: it cannot be read"
        ) from None
    about = file.about
    key = (about.st_dev, about.st_ino, about.st_mtime_ns, about.st_size)
    module = open_modules.get(key)
    if module is None:
        try:
            module = Module(file, mapping.path, roots(pid))
        except ValueError as error:
            module = f"no symbols from {mapping.path}: {error}"
        open_modules[key] = module
        if len(open_modules) > MAX_MODULES:
            _, oldest = open_modules.popitem(last=False)
            if isinstance(oldest, Module):
                oldest.detach()
    open_modules.move_to_end(key)
    if isinstance(module, str):
        raise NoSymbols(module)
    return module
