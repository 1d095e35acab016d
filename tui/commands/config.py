"""``locktop config``: the settings and where each comes from, and a file to begin with."""

from __future__ import annotations

import argparse

from locktop.collector.errors import LocktopError, reason_of

NAME = "config"
GROUP = "control"
HELP = "the settings, where each comes from, and a file to begin with"
DESCRIPTION = """\
Prints all settings as TOML, each with the layer that it comes from. Options go before environment
variables (LOCKTOP_THEME and so on), these before the file, and that before what is built in. A
wrong setting is left out with a message, and the others count."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--init", action="store_true", help="write a file that explains each field")
    says = "print a file with the keys of all actions, to change for the setting keymap"
    which.add_argument("--keys", action="store_true", help=says)
    which.add_argument("--path", action="store_true", help="print the path of the file")


def execute(arguments: argparse.Namespace) -> int:
    """Print the settings or the keys, or write the file; status 2 if a setting is wrong."""
    from locktop.collector.config import settings

    if arguments.path:
        print(settings.path())
        return 0
    if arguments.init:
        return _init()
    if arguments.keys:
        from locktop.tui import keymap

        print(keymap.template(), end="")
        return 0
    loaded = settings.load()
    print(f"# {settings.path()}")
    print(settings.toml_text(loaded), end="")
    # The command line has said the problems.
    return 2 if loaded.problems else 0


def _init() -> int:
    from locktop.collector.config import settings
    from locktop.collector.render import files

    path = settings.path()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_file(path, settings.template().encode(), replace=False)
    except files.NotWrittenError as error:
        text = f"{path} exists already; edit that file" if path.exists() else str(error)
        raise LocktopError(text) from None
    except OSError as error:
        raise LocktopError(f"{path}: {reason_of(error)}") from None
    print(path)
    return 0
