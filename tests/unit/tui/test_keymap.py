"""Keys: every action has one, the user's file goes over them, footer and help show whole keys."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.driven import opened

from locktop.tui import keymap
from locktop.tui.actions import ACTIONS
from locktop.tui.bindings import bindings, footer_line
from locktop.tui.input_options import InputOptions
from locktop.tui.monitor_views import VIEWS
from locktop.tui.screen_actions import MONITOR, SCREENS
from locktop.tui.views.styled_line import line_text
from locktop.tui.widgets.help import WIDTH, help_text


@pytest.fixture
def own(tmp_path: Path) -> Path:
    return tmp_path / "keymap.toml"


def test_every_action_has_keys_and_a_screen_and_no_key_of_a_screen_has_two() -> None:
    shipped = keymap.shipped()
    assert set(shipped.keys) == set(ACTIONS)
    assert {action for screen in SCREENS for action in screen.actions} == set(ACTIONS)
    assert not keymap.clashes(shipped.keys)
    for screen in SCREENS:
        assert len(bindings(*screen.actions)) == len(set(screen.actions))
        assert set(screen.footer) <= set(screen.actions)
        assert all(ACTIONS[action].label for action in screen.footer)


def test_the_key_of_a_view_is_its_number() -> None:
    for view in VIEWS:
        assert keymap.shipped().keys[f"view_{view.name}"] == (view.digit,)


def test_the_line_of_keys_shows_whole_keys_only() -> None:
    whole = line_text(footer_line(500))
    assert all(ACTIONS[name].label in whole for name in MONITOR.footer)
    for width in range(10, 140):
        text = line_text(footer_line(width))
        assert len(text) <= width
        assert whole.startswith(text)
    assert "w save" in line_text(footer_line(80))


def test_no_line_of_the_help_is_broken_on_a_small_terminal() -> None:
    for screen in (None, *SCREENS):
        lines = help_text((), screen).plain.splitlines()
        assert max(len(line) for line in lines) <= WIDTH


@pytest.mark.parametrize(
    ("key", "label"),
    [("s", "s"), ("S", "S"), ("ctrl+d", "Ctrl+D"), ("pageup", "PgUp"), ("shift+tab", "Shift+Tab"),
     ("ctrl++", "Ctrl++"), ("+", "+"), ("f12", "F12")],
)  # fmt: skip
def test_a_key_has_a_name_on_the_screen(key: str, label: str) -> None:
    assert keymap.key_label(key) == label


def test_the_file_of_the_user_changes_the_actions_that_it_names(own: Path) -> None:
    own.write_text('sort = ["u", "f5"]\nmark = "ctrl+g"\n')
    table, wrong = keymap.load(str(own))
    assert wrong == []
    assert table.keys["sort"] == ("u", "f5")
    assert table.keys["mark"] == ("ctrl+g",)
    assert table.keys["reverse"] == keymap.shipped().keys["reverse"]
    assert table.changed == {"sort", "mark"}


def test_two_actions_may_exchange_their_keys(own: Path) -> None:
    own.write_text('sort = ["i"]\nidle = ["s"]\n')
    table, wrong = keymap.load(str(own))
    assert wrong == []
    assert (table.keys["sort"], table.keys["idle"]) == (("i",), ("s",))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('sorting = ["u"]', "there is no action 'sorting'"),
        ('sort = ["hyper+o"]', "sort: there is no key 'hyper+o'"),
        ('sort = ["shift+o"]', "sort: there is no key 'shift+o'"),
        ('sort = ["ctrl+c"]', "sort: the key 'ctrl+c' cannot be used"),
        ('sort = ["ctrl+l"]', "sort: the key 'ctrl+l' cannot be used"),
        ("sort = []", "sort: the keys are a list of texts"),
        ("sort = 5", "sort: the keys are a list of texts"),
        ('sort = ["i"]', "i has sort and idle in the monitor; sort left out"),
        ('weight = ["s"]', "s has weight and sort in the inside of a lock; weight left out"),
    ],
)
def test_a_wrong_entry_is_one_message_and_the_others_count(
    own: Path, text: str, message: str
) -> None:
    own.write_text(f'{text}\nmark = ["u"]\n')
    table, wrong = keymap.load(str(own))
    assert len(wrong) == 1
    assert message in wrong[0]
    assert "keymap.toml" in wrong[0]
    assert table.keys["sort"] == keymap.shipped().keys["sort"]
    assert table.keys["mark"] == ("u",)


@pytest.mark.parametrize(
    ("data", "message"),
    [(b"sort = [", "is no TOML"), (b"\xff", "is not text in UTF-8"), (None, "there is no file")],
)
def test_of_a_broken_file_nothing_counts(own: Path, data: bytes | None, message: str) -> None:
    if data is not None:
        own.write_bytes(data)
    table, wrong = keymap.load(str(own))
    assert table == keymap.shipped()
    assert len(wrong) == 1
    assert message in wrong[0]


def test_the_template_without_its_number_signs_is_the_shipped_file(own: Path) -> None:
    lines = keymap.template().splitlines()
    own.write_text("\n".join(line.removeprefix("#") for line in lines if not line.startswith("# ")))
    table, wrong = keymap.load(str(own))
    assert wrong == []
    assert table.keys == keymap.shipped().keys


async def test_the_screen_takes_the_keys_of_the_user(own: Path) -> None:
    own.write_text('sort = ["u"]\nreverse = ["s"]\nhelp = ["f2"]\n')
    async with opened(input_options=InputOptions(str(own))) as screen:
        assert "Locks by wait" in screen.text
        await screen.keys("u")
        assert "Locks by contended" in screen.text
        await screen.keys("s")
        assert "reversed" in screen.text
        assert "F2 help" in screen.lines[-1]
        await screen.keys("f2")
        assert "u          sort by the next column" in screen.text


async def test_the_screen_says_what_is_wrong_with_the_keys_of_the_user(own: Path) -> None:
    own.write_text('sort = ["i"]\n')
    async with opened(input_options=InputOptions(str(own))) as screen:
        await screen.says("keymap.toml: i has sort and idle in the monitor; sort left out")
        await screen.keys("s")
        assert "Locks by contended" in screen.text
