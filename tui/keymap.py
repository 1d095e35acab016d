"""The keys of the actions: the file of this package, and over it the user's own file.

An entry of the user's file counts alone: a wrong one is a message, and the others stay.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from pathlib import Path

from msgspec import Struct

from locktop.collector.config import settings, user_file, user_toml
from locktop.collector.errors import LocktopError
from locktop.tui.actions import ACTIONS
from locktop.tui.extension import keys_of_extensions
from locktop.tui.screen_actions import SCREENS

#: The keys of an action, by its name in actions.ACTIONS.
Keys = dict[str, tuple[str, ...]]

_FILE = Path(__file__).with_name("keymap.toml")
#: The keys with a name, and their text on the screen.
_NAMED: dict[str, str] = {
    "tab": "Tab",
    "enter": "Enter",
    "escape": "Esc",
    "space": "Space",
    "backspace": "Backspace",
    "delete": "Del",
    "insert": "Ins",
    "home": "Home",
    "end": "End",
    "pageup": "PgUp",
    "pagedown": "PgDn",
    "up": "Up",
    "down": "Down",
    "left": "Left",
    "right": "Right",
    **{f"f{number}": f"F{number}" for number in range(1, 13)},
}
_MODIFIERS: dict[str, str] = {"ctrl": "Ctrl", "alt": "Alt", "shift": "Shift"}
#: A terminal sends the same byte for these keys as for Tab, Enter, Backspace and Escape. The
#: others end or stop locktop, or paint the screen again.
_UNUSABLE = ("ctrl+i", "ctrl+m", "ctrl+h", "ctrl+[", "ctrl+c", "ctrl+z", "ctrl+l")
#: Textual separates keys by commas.
_TEXTUAL_NAMES = {",": "comma"}
#: Cells of the help for the keys of one action.
_LABEL_WIDTH = 10


class KeyTable(Struct, frozen=True):
    """The keys of all actions, and which of them the user changed."""

    keys: Keys
    changed: frozenset[str] = frozenset()  # names of actions

    def textual_keys(self, action: str) -> str:
        """The keys of an action as Textual takes them."""
        return ",".join(_TEXTUAL_NAMES.get(key, key) for key in self.keys[action])

    def first_label(self, action: str) -> str:
        """The first key of an action as text."""
        return key_label(self.keys[action][0])

    def label(self, action: str) -> str:
        """The keys of an action as text: as many as the help has room for."""
        label, *others = map(key_label, self.keys[action])
        for other in others:
            if len(label) + 1 + len(other) > _LABEL_WIDTH:
                break
            label += f" {other}"
        return label


def key_label(key: str) -> str:
    """The text of a key on the screen: ``Ctrl+D`` for ``ctrl+d``."""
    *modifiers, last = _parts(key)
    text = _NAMED.get(last, last.upper() if modifiers else last)
    return "+".join([*(_MODIFIERS[modifier] for modifier in modifiers), text])


def _parts(key: str) -> list[str]:
    """The modifiers of a key, and the key itself, which may be a plus."""
    return [*key[:-1].split("+")[:-1], key[-1]] if key.endswith("+") else key.split("+")


@cache
def shipped() -> KeyTable:
    """The keys of this package, and those of extensions."""
    data = tomllib.loads(_FILE.read_text("utf-8"))
    own = {action: tuple(keys) for action, keys in data.items()}
    return KeyTable({**own, **keys_of_extensions()})


def load(setting: str) -> tuple[KeyTable, list[str]]:
    """Return the keys with those of the user, and a line for each wrong entry.

    Args:
        setting: the setting ``keymap``: a path, "" for none. A relative path begins where the
            file of the settings is.
    """
    table = shipped()
    if not setting:
        return table, []
    path = settings.path().parent / Path(setting).expanduser()
    wrong: list[str] = []
    own = dict(_entries(path, wrong))
    _leave_out_clashes(table.keys, own, path.name, wrong)
    return KeyTable(table.keys | own, frozenset(own)), wrong


def _entries(path: Path, wrong: list[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the right entries of a file; ``wrong`` gets a line for each other one."""
    try:
        data = user_toml.loads(user_file.read(path).decode("utf-8-sig"))
    except LocktopError as error:
        wrong.append(f"keymap left out: {error}")
        return
    except UnicodeDecodeError:
        wrong.append(f"keymap left out: {path} is not text in UTF-8")
        return
    except user_toml.NoTomlError as error:
        wrong.append(f"keymap left out: {path} is no TOML: {error}")
        return
    for action, value in data.items():
        if reason := _fault(action, value):
            wrong.append(f"{path.name}: {reason}")
        else:
            yield action, (value,) if isinstance(value, str) else tuple(value)


def _fault(action: str, value: object) -> str:
    """Return the fault of an entry in words; "" for none."""
    if action not in ACTIONS:
        return f"there is no action {action!r}; `locktop config --keys` lists them"
    keys = [value] if isinstance(value, str) else value
    if not isinstance(keys, list) or not keys or not all(isinstance(key, str) for key in keys):
        return f'{action}: the keys are a list of texts, such as ["s", "f2"]'
    for key in keys:
        if key in _UNUSABLE:
            return f"{action}: the key {key!r} cannot be used"
        if not _is_key(key):
            return f'{action}: there is no key {key!r}; "s", "f2" and "ctrl+s" are keys'
    return ""


def _is_key(key: str) -> bool:
    if len(key) == 1:
        return key.isprintable() and key != " "
    *modifiers, last = _parts(key)
    if not set(modifiers) <= set(_MODIFIERS) or len(set(modifiers)) != len(modifiers):
        return False
    if last in _NAMED:
        return True
    # A terminal sends Shift with a letter as a capital.
    return bool(modifiers) and "shift" not in modifiers and last in "abcdefghijklmnopqrstuvwxyz"


def _leave_out_clashes(base: Keys, own: Keys, file: str, wrong: list[str]) -> None:
    """Take entries out of ``own`` until no key of a screen has two actions."""
    while clash := next(_clashes(base | own), None):
        screen, key, actions = clash
        entries = [action for action in actions if action in own]
        if not entries:
            return  # the fault is not the user's
        wrong.append(
            f"{file}: {key_label(key)} has {' and '.join(actions)} in the {screen};"
            f" {' and '.join(entries)} left out"
        )
        for action in entries:
            del own[action]


def _clashes(keys: Keys) -> Iterator[tuple[str, str, Sequence[str]]]:
    """Yield each key with several actions in one screen: the screen, the key, the actions."""
    for screen in SCREENS:
        actions_of: dict[str, list[str]] = {}
        for action in dict.fromkeys(screen.actions):
            for key in dict.fromkeys(keys[action]):
                actions_of.setdefault(key, []).append(action)
        for key, actions in actions_of.items():
            if len(actions) > 1:
                yield screen.name, key, actions


def clashes(keys: Keys) -> Collection[tuple[str, str]]:
    """The keys with several actions in one screen: pairs of a screen and a key."""
    return [(screen, key) for screen, key, _ in _clashes(keys)]


def template() -> str:
    """The keys of all actions as a file to change, with the meaning of each action."""
    lines = [
        "# The keys of locktop. Take away the # before an action to change its keys, and name",
        '# this file in the setting keymap. A key is a character, or a name such as "tab", "f1",',
        '# "space", "pageup" or "ctrl+d". A screen has one action for a key.',
        "",
    ]
    for action, keys in shipped().keys.items():
        texts = ", ".join('"' + key.replace("\\", "\\\\").replace('"', '\\"') + '"' for key in keys)
        lines.append(f"# {ACTIONS[action].help}\n#{action} = [{texts}]\n")
    return "\n".join(lines)
