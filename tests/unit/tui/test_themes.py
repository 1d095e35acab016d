"""Theme files: readable text, a suitable default, and broken files."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.feed import HandFeed
from textual.color import Color
from unit.builders import scenarios

from locktop import themes as theme_files
from locktop.tui import themes
from locktop.tui.app import LocktopApp

ALL = themes.load_all()[0]


def shipped(name: str) -> str:
    """Return the text of a shipped theme file."""
    return Path(*theme_files.__path__, f"{name}.toml").read_text()


COLOURED = [theme for theme in ALL.values() if not theme.ansi]


def luminance(colour: str) -> float:
    def part(value: int) -> float:
        share = value / 255
        return share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4

    red, green, blue = Color.parse(colour).rgb
    return 0.2126 * part(red) + 0.7152 * part(green) + 0.0722 * part(blue)


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", COLOURED, ids=lambda theme: theme.name)
def test_text_of_every_theme_can_be_read(theme: themes.ThemeFile) -> None:
    """WCAG 2.2: 4.5 for text. The rules between panels are no text."""
    least = 7.0 if theme.name == "contrast" else 4.5
    backgrounds = {"alert": "alert-back", "flag": "flag-back", "cursor": "cursor-back"}
    for name in themes.STYLED:
        if name in ("rule", "cursor-elsewhere"):
            continue
        behind = theme.screen.get(backgrounds.get(name, ""), theme.base["background"])
        assert contrast(theme.screen[name], behind) >= least, name
        if name not in backgrounds:
            elsewhere = theme.screen["cursor-elsewhere-back"]
            assert contrast(theme.screen[name], elsewhere) >= 4.0, name


def test_themes_exist_for_dark_light_contrast_sixteen_and_no_colours() -> None:
    assert set(ALL) == {"night", "paper", "contrast", "ansi16", "mono"}
    assert [theme.name for theme in ALL.values() if not theme.dark] == ["paper"]
    assert all(
        value.startswith("ansi_")
        for theme in (ALL["ansi16"], ALL["mono"])
        for value in (*theme.screen.values(), *theme.base.values())
    )


@pytest.mark.parametrize(
    ("environ", "name"),
    [
        ({"TERM": "xterm-256color"}, "night"),
        ({"TERM": "xterm", "COLORTERM": "truecolor"}, "night"),
        ({"TERM": "linux"}, "ansi16"),
        ({"TERM": "screen"}, "ansi16"),
        ({}, "ansi16"),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, "mono"),
        ({"TERM": "xterm-256color", "NO_COLOR": ""}, "night"),
    ],
)
def test_the_theme_suits_the_terminal(environ: dict[str, str], name: str) -> None:
    assert themes.default_name(environ) == name


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("[base]", "[base"), "not TOML"),
        (('text = "#c8d0da"', 'text = "bluish"'), "screen.text: 'bluish' is no colour"),
        (('text = "#c8d0da"', ""), "screen.text is missing"),
        (('name = "night"', 'name = "a b"'), "name must be"),
        (("dark = true", 'dark = "yes"'), "dark must be true or false"),
        (('title = "bold"', 'title = "bald"'), "style.title: 'bald' is no style"),
        (("[style]", "[style]\nnose = 'bold'"), "style.nose is not known"),
        (('name = "night"', 'name = "night"\nnose = 1'), "nose is not known"),
    ],
)
async def test_a_broken_theme_file_is_reported_and_left_out(
    change: tuple[str, str], complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    night = shipped("night")
    own = tmp_path / "locktop" / "themes"
    own.mkdir(parents=True)
    (own / "own.toml").write_text(night.replace(*change))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    found, wrong = themes.load_all()
    assert set(found) == set(ALL)
    assert len(wrong) == 1
    assert "own.toml" in wrong[0]
    assert complaint in wrong[0]
    app = LocktopApp(HandFeed(scenarios.normal()), "own", environ={"TERM": "linux"})
    async with app.run_test(size=(80, 24)):
        assert app.theme == "ansi16"


def test_the_users_own_theme_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    night = shipped("night")
    own = tmp_path / "locktop" / "themes"
    own.mkdir(parents=True)
    (own / "mine.toml").write_text(night.replace('"night"', '"mine"'))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert "mine" in themes.load_all()[0]


def test_a_theme_file_with_the_earlier_name_of_a_style_is_read_the_same() -> None:
    (path,) = Path(theme_files.__path__[0]).glob("night.toml")
    text = path.read_text(encoding="utf-8")
    earlier = text.replace("\nalert", "\nalarm")
    assert earlier != text
    assert themes.parse(earlier, "own.toml") == themes.parse(text, "own.toml")
