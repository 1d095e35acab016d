"""Choices that the user made on the screen, kept for the next start: columns and saved views.

The file is in the user's folder for states, for the file of settings is the user's own. A setting
goes before a kept choice.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from locktop.collector.config import user_file
from locktop.collector.config.settings import SavedView
from locktop.collector.errors import LocktopError
from locktop.collector.render.files import write_file

#: A file with more saved views is not ours.
_MAX_VIEWS = 200


class KeptChoices(Struct, frozen=True):
    """The choices by list and by name."""

    columns: Mapping[str, tuple[str, ...]] = {}  # titles by list
    views: Mapping[str, SavedView] = {}


def path() -> Path:
    """Return the path of the file, which need not exist."""
    import platformdirs

    return Path(platformdirs.user_state_dir("locktop", appauthor=False)) / "choices.json"


def load() -> tuple[KeptChoices, str]:
    """Return the choices, and a message if the file cannot be read; "" if nothing is wrong."""
    file = path()
    try:
        choices = msgspec.json.decode(user_file.read(file), type=KeptChoices)
    except user_file.FileMissingError:
        return KeptChoices(), ""
    except (LocktopError, msgspec.MsgspecError, RecursionError) as error:
        return KeptChoices(), f"{file}: no choices are kept there: {error}"
    if len(choices.views) > _MAX_VIEWS:
        return KeptChoices(), f"{file}: no choices are kept there: more than {_MAX_VIEWS} views"
    return choices, ""


def keep_columns(name: str, titles: tuple[str, ...]) -> None:
    """Keep the columns of a list; none: as many as fit.

    Raises:
        NotWrittenError: the file cannot be written.
        LocktopError: the file has something else.
        OSError: there is no folder for the file.
    """
    kept = _present()
    columns = {key: value for key, value in kept.columns.items() if key != name}
    _save(replace(kept, columns=columns | ({name: titles} if titles else {})))


def keep_view(name: str, view: SavedView | None) -> None:
    """Keep a view under a name; None: forget the view of that name.

    Raises:
        NotWrittenError: the file cannot be written.
        LocktopError: the file has something else, or too many views.
        OSError: there is no folder for the file.
    """
    kept = _present()
    views = {key: value for key, value in kept.views.items() if key != name}
    _save(replace(kept, views=views | ({name: view} if view is not None else {})))


def _present() -> KeptChoices:
    """The choices to change. A file that cannot be read may have choices, so it is not replaced."""
    kept, problem = load()
    if problem:
        raise LocktopError(problem)
    return kept


def _save(kept: KeptChoices) -> None:
    file = path()
    if len(kept.views) > _MAX_VIEWS:
        raise LocktopError(f"{file} has {_MAX_VIEWS} views already: forget one first")
    above = next(folder for folder in file.parents if folder.exists())
    if above.stat().st_uid != os.geteuid():  # as under sudo, which may keep the user's HOME
        raise LocktopError(f"{above} belongs to another user")
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_file(file, msgspec.json.format(msgspec.json.encode(kept)) + b"\n", replace=True)
