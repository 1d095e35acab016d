"""The environment and the files that a program needs to start with the library."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from locktop.collector.errors import LocktopError
from locktop.collector.sources import levels


def library(flavour: str = "") -> Path:
    """Return the path of liblocktop.so, or of ``liblocktop-FLAVOUR.so``.

    Raises:
        LocktopError: this installation has no such library.
    """
    return _installed_path("lib", f"liblocktop-{flavour}.so" if flavour else "liblocktop.so")


def include_directory() -> Path:
    """Return the directory of locktop.h.

    Raises:
        LocktopError: this installation has no such file.
    """
    return _installed_path("include", "locktop.h").parent


def link_flags() -> tuple[str, ...]:
    """Return the flags with which a compiler links a program with the library.

    The program then loads the library without any environment variable. Its references to the
    functions of locktop.h are weak, so a linker with ``--as-needed`` would leave the library out.

    Raises:
        LocktopError: this installation has no library.
    """
    directory = _installed_path("lib", "liblocktop.so").parent
    return (f"-L{directory}", f"-Wl,-rpath,{directory}", "-Wl,--no-as-needed", "-llocktop")


def _installed_path(kind: str, name: str) -> Path:
    import locktop

    for directory in locktop.__path__:
        path = Path(directory) / kind / name
        if path.is_file():
            return path.resolve()
    raise LocktopError(f"{name} is missing from this installation; install locktop again")


def preload_environment(level: str | None = None, preloaded: str | None = None) -> dict[str, str]:
    """Return the variables that make a program load the library, beside the present ones.

    Args:
        level: one of levels.NAMES; None: the library's default.
        preloaded: what LD_PRELOAD keeps; None: its present content.

    Raises:
        LocktopError: there is no such level, or LD_PRELOAD cannot hold the library's path.
    """
    path = str(library())
    if any(character in path for character in ": ;\t\n"):
        raise LocktopError(
            f"the library's path has a blank or a colon, which LD_PRELOAD cannot hold: {path}"
        )
    if preloaded is None:
        preloaded = os.environ.get("LD_PRELOAD", "")
    others = preloaded.replace(":", " ").split()
    environment = {"LD_PRELOAD": ":".join([path, *(name for name in others if name != path)])}
    if level is not None:
        if level not in levels.NAMES:
            raise LocktopError(f"no such level: {level}; it is one of {', '.join(levels.NAMES)}")
        environment["LOCKTOP_LEVEL"] = level
    return environment


def check_program(command: list[str]) -> str:
    """Return the path of the executable that ``command`` names.

    Raises:
        LocktopError: the program does not exist, or cannot take a preloaded library.
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
    """A name with a slash is a path. For other names only programs in PATH count."""
    if os.path.dirname(name):
        if os.path.isdir(name):
            return f"{name} is a directory"
        if os.path.exists(name):
            return f"{name} is not executable"
    return f"no such program: {name}"
