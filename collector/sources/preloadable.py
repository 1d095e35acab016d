"""Whether a program can take a preloaded library, from the head of its ELF file."""

from __future__ import annotations

import os
import stat
import struct
from pathlib import Path
from typing import BinaryIO

from locktop.collector.errors import LocktopError, reason_of
from locktop.collector.linux.regular_file import open_regular

_PT_INTERP = 3
_HEADER64 = struct.Struct("=HHIQQQIHHHHHH")  # e_type .. e_shstrndx, after e_ident
_PROGRAM64 = struct.Struct("=IIQQQQQQ")
_MAX_HEADERS = 512
_MAX_SCRIPT_DEPTH = 4  # the kernel follows about as many interpreters of scripts


def _open(path: str) -> BinaryIO:
    """Open a program. To open a FIFO of that name would wait for ever. Raises OSError."""
    return os.fdopen(open_regular(path, follow_link=True), "rb")


def is_of_32_bits(path: str) -> bool:
    """Return whether a file is a 32-bit program; False if it cannot be read."""
    try:
        with _open(path) as file:
            return file.read(5) == b"\x7fELF\1"
    except OSError:
        return False


def why_not_preloadable(path: str) -> str:
    """Return why the ELF file at ``path`` cannot take a preloaded library; "" if it can.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is no ELF file.
    """
    with _open(path) as file:
        ident = file.read(16)
        if ident[:4] != b"\x7fELF":
            raise ValueError("not an ELF file")
        if ident[4] != 2:
            return "it is a 32-bit program, and the library is a 64-bit one"
        return _why_not_elf64(file)


def _why_not_elf64(file: BinaryIO) -> str:
    data = file.read(_HEADER64.size)
    if len(data) < _HEADER64.size:
        raise ValueError("a truncated ELF file")
    header = _HEADER64.unpack(data)
    if header[1] != _own_machine():
        return "it is built for another kind of processor"
    interpreter = _interpreter(file, header[4], header[8], header[9])
    if interpreter is None:
        return "it is statically linked, so no library can be preloaded into it"
    if b"ld-musl" in interpreter:
        return "it is linked with musl, and the library needs glibc"
    return ""


def _interpreter(file: BinaryIO, offset: int, size: int, count: int) -> bytes | None:
    if size != _PROGRAM64.size or count > _MAX_HEADERS:
        raise ValueError("an ELF file with strange program headers")
    file.seek(offset)
    for entry in _PROGRAM64.iter_unpack(_exactly(file, size * count)):
        if entry[0] == _PT_INTERP:
            file.seek(entry[2])
            return file.read(min(entry[5], 4096)).rstrip(b"\0")
    return None


def _exactly(file: BinaryIO, size: int) -> bytes:
    data = file.read(size)
    if len(data) != size:
        raise ValueError("a truncated ELF file")
    return data


def _own_machine() -> int:
    with open("/proc/self/exe", "rb") as file:
        return int(struct.unpack_from("=H", file.read(20), 18)[0])


def interpreted_by(path: str) -> str:
    """Return the program that runs a script (its ``#!`` line), or ``path`` itself."""
    for _ in range(_MAX_SCRIPT_DEPTH):
        with _open(path) as file:
            first = file.readline(256)
        if not first.startswith(b"#!") or not first[2:].split():
            break
        words = [os.fsdecode(word) for word in first[2:].split()]
        path = words[0]
        if os.path.basename(path) == "env":
            path = _named_by_env(words[1:]) or path
    return path


def _named_by_env(words: list[str]) -> str | None:
    import shutil

    names = [word for word in words if not word.startswith("-") and "=" not in word]
    return shutil.which(names[0]) if names else None


def gains_privilege(path: str) -> bool:
    """Return whether the file changes its rights when it runs: then the loader drops LD_PRELOAD."""
    about = os.stat(path)
    if about.st_mode & stat.S_ISUID and about.st_uid != os.geteuid():
        return True
    if about.st_mode & stat.S_ISGID and about.st_gid != os.getegid():
        return True
    try:
        return bool(os.getxattr(path, "security.capability"))
    except OSError:
        return False


def check(path: str) -> None:
    """Check that the file can run with a preloaded library.

    Raises:
        LocktopError: the file cannot.
    """
    name = Path(path).name
    try:
        runner = interpreted_by(path)
        if gains_privilege(runner):
            raise LocktopError(
                f"{name} is setuid or has capabilities: the loader ignores a preloaded library"
                " there; run it as the user that it becomes"
            )
        reason = why_not_preloadable(runner)
    except ValueError:
        raise LocktopError(f"{name} is not a program that can be watched: {path}") from None
    except OSError as error:
        raise LocktopError(f"cannot read {path}: {reason_of(error)}") from None
    if reason:
        raise LocktopError(f"{name} cannot be watched: {reason}")
