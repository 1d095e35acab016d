"""The programs of the proof: a library of locks at a level of optimisation, or a Python."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from support import requirements
from support.pythons import all_pythons, is_free_threaded, version
from support.targets import Compiler, source_of

_CRATES = Path("/usr/share/cargo/registry")  # Debian's packages of crates
_CRATES_PACKAGE = "librust-parking-lot-dev"
LEVELS = ("-O0", "-O2")
_PROJECT = """
[package]
name = "crates"
version = "0.1.0"
[lib]
path = "empty.rs"
[dependencies]
parking_lot = "0.12"
[profile.dev]
opt-level = {level}
"""
_OFFLINE = f"""
[source.crates-io]
replace-with = "installed"
[source.installed]
directory = "{_CRATES}"
"""


class Library(Struct, frozen=True):
    """Locks of one library, which name no holder."""

    name: str
    package: str = ""  # of Debian, if the library may be missing
    header: str = ""
    flags: tuple[str, ...] = ()
    language: str = "cxx"
    levels: tuple[str, ...] = LEVELS  # of optimisation, or versions of Python


#: The command of a program; a scenario is its argument.
Command = tuple[str | Path, ...]


def _pythons() -> Mapping[str, str]:
    """Return the paths of interpreters by version; "system" follows that of the system."""
    pythons: dict[str, str] = {}
    for path in all_pythons():
        major, minor = version(path)
        threaded = "t" if is_free_threaded(path) else ""
        system = " system" if path.startswith("/usr/bin/") else ""
        pythons.setdefault(f"{major}.{minor}{threaded}{system}", path)
    return dict(sorted(pythons.items(), key=lambda item: version(item[1])))


PYTHONS = _pythons()
_LIBRARIES = "/usr/lib/x86_64-linux-gnu"
_QT = "/usr/include/x86_64-linux-gnu/qt5"
LIBRARIES = (
    Library("std", language="rust"),
    Library("parking_lot", _CRATES_PACKAGE, language="rust"),
    Library("absl", "libabsl-dev", "/usr/include/absl/synchronization/mutex.h",
            ("-labsl_synchronization", "-labsl_base")),
    Library("qt", "qtbase5-dev", f"{_QT}/QtCore/QMutex",
            (f"-I{_QT}", f"-I{_QT}/QtCore", "-fPIC", "-lQt5Core")),
    Library("semaphore"),
    Library("glib", "libglib2.0-dev", "/usr/include/glib-2.0/glib.h",
            ("-I/usr/include/glib-2.0", f"-I{_LIBRARIES}/glib-2.0/include", "-lglib-2.0")),
    Library("tbb", "libtbb-dev", "/usr/include/oneapi/tbb/mutex.h", ("-ltbb",)),
    Library("tbb_rw", "libtbb-dev", "/usr/include/oneapi/tbb/rw_mutex.h", ("-ltbb",)),
    Library("boost", "libboost-thread-dev", "/usr/include/boost/thread/shared_mutex.hpp",
            ("-lboost_thread",)),
    Library("openmp", flags=("-fopenmp",)),
    Library("futex"),
    Library("python", language="python", levels=tuple(PYTHONS)),
)  # fmt: skip


def program(library: Library, level: str, compiler: Compiler, sort: str = "holders") -> Command:
    """Return a program; skip the test if the library is missing.

    ``sort``: "holders" for the program with the scenarios, "healthy" for one without a deadlock.
    """
    target = f"{library.language}_{sort}"
    if library.language == "python":
        return PYTHONS[level], source_of(target)
    if library.header and not Path(library.header).exists():
        requirements.missing(library.name, library.package, optional=True)
    if library.language == "cxx":
        name = f"-DLOCKS_OF_{library.name.upper()}"
        return (compiler.program(target, level, name, *library.flags),)
    requirements.command("rustc", optional=True)
    rust_level = f"opt-level={level.removeprefix('-O')}"
    if library.name == "std":
        return (compiler.program(target, "-C", rust_level),)
    crates = _crates(compiler.directory / f"crates{level}", level)
    flags = ("-C", rust_level, "--cfg", "parking_lot", *_rust_flags(crates))
    return (compiler.program(target, *flags),)


def _rust_flags(crates: Path) -> Sequence[str]:
    (crate,) = crates.glob("libparking_lot-*.rlib")
    return ("-L", f"dependency={crates}", "--extern", f"parking_lot={crate}")


def _crates(directory: Path, level: str) -> Path:
    """Build parking_lot and what it needs, from Debian's sources; return the directory."""
    if not (_CRATES / "parking_lot-0.12.1").exists():
        requirements.missing("parking_lot", _CRATES_PACKAGE, optional=True)
    cargo = requirements.command("cargo", optional=True)
    if not directory.exists():
        (directory / ".cargo").mkdir(parents=True)
        (directory / ".cargo/config.toml").write_text(_OFFLINE)
        (directory / "Cargo.toml").write_text(_PROJECT.format(level=level.removeprefix("-O")))
        (directory / "empty.rs").write_text("")
        command = [str(cargo), "build", "--offline", "--quiet", "--target-dir", "built"]
        subprocess.run(command, check=True, cwd=directory)
    return directory / "built/debug/deps"


def scenarios(command: Command) -> Iterator[str]:
    """Yield the names of the scenarios of a program."""
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    yield from said.split()
