"""The user's own rules for idle waits: those of the command line, then those of a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from locktop.collector.analysis.idle import rules
from locktop.collector.analysis.idle.rules import IdleRule, Rules
from locktop.collector.errors import LocktopError

__all__ = ["Rules", "load", "path"]

#: In bytes; no user writes so many rules.
_MAX_BYTES = 1 << 20


def path() -> Path:
    """Return the path of the user's file, which need not exist."""
    import platformdirs

    directory = platformdirs.user_config_dir("locktop", appauthor=False)
    return Path(directory) / "idle.rules"


def load(matching: Sequence[str] = ()) -> Rules:
    """Return the user's rules, followed by the shipped rules.

    Args:
        matching: The values of the option ``--idle-matching``.

    Raises:
        LocktopError: A rule is malformed, or the file cannot be read.
    """
    try:
        return Rules((*map(rules.matching, matching), *_of_file(path())))
    except ValueError as error:
        raise LocktopError(str(error)) from None


def _of_file(path: Path) -> tuple[IdleRule, ...]:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError as error:
        if not _exists(path):
            return ()
        raise LocktopError(f"cannot read {path}: {error.strerror}") from None
    try:
        with os.fdopen(descriptor, "rb") as file:
            data = file.read(_MAX_BYTES + 1)
            text = (data or b"").decode("utf-8-sig")
    except OSError as error:
        raise LocktopError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise LocktopError(f"{path} is not text in UTF-8") from None
    if len(text) > _MAX_BYTES:
        raise LocktopError(f"{path} is larger than {_MAX_BYTES >> 20} MB")
    return rules.parse(text, str(path))


def _exists(path: Path) -> bool:
    """Return whether the file exists, as far as this user may know.

    A directory that may not be entered is another user's. HOME may name such a directory after a
    change of user; its rules are not this user's rules.
    """
    try:
        path.lstat()
    except OSError:
        return False
    return True
