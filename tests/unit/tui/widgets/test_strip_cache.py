"""The strips of our widgets are those that Textual would make of their lines."""

from __future__ import annotations

import pytest
from support.driven import opened
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget
from unit.builders import scenarios

from locktop.tui.themes import shipped_names
from locktop.tui.widgets.strip_cache import StripCache

SIZES = [(80, 24), (120, 40), (180, 50), (40, 12)]


def cells(strip: Strip) -> list[tuple[str, object]]:
    return [(character, style) for text, style, _ in strip for character in text]


@pytest.mark.parametrize("has_colour", [True, False])
@pytest.mark.parametrize("theme", shipped_names())
@pytest.mark.parametrize("size", SIZES)
async def test_strips_are_as_textual_makes_them(
    size: tuple[int, int], theme: str, has_colour: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_colour:
        monkeypatch.setenv("NO_COLOR", "1")
    seen = 0
    async with opened(scenarios.deadlock(), size=size, theme=theme) as screen:
        for widget in screen.app.screen.query(StripCache):
            width, height = widget.region.size
            if not widget.display or not width or not height:
                continue
            for crop in (Region(0, 0, width, height), Region(3, 0, max(1, width - 7), 1)):
                found = [cells(strip) for strip in widget.render_lines(crop)]
                assert found == [cells(strip) for strip in Widget.render_lines(widget, crop)]
                seen += 1
    assert seen >= 6
