"""The directories where locktop keeps files of a user between two runs."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from locktop.collector.errors import LocktopError


def private_directory(purpose: str, name: str) -> Path:
    """Return a directory that belongs to this user alone; make it if it does not exist.

    The directory is in the user's runtime directory, else in the cache directory.

    Args:
        purpose: names the files in an error.
        name: the directory inside of the cache of locktop.

    Raises:
        LocktopError: there is no such directory.
    """
    wanted = os.environ.get("XDG_RUNTIME_DIR", "") or f"/run/user/{os.geteuid()}"
    directories = []
    if os.path.isabs(wanted) and os.path.isdir(wanted):
        directories.append(Path(wanted) / "locktop")
    import platformdirs

    directories.append(Path(platformdirs.user_cache_dir("locktop", appauthor=False)) / name)
    for directory in directories:
        if _is_own(directory):
            return directory
    raise LocktopError(f"there is no directory for {purpose}: {directories[-1]} cannot be used")


def _is_own(directory: Path) -> bool:
    """Make a directory, and return whether nobody else can write there."""
    if not directory.is_absolute():
        return False
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        about, above = directory.lstat(), directory.parent.stat()
    except OSError:
        return False
    is_closed = stat.S_ISDIR(about.st_mode) and not about.st_mode & 0o022
    # With sudo the variables may name a directory of another user.
    return is_closed and about.st_uid == os.geteuid() and above.st_uid in (0, os.geteuid())
