"""Source lines and inlined functions, of programs that several compilers build in several ways.

The program itself, or addr2line of binutils, has the right answer.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support import requirements

import locktop
from locktop.collector.model import Frame
from locktop.collector.symbols import modules
from locktop.collector.symbols.disk_cache import DiskCache
from locktop.collector.symbols.dwarf import abbrevs, reader
from locktop.collector.symbols.dwarf.functions import function_name
from locktop.collector.symbols.dwarf.reader import Dwarf
from locktop.collector.symbols.dwarf.unit_index import SourceLocation
from locktop.collector.symbols.elf.bounded_file import InMemory
from locktop.collector.symbols.elf.file import ElfFile
from locktop.collector.symbols.resolver import Resolver

# Prints the address of a call and the line of each function, then waits for the end of its input.
NESTED = """\
#include <stdio.h>
static int lines[4];
static void *volatile kept;
__attribute__((noinline)) static void *here(void)
{
    return __builtin_return_address(0);
}
#define INLINED static inline __attribute__((always_inline))
INLINED void *innermost(void)
{
    lines[0] = __LINE__; kept = here();
    return kept;
}
INLINED void *middle(void)
{
    lines[1] = __LINE__; kept = innermost();
    return kept;
}
INLINED void *outer(void)
{
    lines[2] = __LINE__; kept = middle();
    return kept;
}
int main(void)
{
    lines[3] = __LINE__; void *address = outer();
    printf("%p %d %d %d %d\\n", address, lines[0], lines[1], lines[2], lines[3]);
    fflush(stdout);
    return getchar();
}
"""
FUNCTIONS = ["innermost", "middle", "outer", "main"]
WAYS = {
    "dwarf 4": ["cc", "-gdwarf-4"],
    "dwarf 5": ["cc", "-gdwarf-5"],
    "compressed": ["cc", "-g", "-gz"],
    "link time": ["cc", "-g", "-flto"],
    "sections": ["cc", "-g", "-ffunction-sections", "-Wl,--gc-sections"],
    "split, dwarf 4": ["cc", "-gdwarf-4", "-gsplit-dwarf"],
    "split, dwarf 5": ["cc", "-gdwarf-5", "-gsplit-dwarf"],
    "C++": ["c++", "-g", "-xc++"],
    "clang, dwarf 4": ["clang", "-gdwarf-4"],
    "clang, dwarf 5": ["clang", "-gdwarf-5"],
    "clang, lines only": ["clang", "-gmlt"],
    "clang, split, dwarf 4": ["clang", "-gdwarf-4", "-gsplit-dwarf"],
    "clang, split, dwarf 5": ["clang", "-gdwarf-5", "-gsplit-dwarf"],
}


def build(directory: Path, source: str, command: Sequence[str]) -> Path:
    """Compile a program at -O2; skip if the compiler is not installed."""
    requirements.command(command[0], optional=True)
    suffix = ".cc" if "-xc++" in command else ".c"
    (directory / f"nested{suffix}").write_text(source)
    subprocess.run(
        [command[0], "-O2", *command[1:], f"nested{suffix}", "-o", "program"],
        cwd=directory,
        check=True,
    )
    return directory / "program"


@dataclass
class Printed:
    """The output of a program: a return address, and the lines of the calls."""

    process: subprocess.Popen[bytes]
    address: int
    lines: list[int]


def start(program: Path) -> Printed:
    process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    address, *lines = process.stdout.readline().split()
    return Printed(process, int(address, 16), [int(line) for line in lines])


def frames_of(printed: Printed) -> tuple[Frame, ...]:
    """Resolve the address, and end the program."""
    resolver = Resolver(printed.process.pid)
    resolver.frames(printed.address)
    assert resolver.wait()
    printed.process.communicate()
    frames = resolver.frames(printed.address)
    assert resolver.notes() == []
    resolver.close()
    return frames


@pytest.mark.parametrize("way", WAYS)
def test_functions_inlined_into_each_other_are_frames(way: str, tmp_path: Path) -> None:
    printed = start(build(tmp_path, NESTED, WAYS[way]))
    frames = frames_of(printed)
    assert [frame.function for frame in frames] == FUNCTIONS
    assert [frame.line for frame in frames] == printed.lines
    assert {frame.file for frame in frames} == {"nested.cc" if way == "C++" else "nested.c"}
    assert [frame.inlined for frame in frames] == [True, True, True, False]
    assert {frame.address for frame in frames} == {printed.address}


@pytest.fixture(scope="session")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A C++ program of many small functions within each other."""
    requirements.command("c++")
    directory = tmp_path_factory.mktemp("templates")
    (directory / "templates.cc").write_text(
        "#include <algorithm>\n#include <map>\n#include <mutex>\n#include <string>\n"
        "#include <vector>\n"
        "namespace { std::mutex mutex; std::map<std::string, std::vector<int>> kept; }\n"
        "static int put(const std::string &key, int value)\n"
        "{\n    std::lock_guard<std::mutex> guard(mutex);\n"
        "    auto add = [&](int n) { kept[key].push_back(n); return (int)kept.size(); };\n"
        "    return add(value) + add(value + 1);\n}\n"
        "int main(int argc, char **argv)\n"
        "{\n    std::vector<std::string> all(argv, argv + argc);\n"
        "    std::sort(all.begin(), all.end());\n    int sum = 0;\n"
        "    for (auto &one : all) sum += put(one, argc);\n    return sum;\n}\n"
    )
    command = ["c++", "-O2", "-g", "-o", "templates", "templates.cc"]
    subprocess.run(command, cwd=directory, check=True)
    return directory / "templates"


@pytest.fixture(scope="session")
def rust(tmp_path_factory: pytest.TempPathFactory) -> Path:
    requirements.command("rustc", optional=True)
    directory = tmp_path_factory.mktemp("rust")
    (directory / "shared.rs").write_text(
        "use std::collections::HashMap;\nuse std::sync::{Arc, Mutex};\nuse std::thread;\n"
        "fn put(kept: &Mutex<HashMap<String, Vec<u32>>>, n: u32) {\n"
        "    kept.lock().unwrap().entry(n.to_string()).or_default().push(n);\n}\n"
        "fn main() {\n    let kept = Arc::new(Mutex::new(HashMap::new()));\n"
        "    let all: Vec<_> = (0..4).map(|n| {\n        let kept = kept.clone();\n"
        "        thread::spawn(move || for m in 0..9 { put(&kept, n * m) })\n    }).collect();\n"
        "    for one in all { one.join().unwrap() }\n}\n"
    )
    subprocess.run(["rustc", "-O", "-g", "shared.rs"], cwd=directory, check=True)
    return directory / "shared"


def library() -> Path:
    return next(path for d in locktop.__path__ for path in Path(d).glob("lib/liblocktop.so"))


@pytest.mark.parametrize("which", ["library", "templates", "rust"])
def test_addr2line_agrees(which: str, request: pytest.FixtureRequest) -> None:
    """All lines must be equal, and most files and functions.

    addr2line of binutils 2.40 may print the file of the unit instead of the header. Without a
    mangled name in DWARF, addr2line may give the innermost function the name of the symbol.
    """
    requirements.command("addr2line")
    path = library() if which == "library" else request.getfixturevalue("templates")
    dwarf = open_dwarf(path)
    addresses = some_addresses(dwarf, 600)
    same = several = 0
    for address, theirs in addr2line(path, addresses).items():
        ours = dwarf.find(address)
        # The tools know nothing of gaps between functions, and print that in many ways.
        if not ours or not ours[0].function or not theirs[0][1]:
            continue
        assert [each.line for each in ours] == [line for _, line, _ in theirs], hex(address)
        names = [each.function for each in ours[:-1]] == [name for name, _, _ in theirs[:-1]]
        same += names and _paths(ours) == [file for _, _, file in theirs]
        several += len(ours) > 1
    assert same > 0.8 * len(addresses)
    assert several > 0.2 * len(addresses)


def open_dwarf(path: Path) -> Dwarf:
    return Dwarf(ElfFile(InMemory(path.read_bytes())), lambda _: "")


def some_addresses(dwarf: Dwarf, count: int) -> list[int]:
    rows = dwarf.unit_ranges()
    chance = random.Random(4)
    among = chance.choices(list(zip(rows.lows, rows.highs, strict=True)), k=count)
    return sorted({chance.randrange(low, high) for low, high in among})


def _paths(found: tuple[SourceLocation, ...]) -> list[str]:
    return [os.path.normpath(each.file) for each in found]


def addr2line(path: Path, addresses: list[int]) -> dict[int, list[tuple[str, int, str]]]:
    """The function, line and file of each source location by address, innermost first."""
    command = ["addr2line", "-a", "-i", "-f", "-e", str(path)]
    queries = "\n".join(map(hex, addresses))
    said = subprocess.run(command, input=queries, capture_output=True, text=True, check=True).stdout
    found: dict[int, list[tuple[str, int, str]]] = {}
    lines = iter(said.splitlines())
    for line in lines:
        if line.startswith("0x"):
            locations = found.setdefault(int(line, 16), [])
            continue
        file, _, number = next(lines).partition(" (")[0].rpartition(":")
        location: Any = (line, int(number) if number.isdigit() else 0, os.path.normpath(file))
        locations.append(location)
    return found


class Memory(dict[str, bytes]):
    """A substitute for the results on disk."""

    put = dict.__setitem__


def test_stored_results_serve_without_debug_information(templates: Path) -> None:
    kept = Memory()
    whole = templates.read_bytes()
    first = Dwarf(ElfFile(InMemory(whole)), lambda _: "", stored=kept)
    addresses = some_addresses(first, 50)
    assert not any(map(first.find_stored, addresses)), "nothing is read"
    found = [first.find(address) for address in addresses]
    assert any(found)
    stripped = ElfFile(InMemory(without_debug_information(whole)))
    again = Dwarf(stripped, lambda _: "", stored=kept)
    assert [again.find_stored(address) for address in addresses] == found
    assert not again.damaged


def without_debug_information(whole: bytes) -> bytes:
    """Overwrite the debug information, so that a reader finds nothing."""
    file = ElfFile(InMemory(whole))
    data = bytearray(whole)
    for name in (".debug_info", ".debug_line", ".debug_aranges", ".debug_abbrev"):
        section = file.section(name)
        if section is not None:
            data[section.offset : section.offset + section.size] = b"\xff" * section.size
    return bytes(data)


def test_stored_results_may_be_damaged(templates: Path) -> None:
    kept = Memory()
    whole = InMemory(templates.read_bytes())
    first = Dwarf(ElfFile(whole), lambda _: "", stored=kept)
    (address, *_) = some_addresses(first, 1)
    right = first.find(address)
    chance = random.Random(8)
    for key, good in list(kept.items()):
        for _ in range(100):
            bad = bytearray(good)
            for _ in range(chance.choice((1, 30))):
                bad[chance.randrange(len(bad))] = chance.randrange(256)
            kept[key] = bytes(bad[: chance.choice((len(bad), chance.randrange(len(bad))))])
            again = Dwarf(ElfFile(whole), lambda _: "", stored=kept)
            again.find_stored(address)
            again.find(address)  # any result but an exception
        kept[key] = good
    assert Dwarf(ElfFile(whole), lambda _: "", stored=kept).find(address) == right


def test_damaged_debug_information_is_not_stored(templates: Path) -> None:
    kept = Memory()
    file = ElfFile(InMemory(without_debug_information(templates.read_bytes())))
    dwarf = Dwarf(file, lambda _: "", stored=kept)
    assert dwarf.find(0x1200) == ()
    assert dwarf.damaged
    assert not kept


def test_discarded_code_names_no_address(tmp_path: Path) -> None:
    """Discarded code has debug information at address 0, here more bytes than precede main()."""
    many = "    kept = (char *)kept + 1;\n" * 2000
    source = f"{NESTED}void unused(void)\n{{\n{many}}}\n"
    printed = start(build(tmp_path, source, WAYS["sections"]))
    assert [frame.line for frame in frames_of(printed)] == printed.lines


def test_a_split_file_of_another_build_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    split = ["cc", "-gdwarf-5", "-gsplit-dwarf"]
    build(tmp_path / "other", NESTED.replace("middle", "muddle"), split)
    printed = start(build(tmp_path, NESTED, split))
    (name,) = (path.name for path in tmp_path.glob("*.dwo"))
    shutil.copy(tmp_path / "other" / name, tmp_path / name)
    resolver = Resolver(printed.process.pid)
    resolver.frames(printed.address)
    assert resolver.wait()
    printed.process.communicate()
    assert [frame.function for frame in resolver.frames(printed.address)] == ["main"]
    assert len(resolver.notes()) == 1
    resolver.close()


@pytest.mark.parametrize("kept", ["nothing", "a package by dwp", "a package by llvm-dwp"])
def test_split_debug_information_is_read_from_a_package_or_reported_missing(
    kept: str, tmp_path: Path
) -> None:
    """The dwp of binutils knows DWARF 4, that of LLVM also 5."""
    packer = kept.rpartition(" ")[2]
    if kept != "nothing":
        requirements.command(packer, optional=True)
    version = "5" if packer == "llvm-dwp" else "4"
    program = build(tmp_path, NESTED, ["cc", f"-gdwarf-{version}", "-gsplit-dwarf"])
    (split,) = tmp_path.glob("*.dwo")
    if kept != "nothing":
        (tmp_path / "other.c").write_text("int other(int n) { return n + 1; }\n")
        compiled = ["cc", "-O2", f"-gdwarf-{version}", "-gsplit-dwarf", "-c", "other.c"]
        subprocess.run(compiled, cwd=tmp_path, check=True)
        command = [packer, "other.dwo", split.name, "-o", "program.dwp"]
        subprocess.run(command, cwd=tmp_path, check=True)
    split.unlink()
    printed = start(program)
    resolver = Resolver(printed.process.pid)
    resolver.frames(printed.address)
    assert resolver.wait()
    printed.process.communicate()
    frames = resolver.frames(printed.address)
    if kept == "nothing":
        assert [(frame.function, frame.line) for frame in frames] == [("main", printed.lines[0])]
        (note,) = resolver.notes()
        assert note == (
            f"a part of the debug information of {program} is not here ({split.name}):"
            " inlined functions may be missing"
        )
    else:
        assert [frame.function for frame in frames] == FUNCTIONS
        assert [frame.line for frame in frames] == printed.lines
        assert resolver.notes() == []
    resolver.close()


def test_the_next_run_reads_stored_names_and_not_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = start(build(tmp_path, NESTED, WAYS["dwarf 5"]))
    cache = DiskCache(tmp_path / "cache")
    monkeypatch.setattr(modules, "disk_cache", lambda: cache)
    monkeypatch.setattr(modules, "open_modules", OrderedDict())
    first = resolved(printed)
    assert [frame.function for frame in first] == FUNCTIONS
    monkeypatch.setattr(modules, "open_modules", OrderedDict())
    monkeypatch.setattr(reader, "CompileUnit", refuse)
    monkeypatch.setattr(modules.Module, "function", refuse)
    assert resolved(printed) == first
    printed.process.communicate()


def test_a_function_without_lines_is_searched_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading the symbol table of a large program takes long."""
    printed = start(build(tmp_path, NESTED, ["cc", "-fno-inline"]))
    cache = DiskCache(tmp_path / "cache")
    monkeypatch.setattr(modules, "disk_cache", lambda: cache)
    monkeypatch.setattr(modules, "open_modules", OrderedDict())
    first = resolved(printed)
    assert [(frame.function, frame.file) for frame in first] == [("main", None)]
    monkeypatch.setattr(modules, "open_modules", OrderedDict())
    monkeypatch.setattr(modules.Module, "function", refuse)
    assert resolved(printed) == first
    printed.process.communicate()


def resolved(printed: Printed) -> tuple[Frame, ...]:
    resolver = Resolver(printed.process.pid)
    resolver.frames(printed.address)
    assert resolver.wait()
    resolver.close()  # new results are stored before the queue is empty
    return resolver.frames(printed.address)


def refuse(*arguments: object) -> None:
    raise AssertionError("this takes long")


def test_circular_references_between_names_end() -> None:
    class Circle:
        def follow(self, origin: object) -> tuple[Circle, int]:
            return self, 5

        def entry(self, offset: int) -> dict[int, tuple[int, int]]:
            return {abbrevs.ABSTRACT_ORIGIN: (abbrevs.FORM_REF_ADDR, 5)}

    circle: Any = Circle()
    assert function_name(circle, (abbrevs.FORM_REF_ADDR, 5)) == ""
