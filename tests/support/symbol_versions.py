"""The versions of glibc's functions that a compiled file needs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection, GNUVerSymSection
from elftools.elf.sections import SymbolTableSection

#: The newest version that the tag manylinux2014 allows; also the first one for aarch64.
OLDEST = "GLIBC_2.17"
_OWN_OR_NONE = ("VER_NDX_LOCAL", "VER_NDX_GLOBAL")


def compiled_parts(installed: Path) -> Iterator[Path]:
    """Give the libraries and programs of an installation of locktop."""
    for kind in ("lib", "bin"):
        yield from sorted((installed / kind).glob("*"))


def needed_versions(path: Path) -> set[tuple[str, str]]:
    """Return (symbol, version) of each function that the file imports with a version.

    A version that no symbol has is also needed: its symbol is then an empty string.
    """
    with path.open("rb") as file:
        elf = ELFFile(file)
        names = dict(_version_names(elf))
        symbols = elf.get_section_by_name(".dynsym")
        indexes = elf.get_section_by_name(".gnu.version")
        assert isinstance(symbols, SymbolTableSection)
        assert isinstance(indexes, GNUVerSymSection)
        needed = {("", version) for version in names.values()}
        for number, symbol in enumerate(symbols.iter_symbols()):
            index = indexes.get_symbol(number)["ndx"]
            if index not in _OWN_OR_NONE and index & 0x7FFF in names:
                needed.add((symbol.name, names[index & 0x7FFF]))
        return needed


def _version_names(elf: ELFFile) -> Iterator[tuple[int, str]]:
    section = elf.get_section_by_name(".gnu.version_r")
    assert isinstance(section, GNUVerNeedSection)
    for _, versions in section.iter_versions():
        for version in versions:
            yield version["vna_other"], version.name


def is_newer(version: str) -> bool:
    """Return whether a version is one of glibc, and newer than OLDEST."""
    library, _, number = version.partition("_")
    return library == "GLIBC" and _numbers(number) > _numbers(OLDEST.partition("_")[2])


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
