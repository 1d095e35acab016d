"""Which code of a process has names and source lines."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from locktop.collector.linux import procfs
from locktop.collector.model.diagnosis import Check, full, limited
from locktop.collector.symbols.elf import debug_files
from locktop.collector.symbols.elf.file import ElfFile
from locktop.collector.symbols.mapped_file import NotMapped, open_mapped, roots
from locktop.collector.symbols.memory_map import Mapping, parse

_LINES, _NAMES, _EXPORTED, _NOTHING = (
    "names and source lines",
    "names, but no source lines",
    "only the names of exported functions",
    "no names",
)
#: Files that are opened at most; a program of more is told by its first ones.
_MAX_FILES = 200
_INSTALL_THEIRS = "install the debug files of those that matter (Debian: the packages *-dbgsym)"
_INSTALL = "install its debug files (Debian: the packages *-dbgsym), or build it with -g"


def module_checks(pid: int) -> Iterator[Check]:
    """Yield the checks of the program, of its libraries together, and of code made at run time.

    Raises OSError if the process is gone or its memory map may not be read.
    """
    mappings = parse(procfs.maps(pid))
    files = {
        mapping.file: mapping
        for mapping in mappings
        if mapping.is_code_of_a_file and mapping.executable
    }
    program = procfs.exe(pid).removesuffix(" (deleted)")
    kinds: Counter[str] = Counter()
    for mapping in list(files.values())[:_MAX_FILES]:
        names_known = _known_of(pid, mapping)
        if mapping.path == program:
            yield _program(posixpath.basename(mapping.path), names_known)
        else:
            kinds[names_known] += 1
    if kinds:
        yield _libraries(kinds)
    yield from _run_time_code(pid, mappings)


def _known_of(pid: int, mapping: Mapping) -> str:
    try:
        file = open_mapped(pid, mapping)
        elf = ElfFile(file)
        debug = debug_files.find(elf, mapping.path, roots(pid))
    except NotMapped as error:
        return f"{_NOTHING}: the file {error}" if str(error) else _NOTHING
    except (OSError, ValueError):
        return _NOTHING
    files = [elf, debug.elf] if isinstance(debug, debug_files.DebugFile) else [elf]
    if any(file_.has_dwarf() for file_ in files):
        return _LINES
    if any(file_.section(".symtab") or file_.mini for file_ in files):
        return _NAMES
    return _EXPORTED if elf.section(".dynsym") else _NOTHING


def _program(name: str, names_known: str) -> Check:
    text = f"{name} has {names_known}"
    if names_known == _LINES:
        return full("program", text)
    replaced = names_known.startswith(_NOTHING) and ":" in names_known
    return limited("program", text, "start the program again" if replaced else _INSTALL)


def _libraries(kinds: Counter[str]) -> Check:
    text = "; ".join(f"{count} with {kind}" for kind, count in kinds.most_common())
    text = f"{kinds.total()} libraries: {text}"
    if set(kinds) <= {_LINES, _NAMES}:
        return full("libraries", text)
    return limited(
        "libraries", text, _INSTALL.replace("its", "their").replace("it with", "them with")
    )


def _run_time_code(pid: int, mappings: list[Mapping]) -> Iterator[Check]:
    are_generated = (
        mapping.executable and not mapping.is_file and not mapping.is_of_the_kernel
        for mapping in mappings
    )
    if not any(are_generated):
        return
    listed = Path(
        f"{procfs.shared_directory(pid)}/root/tmp/perf-{procfs.status(pid).namespace_pids[-1]}.map"
    )
    if listed.exists():
        yield full("run-time code", f"{listed.name} names the code that was made at run time")
    else:
        yield limited(
            "run-time code",
            "code that was made at run time has no names",
            "let the runtime write a perf map (docs/runtimes.md)",
        )
