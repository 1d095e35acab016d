"""Requirements of tests: programs, and packages with debug information."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import NoReturn

import pytest

#: Tests of this machine's C library need its functions' names and lines.
LIBC_DEBUG = "libc6-dbg"
#: The module of the C library. Without LIBC_DEBUG only the functions that it exports have names.
LIBC = "libc.so.6"
_PREFIX = "apt-get install "
#: Debian's packages of programs that have another name.
_PACKAGES = {
    "aarch64-linux-gnu-gcc": "gcc-aarch64-linux-gnu",
    "addr2line": "binutils",
    "c++": "g++",
    "cc": "gcc",
    "dwp": "binutils",
    "llvm-dwp": "llvm",
    "nm": "binutils",
    "objcopy": "binutils",
}


def command(name: str, package: str = "", optional: bool = False) -> Path:
    """Return the path of an installed program, or skip the test; in CI the test fails instead.

    Args:
        name: the program.
        package: Debian's package of the program, if its name is another one.
        optional: Whether the test may be skipped in CI, too.
    """
    path = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if path is None:
        missing(name, package or _PACKAGES.get(name, name), optional)
    return Path(path)


def libc_debug() -> None:
    """Skip the test if there is no debug information of the C library."""
    if not any(Path("/usr/lib/debug/.build-id").glob("*/*.debug")):
        missing("debug information of the C library", LIBC_DEBUG)


def missing(what: str, package: str, optional: bool = False) -> NoReturn:
    """Skip a test that needs something of a package; in CI the test fails, if it is no option."""
    reason = f"{what} is missing: {_PREFIX}{package}"
    if os.environ.get("CI") == "true" and not optional:
        pytest.fail(reason)
    pytest.skip(reason)


def right_to_mount() -> None:
    """Skip a test that mounts a file system in user space, without root or the kernel's part."""
    if os.geteuid() or not os.access("/dev/fuse", os.W_OK):
        pytest.skip("a mount of a file system in user space needs root and /dev/fuse")


def packages(reasons: list[str]) -> list[str]:
    """Return the packages that these reasons of skipped tests name, sorted."""
    return sorted({
        name
        for reason in reasons
        if _PREFIX in reason
        for name in reason.partition(_PREFIX)[2].split()
    })  # fmt: skip
