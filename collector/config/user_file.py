"""Reads a file that a user wrote, from a path where another user could have put one."""

from __future__ import annotations

import os
from pathlib import Path

from locktop.collector.errors import LocktopError, reason_of
from locktop.collector.linux import regular_file

#: In bytes; no user writes so many rules, suppressions or colours.
MAX_BYTES = 1 << 20


class FileMissingError(LocktopError):
    """There is no such file, or this user may not know of it."""


def read(path: Path, *, is_named: bool = False) -> bytes:
    """Return the content of a regular file of at most MAX_BYTES bytes.

    Args:
        path: The file.
        is_named: Whether the user named this file on the command line. Any other file must belong
            to the user or to root, and must not be a symbolic link.

    Raises:
        FileMissingError: There is no file.
        LocktopError: The file cannot be read, or is none of these.
    """
    owners = None if is_named else (0, os.geteuid())
    try:
        descriptor = regular_file.open_regular(
            path, owners=owners, max_bytes=MAX_BYTES, follow_link=is_named
        )
        with os.fdopen(descriptor, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        if not _exists(path):
            raise FileMissingError(f"there is no file {path}") from None
        reason = reason_of(error) if isinstance(error, OSError) else error
        raise LocktopError(f"cannot read {path}: {reason}") from None
    if len(data) > MAX_BYTES:
        raise LocktopError(f"cannot read {path}: larger than {MAX_BYTES} bytes")
    return data


def _exists(path: Path) -> bool:
    """Return whether the file exists, as far as this user may know.

    A directory that may not be entered is another user's. HOME may name such a directory after a
    change of user; its rules are not this user's rules.
    """
    try:
        path.lstat()
    except (OSError, ValueError):
        return False
    return True
