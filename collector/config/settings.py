"""The user's settings: a TOML file, under the environment and under the options.

Each field of the file counts alone: a wrong one is a message, and the others stay.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from locktop.collector.config import user_file, user_toml
from locktop.collector.errors import LocktopError

_Word = Annotated[str, Meta(min_length=1)]


class SavedView(Struct, frozen=True, forbid_unknown_fields=True):
    """A view that the user saved under a name."""

    view: str = ""
    filter: str = ""
    sort: str = ""
    columns: tuple[_Word, ...] = ()


class Settings(Struct, frozen=True):
    """All settings. ``DESCRIPTIONS`` explains each field."""

    theme: _Word | None = None
    rate: Annotated[float, Meta(ge=0.1, le=10.0)] = 2.0
    history: _Word = "64M"
    view: _Word = "locks"
    sort: str = ""
    filter: str = ""
    columns: dict[str, tuple[_Word, ...]] = {}
    mouse: bool = False
    synchronized: bool | None = None
    keymap: str = ""
    idle_matching: tuple[_Word, ...] = ()
    suppressions: str = ""
    views: dict[str, SavedView] = {}


DESCRIPTIONS: dict[str, str] = {
    "theme": "The colours: a shipped theme or yours. Without this line the terminal decides.",
    "rate": "Snapshots a second, from 0.1 to 10.",
    "history": "The memory of the last 15 minutes: 1M to 16G, or 0 for none.",
    "view": "The first view of the screen.",
    "sort": "The figure by which lists are sorted at first.",
    "filter": "The filter of the lists at first.",
    "columns": "The columns of a list, by the name of the list: locks or threads.",
    "mouse": "Whether the terminal reports clicks. Then selecting text needs the Shift key.",
    "synchronized": "Whether updates are synchronized. Without this line: not in tmux or screen.",
    "keymap": "A file with keys of your own: see `locktop config --keys`.",
    "idle_matching": "Functions below which waits are for work, as --idle-matching.",
    "suppressions": "A file with potential deadlocks to leave out.",
    "views": "Saved views: [views.NAME] with view, filter, sort and columns.",
}
#: An example of each field whose default says nothing.
_EXAMPLES: dict[str, str] = {
    "theme": 'theme = "night"',
    "sort": 'sort = "wait"',
    "filter": 'filter = "cache"',
    "synchronized": "synchronized = true",
    "columns": 'columns = { locks = ["LOCK", "WAITERS", "WAIT/s"] }',
    "keymap": 'keymap = "~/.config/locktop/keymap.toml"',
    "idle_matching": 'idle_matching = ["my_pool_take*"]',
    "suppressions": 'suppressions = "~/.config/locktop/suppressions"',
    "views": '[views.slow]\n#filter = "cache"\n#sort = "wait"',
}
#: The environment variable of a field is this and the field in upper case. Fields with tables have
#: none.
_PREFIX = "LOCKTOP_"
FROM_ENVIRONMENT = (
    "theme",
    "rate",
    "history",
    "view",
    "sort",
    "filter",
    "mouse",
    "synchronized",
    "keymap",
)


class Origin(Enum):
    """The layer that a value comes from."""

    BUILT_IN = "built in"
    FILE = "file"
    ENVIRONMENT = "environment"


class LoadedSettings(Struct, frozen=True):
    """The settings, their layers, and what was wrong."""

    settings: Settings
    origins: dict[str, Origin]  # by field
    problems: tuple[str, ...]  # one line each


def path() -> Path:
    """Return the path of the user's file, which need not exist."""
    import platformdirs

    return Path(platformdirs.user_config_dir("locktop", appauthor=False)) / "config.toml"


def load(environ: Mapping[str, str] = os.environ) -> LoadedSettings:
    """Return the settings of the file and the environment. Nothing wrong raises an exception."""
    problems: list[str] = []
    origins = dict.fromkeys(Settings.__struct_fields__, Origin.BUILT_IN)
    values: dict[str, Any] = {}
    file = path()
    for field, value in _table(file, problems).items():
        if _take(field, value, str(file), values, problems):
            origins[field] = Origin.FILE
    for field in FROM_ENVIRONMENT:
        name = _PREFIX + field.upper()
        if name in environ and _take(field, environ[name], name, values, problems, is_text=True):
            origins[field] = Origin.ENVIRONMENT
    return LoadedSettings(Settings(**values), origins, tuple(problems))


def _table(file: Path, problems: list[str]) -> dict[str, Any]:
    try:
        return user_toml.loads(user_file.read(file).decode("utf-8-sig"))
    except user_file.FileMissingError:
        return {}
    except LocktopError as error:
        problems.append(str(error))
    except UnicodeDecodeError:
        problems.append(f"{file} is not text in UTF-8, and is left out")
    except user_toml.NoTomlError as error:
        problems.append(f"{file} is no TOML, and is left out: {error}")
    return {}


def _take(
    field: str,
    value: object,
    origin: str,
    values: dict[str, Any],
    problems: list[str],
    is_text: bool = False,
) -> bool:
    """Put a value into ``values``, or a message into ``problems``; return whether it is right."""
    types = {field_info.name: field_info.type for field_info in msgspec.structs.fields(Settings)}
    if field not in types:
        problems.append(f"{origin}: there is no setting {field!r}; `locktop config` lists them")
        return False
    try:
        values[field] = msgspec.convert(value, types[field], strict=not is_text)
    except msgspec.ValidationError as error:
        text = str(error)
        problems.append(f"{origin}: {field}: {text[:1].lower()}{text[1:]}")
        return False
    return True


def template() -> str:
    """Return the file that ``locktop config --init`` writes: each field, explained and off."""
    parts = ["# Settings of locktop. Take away the # before a setting to change it.\n"]
    defaults = msgspec.to_builtins(Settings())
    for field, text in DESCRIPTIONS.items():
        example = _EXAMPLES.get(field) or f"{field} = {_toml(defaults[field])}"
        parts.append(f"# {text}\n#{example}\n")
    return "\n".join(parts)


def toml_text(loaded: LoadedSettings) -> str:
    """Return the settings as TOML, each with its layer as a comment."""
    lines = []
    for field, value in msgspec.to_builtins(loaded.settings).items():
        origin = loaded.origins[field].value
        if value is None:
            lines.append(f"# {field}: the terminal decides ({origin})")
        else:
            lines.append(f"{field} = {_toml(value)}  # {origin}")
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    """A value as TOML in one line. Strings of JSON are strings of TOML."""
    if isinstance(value, Mapping):
        parts = (f"{_toml(str(key))} = {_toml(item)}" for key, item in value.items())
        return f"{{ {', '.join(parts)} }}" if value else "{}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_toml, value))}]"
    return msgspec.json.encode(value).decode()
