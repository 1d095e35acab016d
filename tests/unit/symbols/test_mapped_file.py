"""Mapped files that were deleted or replaced, or that only the process can see."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import elftools.dwarf.dwarfinfo
import pycxxfilt
import pytest
import zstandard
from support.rights import NOBODY, as_nobody

from locktop.collector.linux import procfs
from locktop.collector.symbols import mapped_file
from locktop.collector.symbols.memory_map import AddressSpace, Mapping, parse
from locktop.collector.symbols.resolver import Resolver
from locktop.collector.symbols.safe_open import open_regular

assert elftools
assert pycxxfilt
assert zstandard  # imported before the user changes to nobody, who cannot read them

PROGRAM = """\
#include <stdio.h>
void *in_the_library(void);
__attribute__((noinline)) static void *in_the_program(void)
{
    return __builtin_return_address(0);
}
int main(void)
{
    void *own = in_the_program();
    printf("%p %p\\n", own, in_the_library());
    fflush(stdout);
    return getchar();
}
"""
# Each build has another function at the same address.
LIBRARY = """\
__attribute__((noinline)) static void *inner(void)
{
    return __builtin_return_address(0);
}
void *in_the_library(void)
{
    return inner();
}
"""
OTHER = LIBRARY.replace("in_the_library", "of_another_build")


@dataclass(frozen=True)
class Installed:
    """A directory with the program and its library, and with other builds of both."""

    directory: Path

    @property
    def program(self) -> Path:
        return self.directory / "program"

    @property
    def library(self) -> Path:
        return self.directory / "libthing.so"

    @property
    def other(self) -> Path:
        return self.directory / "other.so"


@pytest.fixture
def installed() -> Iterator[Installed]:
    """A directory that every user may read, as directories of programs are."""
    directory = Path(tempfile.mkdtemp(prefix="locktop-test-"))
    directory.chmod(0o755)
    installed = Installed(directory)
    flags = ["-O1", "-fno-optimize-sibling-calls"]
    for name, source in (("program", PROGRAM), ("libthing", LIBRARY), ("other", OTHER)):
        (directory / f"{name}.c").write_text(source)
    for name in ("libthing", "other"):
        build(directory, *flags, "-shared", "-fPIC", "-o", f"{name}.so", f"{name}.c")
    rpath = f"-Wl,-rpath,{directory}"
    build(directory, *flags, "-o", "program", "program.c", "libthing.so", rpath)
    try:
        yield installed
    finally:
        shutil.rmtree(directory)


def build(directory: Path, *flags: str) -> None:
    subprocess.run(["cc", *flags], cwd=directory, check=True)


class Running:
    """The program, run by user nobody, and the two addresses that it printed."""

    def __init__(self, program: Path) -> None:
        who = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if _is_root() else {}
        self.process = subprocess.Popen(
            [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, **who
        )
        self.read_addresses()

    def read_addresses(self) -> None:
        assert self.process.stdout is not None
        printed = self.process.stdout.readline().split()
        assert len(printed) == 2, "the program did not start"
        self.program, self.library = (int(word, 16) for word in printed)

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate()

    def names(self) -> tuple[str, str, list[str]]:
        """The functions at the two addresses, and the notes."""
        resolver = Resolver(self.process.pid)
        for address in (self.program, self.library):
            resolver.frame(address)
        assert resolver.wait()
        found = [resolver.frame(address).function for address in (self.program, self.library)]
        resolver.close()
        return found[0], found[1], resolver.notes()


class Apart(Running):
    """The program in a mount namespace of its own, run by nobody after root has set it up."""

    def __init__(self, setup: str, program: Path | str, root: Path | str = "/") -> None:
        program = f"chroot --userspec={NOBODY}:{NOBODY} {root} {program}"
        self.process = subprocess.Popen(
            ["unshare", "-m", "sh", "-c", f"{setup} && exec {program}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.read_addresses()


def _is_root() -> bool:
    return os.geteuid() == 0


needs_root = pytest.mark.skipif(not _is_root(), reason="only root may do this")


def needs_mounts() -> None:
    tried = ["unshare", "-m", "mount", "-t", "tmpfs", "x", "/mnt"]
    if not _is_root() or subprocess.run(tried).returncode:
        pytest.skip("no mounts may be made here")


WHOLE = ("main", "in_the_library", [])


def test_user_nobody_reads_unchanged_files(installed: Installed) -> None:
    with Running(installed.program) as running:
        assert as_nobody(running.names) == WHOLE


@needs_root
def test_root_reads_deleted_and_replaced_files(installed: Installed) -> None:
    with Running(installed.program) as running:
        installed.library.unlink()
        installed.program.unlink()
        assert running.names() == WHOLE
        installed.other.rename(installed.library)
        shutil.copy("/bin/true", installed.program)
        assert running.names() == WHOLE


def test_a_deleted_library_gives_user_nobody_a_note(installed: Installed) -> None:
    with Running(installed.program) as running:
        installed.library.unlink()
        note = f"{installed.library} was deleted since the process started"
        printed = [f"{note}: its functions cannot be named"]
        assert as_nobody(running.names) == ("main", "", printed)


def test_a_replaced_library_gives_user_nobody_a_note(installed: Installed) -> None:
    with Running(installed.program) as running:
        installed.other.rename(installed.library)
        note = f"{installed.library} was replaced since the process started"
        printed = [f"{note}: its functions cannot be named"]
        assert as_nobody(running.names) == ("main", "", printed)


def test_user_nobody_reads_a_deleted_program(installed: Installed) -> None:
    with Running(installed.program) as running:
        installed.program.unlink()
        assert as_nobody(running.names) == WHOLE
        shutil.copy("/bin/true", installed.program)
        assert as_nobody(running.names) == WHOLE


def test_an_overwritten_library_is_read_with_its_new_content(installed: Installed) -> None:
    with Running(installed.program) as running:
        assert running.names() == WHOLE
        installed.library.write_bytes(installed.other.read_bytes())
        assert running.names()[1] == "of_another_build"


def test_another_file_at_the_same_path_of_the_host_is_not_read(installed: Installed) -> None:
    needs_mounts()
    inside = installed.directory / "inside.so"
    installed.library.rename(inside)
    shutil.copy(installed.other, installed.library)
    with Apart(f"mount --bind {inside} {installed.library}", installed.program) as running:
        assert as_nobody(running.names) == WHOLE
        assert running.names() == WHOLE


@pytest.mark.parametrize(
    "mount",
    ["mount --bind {root} {hidden}", "mount -t tmpfs x {hidden} && cp -a {root}/. {hidden}"],
)
def test_files_of_another_root_are_read(installed: Installed, mount: str) -> None:
    """The process has a root of its own, in a private mount, as in a container."""
    needs_mounts()
    root, hidden = installed.directory / "root", installed.directory / "hidden"
    hidden.mkdir()
    printed = subprocess.run(["ldd", installed.program], check=True, capture_output=True, text=True)
    for path in (str(installed.program), *re.findall(r"/\S+", printed.stdout)):
        (root / path[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, root / path[1:])
    setup = f"{mount.format(root=root, hidden=hidden)} && chmod 755 {hidden}"
    with Apart(setup, installed.program, root=hidden) as running:
        assert not list(hidden.iterdir())
        assert as_nobody(running.names) == WHOLE
        assert running.names() == WHOLE


def test_files_of_an_overlay_are_read(installed: Installed) -> None:
    """Device and inode of a mapping may differ from those of its file there."""
    needs_mounts()
    lower, empty, merged = (installed.directory / name for name in ("lower", "empty", "merged"))
    for directory in (lower, empty, merged):
        directory.mkdir()
    shutil.copy(installed.program, lower)
    setup = f"mount -t overlay x -o lowerdir={lower}:{empty} {merged}"
    if subprocess.run(["unshare", "-m", "sh", "-c", setup]).returncode:
        pytest.skip("no overlays here")
    with Apart(setup, merged / "program") as running:
        assert as_nobody(running.names) == WHOLE
        assert running.names() == WHOLE


def test_the_identity_of_a_file_is_that_of_its_mapping(installed: Installed) -> None:
    with Running(installed.program) as running:
        space = AddressSpace(parse(procfs.maps(running.process.pid)))
        mapping = space.find(running.library)
        assert mapping is not None
        file, other = open_regular(installed.library), open_regular(installed.other)
        assert file is not None
        assert other is not None
        assert mapped_file.identity_in_maps(file) == (mapping.device, mapping.inode)
        assert mapped_file.identity_in_maps(other) != (mapping.device, mapping.inode)


def test_a_file_is_mapped_once(installed: Installed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without this, each address of an unmapped file would map the file again."""
    other = open_regular(installed.other)
    assert other is not None
    printed = mapped_file.identity_in_maps(other)
    monkeypatch.setattr(procfs, "read", None)
    again = open_regular(installed.other)
    assert again is not None
    assert mapped_file.identity_in_maps(again) == printed


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/memfd:doublemapper", ""),
        ("/SYSV00000000", ""),
        ("/no/such/library.so", "was deleted since the process started"),
    ],
)
def test_only_a_file_can_be_deleted(path: str, why: str) -> None:
    mapping = Mapping(0x1000, 0x2000, True, 0, "00:01", 7, path, True)
    with pytest.raises(mapped_file.NotMapped) as raised:
        mapped_file.open_mapped(os.getpid(), mapping)
    assert str(raised.value) == why
