"""Keys: every action has one, and the footer and the help show whole keys."""

from __future__ import annotations

from locktop.tui.actions import ACTIONS
from locktop.tui.bindings import bindings, footer_line
from locktop.tui.keymap import CALL_TREE_ACTIONS, CALL_TREE_KEYMAP, FOOTER, KEYMAP
from locktop.tui.views.styled_line import line_text
from locktop.tui.widgets.help import WIDTH, help_text


def test_every_action_has_keys_and_no_key_has_two() -> None:
    assert {keys.action for keys in (*KEYMAP, *CALL_TREE_KEYMAP)} == set(ACTIONS)
    assert len(bindings()) == len(KEYMAP)
    in_callers = [keys for keys in (*KEYMAP, *CALL_TREE_KEYMAP) if keys.action in CALL_TREE_ACTIONS]
    assert len(bindings(*CALL_TREE_ACTIONS)) == len(in_callers) == len(CALL_TREE_ACTIONS)
    for keymap in (KEYMAP, in_callers):
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
