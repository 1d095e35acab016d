"""Keys: every action has one, and the footer and the help show whole keys."""

from __future__ import annotations

from locktop.tui.actions import ACTIONS
from locktop.tui.bindings import bindings, footer_line
from locktop.tui.keymap import CALL_TREE_ACTIONS, CALL_TREE_KEYMAP, FOOTER, KEYMAP
from locktop.tui.time_keymap import (
    HEAT_MAP_ACTIONS,
    HEAT_MAP_KEYMAP,
    PROFILES_ACTIONS,
    PROFILES_KEYMAP,
    TIMELINE_ACTIONS,
    TIMELINE_KEYMAP,
)
from locktop.tui.views.styled_line import line_text
from locktop.tui.widgets.help import WIDTH, help_text

ALL_KEYS = (*KEYMAP, *CALL_TREE_KEYMAP, *TIMELINE_KEYMAP, *HEAT_MAP_KEYMAP, *PROFILES_KEYMAP)


def test_every_action_has_keys_and_no_key_of_a_screen_has_two() -> None:
    assert {keys.action for keys in ALL_KEYS} == set(ACTIONS)
    assert len(bindings()) == len(KEYMAP)
    screens = [KEYMAP]
    for actions in (CALL_TREE_ACTIONS, TIMELINE_ACTIONS, HEAT_MAP_ACTIONS, PROFILES_ACTIONS):
        found = tuple(keys for keys in ALL_KEYS if keys.action in actions)
        assert len(bindings(*actions)) == len(found) == len(actions)
        screens.append(found)
    for keymap in screens:
        pressed = [key for keys in keymap for key in keys.keys]
        assert len(pressed) == len(set(pressed))


def test_the_line_of_keys_shows_whole_keys_only() -> None:
    whole = line_text(footer_line(500))
    assert all(ACTIONS[name].label in whole for name in FOOTER)
    for width in range(10, 140):
        text = line_text(footer_line(width))
        assert len(text) <= width
        assert whole.startswith(text)
    assert "w save" in line_text(footer_line(80))


def test_no_line_of_the_help_is_broken_on_a_small_terminal() -> None:
    assert max(len(line) for line in help_text(()).plain.splitlines()) <= WIDTH
