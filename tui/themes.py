"""Themes: TOML files of this package and of the user, checked and converted for Textual.

A file has ``name``, ``title``, ``dark``, ``ansi`` and three tables. ``base`` has the colours that
Textual derives others from. ``screen`` has a colour for each style of views/styled_line.py.
``style`` has attributes such as bold, dim and reverse for the same names.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from locktop import themes
from locktop.collector.config import user_file, user_toml
from locktop.collector.errors import LocktopError
from locktop.tui.views.styled_line import STYLES

if TYPE_CHECKING:
    from rich.color import Color as RichColor
    from rich.style import Style
    from textual.theme import Theme

BASE = ("primary", "foreground", "background", "surface", "panel", "warning", "error", "success")
#: Colours beside those of the styles: backgrounds, and the cursor.
BACKGROUNDS = ("alert-back", "flag-back", "cursor", "cursor-back", "cursor-elsewhere-back")
SCREEN = (*STYLES, *BACKGROUNDS)
STYLED = (*STYLES, "cursor", "cursor-elsewhere")
PREFIX = "lt-"
#: Names of earlier versions, which theme files of users may still have.
_RENAMED = {"alarm": "alert", "alarm-back": "alert-back"}

#: The variables that Textual's widgets need of a theme in the terminal's colours.
_ANSI_VARIABLES = {
    "ansi-background": "ansi_black",
    "ansi-foreground": "ansi_white",
    "border-blurred": "ansi_black",
    "input-cursor-background": "ansi_default",
    "input-cursor-foreground": "ansi_default",
    "input-cursor-text-style": "reverse",
    "input-selection-background": "ansi_blue",
    "input-selection-foreground": "ansi_white",
    "screen-selection-background": "ansi_blue",
    "screen-selection-foreground": "ansi_white",
}


class ThemeError(Exception):
    """A theme file cannot be used; the text has the file and the reason in one line."""


class ThemeFile(Struct, frozen=True):
    """One theme file."""

    name: str
    title: str
    dark: bool
    ansi: bool
    base: dict[str, str]
    screen: dict[str, str]
    style: dict[str, str]


def user_directory() -> Path:
    """The directory of the user's themes."""
    config = os.environ.get("XDG_CONFIG_HOME", "")
    root = Path(config) if config.startswith("/") else Path.home() / ".config"
    return root / "locktop" / "themes"


def parse(text: str, origin: str) -> ThemeFile:
    """Return the theme that the text of a file has. Raises ThemeError, which names ``origin``."""
    try:
        data = user_toml.loads(text)
    except user_toml.NoTomlError as error:
        raise ThemeError(f"{origin}: not TOML: {error}") from None
    allowed = {"name", "title", "dark", "ansi", "base", "screen", "style"}
    _refuse_unknown(origin, "", set(data), allowed)
    base = _table(data, "base", origin, BASE, BASE)
    screen = _table(data, "screen", origin, SCREEN, SCREEN)
    style = _table(data, "style", origin, STYLED, ())
    name = data.get("name")
    if not isinstance(name, str) or not name.replace("-", "").isalnum():
        raise ThemeError(f"{origin}: name must be letters, digits and hyphens")
    for flag in ("dark", "ansi"):
        if not isinstance(data.get(flag), bool):
            raise ThemeError(f"{origin}: {flag} must be true or false")
    theme = ThemeFile(
        name, str(data.get("title", name)), data["dark"], data["ansi"], base, screen, style
    )
    _check_values(theme, origin)
    return theme


def _table(
    data: dict[str, Any], key: str, origin: str, allowed: tuple[str, ...], needed: tuple[str, ...]
) -> dict[str, str]:
    table = data.get(key, {})
    if not isinstance(table, dict):
        raise ThemeError(f"{origin}: [{key}] must be a table")
    table = {_RENAMED.get(name, name): value for name, value in table.items()}
    _refuse_unknown(origin, f"{key}.", set(table), set(allowed))
    for name in needed:
        if name not in table:
            raise ThemeError(f"{origin}: {key}.{name} is missing")
    return {name: str(value) for name, value in table.items()}


def _refuse_unknown(origin: str, where: str, present: set[str], allowed: set[str]) -> None:
    unknown = sorted(present - allowed)
    if unknown:
        raise ThemeError(f"{origin}: {where}{unknown[0]} is not known")


def _check_values(theme: ThemeFile, origin: str) -> None:
    from textual.color import Color, ColorParseError
    from textual.css.constants import VALID_STYLE_FLAGS

    for where, table in (("base", theme.base), ("screen", theme.screen)):
        for name, value in table.items():
            try:
                Color.parse(value)
            except ColorParseError:
                raise ThemeError(f"{origin}: {where}.{name}: {value!r} is no colour") from None
    for name, value in theme.style.items():
        if not set(value.split()) <= VALID_STYLE_FLAGS:
            raise ThemeError(f"{origin}: style.{name}: {value!r} is no style")


def shipped_names() -> list[str]:
    """The names of the themes in this package."""
    return sorted(path.name.removesuffix(".toml") for path in _shipped_files())


def load_all() -> tuple[dict[str, ThemeFile], list[str]]:
    """All themes by name, and an error for each file left out.

    The user's themes replace those of the package with the same name.
    """
    themes: dict[str, ThemeFile] = {}
    wrong: list[str] = []
    files: list[tuple[Path, Callable[[Path], bytes]]]
    files = [(path, Path.read_bytes) for path in _shipped_files()]
    # Anybody may have put a file where the user's variables lead.
    files += [(path, user_file.read) for path in _own()]
    for path, read in files:
        try:
            theme = parse(read(path).decode(), path.name)
        except (ThemeError, LocktopError, OSError, UnicodeDecodeError) as error:
            wrong.append(f"theme left out: {error}")
            continue
        themes[theme.name] = theme
    return themes, wrong


def _shipped_files() -> list[Path]:
    return sorted(Path(themes.__path__[0]).glob("*.toml"))


def _own() -> list[Path]:
    try:
        return sorted(user_directory().glob("*.toml"))
    except OSError:
        return []


def variables(theme: ThemeFile) -> dict[str, str]:
    """The CSS variables of a theme: ``lt-NAME`` colours and ``lt-NAME-style`` styles."""
    values = {f"{PREFIX}{name}": value for name, value in theme.screen.items()}
    values |= {f"{PREFIX}{name}-style": theme.style.get(name, "none") for name in STYLED}
    return values


def to_textual(theme: ThemeFile) -> Theme:
    """The theme for Textual."""
    from textual.theme import Theme

    ansi = _ANSI_VARIABLES if theme.ansi else {}
    return Theme(
        name=theme.name,
        dark=theme.dark,
        ansi=theme.ansi,
        variables=ansi | variables(theme),
        **theme.base,  # type: ignore[arg-type]
    )


def style_of(variables: Mapping[str, str], name: str) -> Style:
    """The style with that name, one of STYLED, from the CSS variables of a theme.

    The style "cursor-elsewhere" is put over the style of the text.
    """
    from rich.style import Style
    from textual.color import Color

    def colour(variable: str) -> RichColor | None:
        return Color.parse(variables[variable]).rich_color if variable in variables else None

    back = f"{PREFIX}{name}-back"
    return Style.parse(variables[f"{PREFIX}{name}-style"]) + Style(
        color=colour(PREFIX + name), bgcolor=colour(back if back in variables else "background")
    )


def default_name(environ: dict[str, str]) -> str:
    """The theme for this terminal: without colours, with sixteen, or with all.

    NO_COLOR counts if it is set and not empty, as no-color.org says.
    """
    if environ.get("NO_COLOR"):
        return "mono"
    term = environ.get("TERM", "")
    rich_terminal = environ.get("COLORTERM", "").lower() in ("truecolor", "24bit")
    if rich_terminal or "256color" in term or "direct" in term or "kitty" in term:
        return "night"
    return "ansi16"
