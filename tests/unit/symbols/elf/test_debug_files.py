"""Debug information in separate files: by build id, by link, by dwz."""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path

import pytest
from unit.builders.elf_program import (
    LINE_OF_LOCAL,
    LOCAL,
    Built,
    elf,
    file_and_line,
    name,
    need,
    opened,
    run,
)

from locktop.collector.symbols.dwarf.reader import Dwarf
from locktop.collector.symbols.elf import debug_files
from locktop.collector.symbols.elf.file import ElfFile


@pytest.mark.parametrize("where", ["of the target", "ours"])
def test_a_debug_file_is_found_by_its_build_id(built: Built, tmp_path: Path, where: str) -> None:
    root, other = tmp_path, tmp_path / "empty"
    built.separate(root / built.by_build_id)
    assert name(built.module(), built.addresses[LOCAL]) == ""
    roots = (root, other) if where == "of the target" else (other, root)
    found = built.module(*roots)
    assert name(found, built.addresses[LOCAL] + 1) == LOCAL
    assert file_and_line(found.locations(built.addresses[LOCAL])[0]) == ("program.c", LINE_OF_LOCAL)
    assert found.data(built.addresses["g_figures"]) is not None


@pytest.mark.parametrize("location", ["", ".debug", "usr/lib/debug/bin"])
@pytest.mark.parametrize("flag", ["-Wl,--build-id=none", "-Wl,--build-id=sha1"])
def test_a_debug_file_is_found_by_its_link(tmp_path: Path, location: str, flag: str) -> None:
    directory = tmp_path / "bin"
    directory.mkdir()
    built = Built(directory, flag)
    debug = (tmp_path if location.startswith("usr") else directory) / location / "program.debug"
    built.separate(debug)
    built.run("objcopy", f"--add-gnu-debuglink={debug}", built.path)
    found = built.module(tmp_path)
    assert name(found, built.addresses[LOCAL]) == LOCAL
    assert file_and_line(found.locations(built.addresses[LOCAL])[0]) == ("program.c", LINE_OF_LOCAL)
    if flag.endswith("none"):  # then only the checksum distinguishes builds
        debug.write_bytes(debug.read_bytes() + b"x")
        changed = built.module(tmp_path)
        assert name(changed, built.addresses[LOCAL]) == ""
        assert "program.debug is of another build than /bin/program: not used" in changed.note


@pytest.mark.parametrize("link", [False, True])
def test_a_debug_file_of_another_build_is_refused(tmp_path: Path, link: bool) -> None:
    other = Built(tmp_path, "-DOTHER", "-O0")
    debug = tmp_path / "program.debug"
    other.separate(debug)
    built = Built(tmp_path)
    built.run("strip", built.path)
    if link:
        built.run("objcopy", f"--add-gnu-debuglink={debug}", built.path)
    else:
        (tmp_path / built.by_build_id).parent.mkdir(parents=True)
        debug.rename(tmp_path / built.by_build_id)
    found = built.module(tmp_path)
    assert name(found, built.addresses[LOCAL]) == ""
    assert found.note.endswith(" is of another build than /program: not used")


def test_a_link_leads_to_no_other_directory(built: Built, tmp_path: Path) -> None:
    debug = tmp_path / "elsewhere" / "program.debug"
    built.separate(debug)
    built.run("objcopy", f"--add-gnu-debuglink={debug}", built.path)
    data = built.path.read_bytes()
    forged = data.replace(b"program.debug\0", b"../p/x.debug\0\0")
    assert forged != data
    checksum = struct.pack("<I", zlib.crc32(debug.read_bytes()))
    assert checksum in forged
    built.path.write_bytes(forged)
    (tmp_path / "p").mkdir()
    (tmp_path / "d").mkdir()  # without the directory, ".." leads nowhere
    debug.rename(tmp_path / "p" / "x.debug")
    assert debug_files.find(elf(built.path), "/d/program", [str(tmp_path)]) is None


@pytest.mark.parametrize("link", ["/usr/lib/debug/.dwz/common.debug", "common.debug"])
def test_debug_information_that_dwz_moved_is_read(tmp_path: Path, link: str) -> None:
    need("dwz")
    members = "".join(f"long member_{n}; " for n in range(30))
    many = "".join(f"struct s{n} {{ {members} }} v{n};\n" for n in range(60))
    for part in ("one", "two"):
        (tmp_path / part).mkdir()
        (tmp_path / part / "many.h").write_text(many)
    flags = ["-include", "many.h", "-gdwarf-4"]
    first, second = (
        Built(tmp_path / part, *flags, f"-ffile-prefix-map={tmp_path / part}=/source")
        for part in ("one", "two")
    )
    debug = tmp_path / first.by_build_id
    first.separate(debug)
    shared = tmp_path / link.removeprefix("/")
    shared.parent.mkdir(parents=True, exist_ok=True)
    name_in_it = link if link.startswith("/") else os.path.relpath(shared, debug.parent)
    run("dwz", "-m", shared, "-M", name_in_it, debug, second.path, cwd=tmp_path)
    assert b".gnu_debugaltlink" in debug.read_bytes()
    found = first.module(tmp_path)
    assert name(found, first.addresses[LOCAL]) == LOCAL
    assert file_and_line(found.locations(first.addresses[LOCAL])[0]) == ("program.c", LINE_OF_LOCAL)
    file = opened(debug)
    supplement = debug_files.supplement(ElfFile(file), file, [str(tmp_path), ""])
    assert supplement is not None
    origin = Dwarf(ElfFile(file), lambda _: "", supplement).find(first.addresses[LOCAL])
    assert origin[-1].function == LOCAL
    shared.unlink()  # the shared file is not installed: unshared information remains
    assert name(first.module(tmp_path), first.addresses[LOCAL]) == LOCAL
    first.module(tmp_path).locations(first.addresses[LOCAL])
