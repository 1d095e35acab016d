"""The user's own rules for idle waits: of the command line first, then of a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from locktop.collector.analysis.idle import rules
from locktop.collector.analysis.idle.rules import Rule, Rules
from locktop.collector.errors import LocktopError

__all__ = ["Rules", "load", "path"]

#: Far more than anybody writes.
_LARGEST = 1 << 20


def path() -> Path:
    """Where the user's file is looked for."""
    import platformdirs

    told = platformdirs.user_config_dir("locktop", appauthor=False)
    return Path(told) / "idle.rules"


def load(matching: Sequence[str] = ()) -> Rules:
    """Return the rules to go by; ``matching`` is what was given as ``--idle-matching``.

    Raises LocktopError where a rule is malformed or the file cannot be read.
    """
    return Rules((*map(rules.matching, matching), *_of_file(path())))


def _of_file(path: Path) -> tuple[Rule, ...]:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError as error:
        if not _is_there(path):
            return ()
        raise LocktopError(f"cannot read {path}: {error.strerror}") from None
    try:
        with os.fdopen(descriptor, "rb") as file:
            data = file.read(_LARGEST + 1)
            text = (data or b"").decode("utf-8-sig")
    except OSError as error:
        raise LocktopError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise LocktopError(f"{path} is not text in UTF-8") from None
    if len(text) > _LARGEST:
        raise LocktopError(f"{path} is larger than {_LARGEST >> 20} MB")
    return rules.parse(text, str(path))


def _is_there(path: Path) -> bool:
    """Not where its directory may not be entered: that is another user's, as HOME may be after a
    change of user, and so would the rules be."""
    try:
        path.lstat()
    except OSError:
        return False
    return True
