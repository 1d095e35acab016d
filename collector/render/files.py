"""Writing files: whole or not at all, and never over one that is there unless asked."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import stat
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from locktop.collector.errors import reason_of

_TRIES = 100


class NotWrittenError(Exception):
    """One line that says of the path given why nothing was written to it."""


def why_not(path: Path, replace: bool) -> str | None:
    """Why nothing may be written to ``path`` as things are, in one line; None when it may."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return None if path.parent.is_dir() else f"{path}: no such directory"
    except OSError as error:
        return f"{path}: {words(error)}"
    if stat.S_ISLNK(mode):
        return f"{path} is a symbolic link to {os.readlink(path)}; name that file itself"
    if stat.S_ISDIR(mode):
        return f"{path} is a directory; name a file in it"
    if _is_stream(mode):
        return None
    if not stat.S_ISREG(mode):
        return f"{path} is neither a file nor a pipe"
    return None if replace else f"{path} exists; --force writes over it"


def write_file(path: Path, data: bytes | Iterable[bytes], *, replace: bool = False) -> None:
    """Write ``data`` to ``path`` in one step, readable by its user only.

    A pipe or a character device is written to as it is. A file that is there is replaced if
    ``replace`` is true; a symbolic link never is. Raises NotWrittenError, and what the pieces of
    ``data`` raise.
    """
    pieces = (data,) if isinstance(data, bytes) else data
    reason = why_not(path, replace)
    if reason is not None:
        raise NotWrittenError(reason)
    try:
        if os.path.lexists(path) and _is_stream(path.lstat().st_mode):
            _write_into(path, pieces)
        else:
            _write_new(path, pieces, replace)
    except OSError as error:
        raise NotWrittenError(why_not(path, replace) or f"{path}: {words(error)}") from error


def _is_stream(mode: int) -> bool:
    return stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)


def _write_into(path: Path, pieces: Iterable[bytes]) -> None:
    # Never O_CREAT nor O_TRUNC, and no link: only what was looked at before.
    descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NOCTTY)
    with os.fdopen(descriptor, "wb") as file:
        if not _is_stream(os.fstat(descriptor).st_mode):
            raise FileExistsError(errno.EEXIST, "it changed meanwhile")
        file.writelines(pieces)


def _write_new(path: Path, pieces: Iterable[bytes], replace: bool) -> None:
    descriptor, name = tempfile.mkstemp(prefix=".locktop-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        if replace and os.path.lexists(path):
            if not stat.S_ISREG(path.lstat().st_mode):
                raise FileExistsError(errno.EEXIST, "it changed meanwhile")
            os.replace(name, path)
            return
        # A link fails where a rename would overwrite.
        os.link(name, path)
        os.unlink(name)
    except BaseException:
        _forget(name)
        raise


def words(error: OSError) -> str:
    """Return the system's reason in words, and a remedy if one is known. The path is left out,
    because the user may not have named it."""
    cure = "; make room there" if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
    return reason_of(error) + cure


def _forget(name: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name)


def encoded(text: str) -> bytes:
    """Return a text as UTF-8; a lone surrogate becomes an escape, which JSON knows too."""
    return text.encode("utf-8", "backslashreplace")


def encoded_json(document: dict[str, Any]) -> bytes:
    """Return a document as JSON text."""
    return encoded(json.dumps(document, indent=1, ensure_ascii=False) + "\n")


def plain_name(text: str) -> str:
    """Return a text as the name of a file: letters, digits, dots, dashes and underscores."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", text)


def save_new(name: str, suffix: str, data: bytes, directory: Path | None = None) -> Path:
    """Save to a new file in ``directory`` (default: the working directory), and return its path. If
    the name exists, the new name gets a number.

    Raises NotWrittenError.
    """
    root = directory or Path.cwd()
    for number in range(1, _TRIES):
        path = root / (f"{name}{suffix}" if number == 1 else f"{name}-{number}{suffix}")
        if os.path.lexists(path):
            continue
        try:
            write_file(path, data)
        except NotWrittenError:
            if os.path.lexists(path):
                continue
            raise
        return path
    raise NotWrittenError(f"{root}: too many files called {name}*")
