"""Starting programs with the library: where it is, what the environment must hold."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from locktop.collector.errors import LocktopError
from locktop.collector.sources import levels


def library(flavour: str = "") -> Path:
    """Return the path of liblocktop.so, or of ``liblocktop-FLAVOUR.so``.

    Raises LocktopError when this installation has none.
    """
    return _installed("lib", f"liblocktop-{flavour}.so" if flavour else "liblocktop.so")


def include_directory() -> Path:
    """Return the directory of locktop.h. Raises LocktopError when this installation has none."""
    return _installed("include", "locktop.h").parent


def _installed(kind: str, name: str) -> Path:
    import locktop

    for directory in locktop.__path__:
        path = Path(directory) / kind / name
        if path.is_file():
            return path.resolve()
    raise LocktopError(f"{name} is missing from this installation; install locktop again")


def preload_environment(level: str | None = None) -> dict[str, str]:
    """Return the variables that make a program load the library, beside the present ones.

    What LD_PRELOAD holds already is kept. ``level`` is one of levels.NAMES. Raises LocktopError.
    """
    path = str(library())
    if any(character in path for character in ": ;\t\n"):
        raise LocktopError(
            f"the library's path has a blank or a colon, which LD_PRELOAD cannot hold: {path}"
        )
    others = os.environ.get("LD_PRELOAD", "").replace(":", " ").split()
    environment = {"LD_PRELOAD": ":".join([path, *(name for name in others if name != path)])}
    if level is not None:
        if level not in levels.NAMES:
            raise LocktopError(f"no such level: {level}; it is one of {', '.join(levels.NAMES)}")
        environment["LOCKTOP_LEVEL"] = level
    return environment


def check_program(command: list[str]) -> str:
    """Return the path of the executable that ``command`` names.

    Raises LocktopError when it is not found or cannot take a preloaded library.
    """
    from locktop.collector.sources import preloadable

    if not command:
        raise LocktopError("no command given: locktop run -- COMMAND [ARGUMENT...]")
    path = shutil.which(command[0])
    if path is None:
        raise LocktopError(_why_not_found(command[0]))
    preloadable.check(path)
    return path


def _why_not_found(name: str) -> str:
    """A name with a slash is a path; others are looked for in PATH, where only programs count."""
    if os.path.dirname(name):
        if os.path.isdir(name):
            return f"{name} is a directory"
        if os.path.exists(name):
            return f"{name} is not executable"
    return f"no such program: {name}"
