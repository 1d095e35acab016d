"""The names of functions that the dynamic linker binds when they are first called (.rela.plt)."""

from __future__ import annotations

import struct

from locktop.collector.symbols.elf.file import ElfFile

_RELOCATION = struct.Struct("<QQq")  # of a 64-bit file: offset, symbol and type, addend
_SYMBOL_SIZE = 24
_MAX_NAME = 4096


def linked_names(elf: ElfFile) -> dict[int, str]:
    """Return the mangled name for each slot of the linkage table, by the slot's address.

    Raises:
        ValueError: the file is damaged.
    """
    relocations = elf.content(".rela.plt") or b""
    symbols, strings = elf.content(".dynsym") or b"", elf.content(".dynstr") or b""
    usable = len(relocations) - len(relocations) % _RELOCATION.size
    names = {}
    for slot, info, _ in _RELOCATION.iter_unpack(relocations[:usable]):
        symbol = (info >> 32) * _SYMBOL_SIZE
        begin = int.from_bytes(symbols[symbol : symbol + 4], "little")
        end = strings.find(b"\0", begin, begin + _MAX_NAME)
        if symbol and end > begin:
            names[slot] = strings[begin:end].decode(errors="replace")
    return names
