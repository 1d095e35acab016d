"""The user's own rules for idle waits: those of the command line, then those of a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from locktop.collector.analysis.idle import rules
from locktop.collector.analysis.idle.rules import IdleRule, Rules
from locktop.collector.config import user_file
from locktop.collector.errors import LocktopError

__all__ = ["Rules", "load", "path"]


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
        return Rules((*map(rules.matching, matching), *_parse_file(path())))
    except ValueError as error:
        raise LocktopError(str(error)) from None


def _parse_file(path: Path) -> tuple[IdleRule, ...]:
    try:
        text = user_file.read(path).decode("utf-8-sig")
    except user_file.FileMissingError:
        return ()
    except UnicodeDecodeError:
        raise LocktopError(f"{path} is not text in UTF-8") from None
    return rules.parse(text, str(path))
