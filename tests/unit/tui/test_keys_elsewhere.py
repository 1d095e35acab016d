"""Each key does something in each view, or a message says why not, or where it works."""

from __future__ import annotations

import pytest
from support.driven import Screen, opened
from unit.builders import scenarios

from locktop.collector.recording.history import History
from locktop.tui.actions import ACTIONS
from locktop.tui.extension import monitor_keys
from locktop.tui.keymap import shipped
from locktop.tui.monitor_views import VIEWS
from locktop.tui.screen_actions import MONITOR
from locktop.tui.widgets.list_screen import ListScreen

#: Keys of the views that are screens of their own.
ABOVE = [*(view.digit for view in VIEWS if not view.is_body)]
ABOVE += [key.keys[0] for name, key in monitor_keys().items() if name not in {"diff", "inside"}]
#: Texts that Textual's pilot types by other names.
NAMES = {"-": "minus", "+": "plus", "=": "equals_sign", ",": "comma", "<": "less_than_sign"}
NAMES |= {">": "greater_than_sign", ":": "colon", "[": "left_square_bracket"}
NAMES |= {"/": "slash", "?": "question_mark", "]": "right_square_bracket"}
NAMES |= {"{": "left_curly_bracket", "}": "right_curly_bracket"}


def past() -> History:
    history = History()
    for second in range(3):
        history.add(scenarios.calls(second), (1_700_000_000 + second) * 10**9)
    return history


async def begin(screen: Screen, key: str) -> ListScreen:
    """Go to the monitor, and from there to a view; return its screen."""
    while len(screen.app.screen_stack) > 1:
        await screen.keys("escape")
    await screen.keys("2", key)
    top = screen.app.screen
    assert isinstance(top, ListScreen)
    return top


def keys_without_action(top: ListScreen) -> list[str]:
    """Return the keys of the whole table that have no action on a screen."""
    table = {NAMES.get(key, key) for keys in shipped().keys.values() for key in keys}
    return sorted(key for key in table if key not in top.active_bindings)


@pytest.mark.parametrize("view", ABOVE)
async def test_a_key_opens_its_view_from_each_view_or_says_where_it_works(view: str) -> None:
    opens = {key.keys[0]: name for name, key in monitor_keys().items()}
    async with opened(scenarios.calls(3), size=(80, 24), moments=past()) as screen:
        top = await begin(screen, view)
        for key in keys_without_action(top):
            if screen.app.screen is not top:
                top = await begin(screen, view)
            screen.app.screen.query_one("#keys").clear()  # type: ignore[attr-defined]
            before = screen.text
            await screen.keys(key)
            await screen.reaches(lambda before=before: screen.text != before)
            if screen.app.screen is top:
                assert any(
                    words in screen.lines[-1] + screen.lines[-2]
                    for words in (" works on the ", "open already", "already", "Choose one")
                ), (view, key, screen.text)
            else:
                assert key in {*opens, "c", "T", "H", *(view.digit for view in VIEWS)}, (view, key)


async def test_a_key_of_another_screen_says_where_it_works_on_the_monitor() -> None:
    async with opened(scenarios.calls(3), moments=past()) as screen:
        await screen.keys("F")
        assert "F works on the screen “time line”: " + ACTIONS["woke"].help in screen.text


@pytest.mark.parametrize("key", ["8", "9"])
async def test_a_key_of_time_that_changes_nothing_says_why(key: str) -> None:
    async with opened(scenarios.calls(3), size=(80, 24), moments=past()) as screen:
        for pressed, says in (
            ("a", "All that is kept is on the screen already."),
            ("minus", "All that is kept is on the screen already."),
            ("G", "Nothing newer is kept."),
        ):
            await begin(screen, key)
            await screen.keys(pressed)
            assert says in screen.text, (key, pressed)


def test_all_views_of_the_monitor_are_tried() -> None:
    openers = {name for name in MONITOR.actions if name in monitor_keys()}
    assert {key for name in openers for key in monitor_keys()[name].keys} <= {*ABOVE, "D", "I"}
