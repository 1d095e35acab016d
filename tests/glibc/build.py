"""glibc's own thread tests, compiled against the installed glibc.

Debian's package glibc-source has them. The tests expect a build inside glibc. So this
module first builds glibc's support library, and thin headers (stand_in/) replace the headers that
only glibc itself has.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from glibc.particulars import copies_of, flags_of, particular

PACKAGE = Path("/usr/src/glibc")
HERE = Path(__file__).resolve().parent
STAND_IN = HERE / "stand_in"
BUILD = HERE.parents[1] / "build" / "glibc"
BIN = BUILD / "bin"

#: The directories of thread tests in glibc's source; the later one wins for equal names.
DIRECTORIES = ("rt", "nptl", "sysdeps/nptl", "sysdeps/pthread")
#: Further include directories of the source, searched after the system's own headers.
INCLUDED = (
    *DIRECTORIES,
    "include",
    "sysdeps/unix/sysv/linux",
    "sysdeps/x86_64",
    "sysdeps/x86",
    "sysdeps/generic",
    "support",
    "",
)
#: The parts of the source that contain all these directories.
UNPACKED = {
    *("nptl", "rt", "include", "sysdeps", "support", "posix", "malloc", "elf", "locale"),
    "argp",
    "test-skeleton.c",
}

#: A shared library that a test opens.
MODULE = re.compile(r"mod[0-9a-z]*$")
#: A module, a part of a test, or a static program, which never loads a preloaded library.
NO_TEST = re.compile(rf"{MODULE.pattern}|aux$|-common$|-static$")
#: Files of the support library that are programs or serve a time_t of 32 bits only.
NO_SUPPORT = re.compile(
    r"^(?!support_test_main$).*main$|^test-|^tst-|container$|^links-|path_support"
)

#: The installation paths that glibc's build passes to its support library.
PATHS = {
    "OBJDIR": "/tmp",
    "SRCDIR": "/tmp",
    "OBJDIR_ELF_LDSO": "/lib64/ld-linux-x86-64.so.2",
    "BINDIR": "/usr/bin",
    "SBINDIR": "/usr/sbin",
    "ROOTSBINDIR": "/sbin",
    "INSTDIR": "/",
    "LIBDIR": "/usr/lib",
    "LOCALEDIR": "/usr/share/locale",
    "COMPLOCALEDIR": "/usr/lib/locale",
    "SLIBDIR": "/lib",
    "SYSDIR": "/",
}


class NoSourceError(Exception):
    """The package glibc-source is not installed."""


class CompilerError(Exception):
    """The compiler failed; the message is its first error."""


@dataclass(frozen=True)
class Built:
    """The result of a build."""

    programs: dict[str, Path]
    errors: dict[str, str]
    """The compiler's first error for each test that does not compile."""


def build(names: Iterable[str] | None = None) -> Built:
    """Compile the tests ``names``, or all tests.

    Raises:
        NoSourceError: the package glibc-source is not installed.
        CompilerError: a part that all tests need does not compile.
    """
    source = unpacked()
    files = sources(source)
    compiler = Compiler(source, files)
    tests = sorted(names or (name for name in files if not NO_TEST.search(name)))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        compiler.support_library(pool)
        compiler.modules()
        found = dict(zip(tests, pool.map(compiler.program, tests), strict=True))
    return Built(
        {name: result for name, result in found.items() if isinstance(result, Path)},
        {name: result for name, result in found.items() if isinstance(result, str)},
    )


def unpacked() -> Path:
    """Unpack glibc's source, and return its directory.

    Removes programs that another source or other rules of this package made.

    Raises:
        NoSourceError: the package glibc-source is not installed.
    """
    archives = sorted(PACKAGE.glob("glibc-*.tar.*"))
    if not archives:
        raise NoSourceError(f"no glibc-*.tar.* in {PACKAGE}; install glibc-source")
    rules = [*sorted(STAND_IN.rglob("*.h")), HERE / "build.py", HERE / "particulars.py"]
    digest = hashlib.sha256(archives[-1].name.encode())
    for path in rules:
        digest.update(path.read_bytes())
    made_by = BUILD / "made-by"
    if not made_by.exists() or made_by.read_text() != digest.hexdigest():
        shutil.rmtree(BUILD, ignore_errors=True)
        with tarfile.open(archives[-1]) as archive:
            wanted = (file for file in archive if file.name.split("/")[1] in UNPACKED)
            archive.extractall(BUILD, wanted, filter="data")
        made_by.write_text(digest.hexdigest())
    return BUILD / archives[-1].name.partition(".tar")[0]


def sources(source: Path) -> dict[str, Path]:
    """Return the source file of each test, module and part of a test, by name."""
    return {
        path.stem: path
        for directory in DIRECTORIES
        for path in sorted((source / directory).glob("tst-*.c*"))
    }


class Compiler:
    """Compiles all programs and libraries that do not exist yet."""

    def __init__(self, source: Path, files: dict[str, Path]) -> None:
        self.source = source
        self.files = files
        self.library = BIN / "libsupport.a"
        self.flags = [
            *("-w", "-O1", "-D_GNU_SOURCE"),
            *("-include", str(STAND_IN / "prelude.h"), f"-I{STAND_IN}"),
            *(f"-idirafter{source / directory}" for directory in INCLUDED),
        ]

    def support_library(self, pool: ThreadPoolExecutor) -> None:
        """Build the library that every test is linked with. Raises CompilerError."""
        files = (self.source / "support").glob("*.c")
        objects = pool.map(
            self._support, (file for file in sorted(files) if not NO_SUPPORT.search(file.stem))
        )
        if not self.library.exists():
            self._run("ar", "rcs", self.library, *objects)

    def _support(self, file: Path) -> Path:
        output = BIN / "support" / f"{file.stem}.o"
        paths = [f'-D{name}_PATH="{path}"' for name, path in PATHS.items()]
        if not output.exists():
            self._compile(file, output, "-c", "-fexceptions", *paths)
        return output

    def modules(self) -> None:
        """Build the shared libraries that tests open. Raises CompilerError."""
        for name in sorted(filter(MODULE.search, self.files)):  # later modules need earlier ones
            output = BIN / f"{name}.so"
            if not output.exists():
                flags = ("-shared", "-fPIC", f"-Wl,-soname,{name}.so", *flags_of(name))
                self._compile(self.files[name], output, *flags, *self._parts(name))
                for copy in copies_of(name):
                    shutil.copyfile(output, BIN / copy)

    def program(self, name: str) -> Path | str:
        """Return the program of a test, or the compiler's error."""
        output = BIN / name
        try:
            if not output.exists():
                flags = ("-rdynamic", *flags_of(name), "-pthread")
                parts = (*self._parts(name), self.library)
                self._compile(self.files[name], output, *flags, *parts)
        except CompilerError as error:
            return str(error)
        return output

    def _parts(self, name: str) -> list[Path]:
        parts = particular(name).parts
        return [BIN / f"{part}.so" if MODULE.search(part) else self.files[part] for part in parts]

    def _compile(self, file: Path, output: Path, *more: str | Path) -> None:
        compiler, standard = ("c++", "gnu++17") if file.suffix == ".cc" else ("cc", "gnu11")
        output.parent.mkdir(parents=True, exist_ok=True)
        self._run(compiler, f"-std={standard}", *self.flags, file, "-o", output, *more)

    def _run(self, *command: str | Path) -> None:
        if shutil.which(command[0]) is None:
            raise CompilerError(f"{command[0]} is missing")
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode:
            lines = [line for line in run.stderr.splitlines() if "error" in line or "undef" in line]
            raise CompilerError((lines or run.stderr.splitlines() or ["it failed"])[0])
