"""Every lock or wait function that libc exports is interposed, or left alone for a reason."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerDefSection, GNUVerSymSection
from elftools.elf.sections import SymbolTableSection

from locktop.collector.launch import preload_environment

HOOKS = Path(__file__).resolve().parents[2] / "native" / "src" / "hooks.def"

#: What may lock or wait, by its name. Attributes of locks do neither.
LOCKS_OR_WAITS = re.compile(
    r"mutex|rwlock|spin|barrier|^sem_|^sem(timed)?op$|once$|join|^mtx_|^cnd_|^thrd_|futex|lockfile"
    r"|pthread_cond|pthread_(create|exit|detach)$|wait|^msg(rcv|snd)$|mq_.*(receive|send)"
    r"|aio_suspend|^lio_listio|^flock$|lockf|^p?poll$|^p?select$|sleep$|^pause$|^syscall$"
)


def exports(path: str) -> dict[str, set[str]]:
    """Return the names of the functions that a library exports, each with its versions."""
    found: dict[str, set[str]] = {}
    with open(path, "rb") as file:
        elf = ELFFile(file)
        versions = elf.get_section_by_name(".gnu.version")
        definitions = elf.get_section_by_name(".gnu.version_d")
        symbols = elf.get_section_by_name(".dynsym")
        assert isinstance(versions, GNUVerSymSection)
        assert isinstance(definitions, GNUVerDefSection)
        assert isinstance(symbols, SymbolTableSection)
        names = {
            version["vd_ndx"]: next(names).name for version, names in definitions.iter_versions()
        }
        for index, symbol in enumerate(symbols.iter_symbols()):
            if symbol["st_shndx"] == "SHN_UNDEF" or symbol["st_info"]["type"] not in (
                "STT_FUNC",
                "STT_GNU_IFUNC",
            ):
                continue
            number = versions.get_symbol(index)["ndx"]
            version = names[number & 0x7FFF] if isinstance(number, int) else ""
            found.setdefault(symbol.name, set()).add(version)
    return found


@pytest.fixture(scope="module")
def libc() -> dict[str, set[str]]:
    with open("/proc/self/maps") as maps:
        path = next(line.split()[-1] for line in maps if line.rstrip().endswith("/libc.so.6"))
    return {
        name: versions - {"GLIBC_PRIVATE"}
        for name, versions in exports(path).items()
        if LOCKS_OR_WAITS.search(name) and "attr" not in name
    }


@pytest.fixture(scope="module")
def library() -> dict[str, set[str]]:
    return exports(preload_environment()["LD_PRELOAD"])


def left_alone() -> dict[str, str]:
    return dict(re.findall(r'^LEFT_ALONE\((\w+), "(.+)"\)$', HOOKS.read_text(), re.MULTILINE))


def test_nothing_is_forgotten(libc: dict[str, set[str]], library: dict[str, set[str]]) -> None:
    public = {name for name, versions in libc.items() if versions}
    assert len(public) > 100
    assert public - set(library) - set(left_alone()) == set()


def test_nothing_is_both(library: dict[str, set[str]]) -> None:
    assert set(library) & set(left_alone()) == set()


def test_what_has_two_behaviours_has_two_versions(
    libc: dict[str, set[str]], library: dict[str, set[str]]
) -> None:
    """Of pthread_cond_* the versions differ; everything else answers to any."""
    versioned = {name for name, versions in library.items() if versions != {""}}
    assert versioned == {name for name in versioned if name.startswith("pthread_cond_")}
    for name in versioned:
        assert library[name] == libc[name]
