"""Theme files: readable text, a suitable default, and broken files."""

from __future__ import annotations

import itertools
import math
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


def linear(colour: str) -> list[float]:
    """Red, green and blue in linear light (sRGB)."""

    def part(value: int) -> float:
        share = value / 255
        return share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4

    return [part(value) for value in Color.parse(colour).rgb]


def luminance(colour: str) -> float:
    red, green, blue = linear(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", COLOURED, ids=lambda theme: theme.name)
def test_text_of_every_theme_can_be_read(theme: themes.ThemeFile) -> None:
    """WCAG 2.2: 4.5 for text. The rules between panels are no text."""
    least = 7.0 if theme.name in ("contrast", "noon") else 4.5
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
    assert set(ALL) == {"night", "paper", "contrast", "noon", "okabe", "ansi16", "mono"}
    assert [theme.name for theme in ALL.values() if not theme.dark] == ["noon", "paper"]
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


#: Matrices for colours in linear light, as eyes without red, green or blue cones see them.
#: Source: Machado, Oliveira, Fernandes, "A Physiologically-based Model for Simulation of Color
#: Vision Deficiency", 2009, with severity 1.0.
DEFICIENCIES = {
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
#: The styles of a row that say in which state a thread or a lock is.
STATES = ("waiting", "running", "stuck")
#: In CIE Lab; 10 is a difference that one sees at a glance.
SEEN = 10.0


def lab(linear: list[float]) -> tuple[float, float, float]:
    """A colour in linear light (sRGB, D65) as CIE Lab."""
    red, green, blue = (min(1.0, max(0.0, part)) for part in linear)
    tristimulus = (
        (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505,
        0.2126 * red + 0.7152 * green + 0.0722 * blue,
        (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.0890,
    )
    x, y, z = (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in tristimulus)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize("name", ["contrast", "noon", "okabe"])
@pytest.mark.parametrize("deficiency", DEFICIENCIES)
def test_states_differ_for_any_colour_vision(name: str, deficiency: str) -> None:
    rows = DEFICIENCIES[deficiency]
    seen = {}
    for style in STATES:
        parts = linear(ALL[name].screen[style])
        simulated = [sum(a * b for a, b in zip(row, parts, strict=True)) for row in rows]
        seen[style] = lab(simulated)
    for one, other in itertools.combinations(STATES, 2):
        assert math.dist(seen[one], seen[other]) >= SEEN, (one, other)


@pytest.mark.parametrize("name", sorted(ALL))
def test_a_deadlock_differs_by_more_than_colour(name: str) -> None:
    """Rows in a deadlock also have the mark "!", and waiting ones "*"."""
    style = ALL[name].style
    assert style["alert"] != style.get("text", "")
    assert style["stuck"] != style.get("running", "")
    assert style["flag"] != style.get("text", "")
