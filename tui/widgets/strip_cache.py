"""Lines as Textual's strips, with a cache of strips and of styles."""

from __future__ import annotations

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.cache import LRUCache
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from locktop.tui.themes import style_of
from locktop.tui.views.cells import plain
from locktop.tui.views.styled_line import Line, changed_cells

#: A strip takes some 5 kB with Textual's own caches; no widget has so many rows.
_KEPT_STRIPS = 256

#: The mark of a line: none, the cursor of the list in use, the cursor of another list.
PLAIN, CURSOR, CURSOR_ELSEWHERE = 0, 1, 2


class StripCache(Widget):
    """A widget of a ListScreen that sends only the lines that changed."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._strips: LRUCache[tuple[Line, int, int], Strip] = LRUCache(_KEPT_STRIPS)
        self._rich_styles: dict[str, Style] = {}
        self._painted: dict[int, tuple[Line, int]] = {}

    def line_at(self, y: int) -> tuple[Line, int]:
        """The line in row ``y`` of the widget, and its mark."""
        raise NotImplementedError

    def paint_changes(self) -> None:
        """Refresh the rows with a text other than the one sent last.

        The refreshed part of a row ends at its last difference.
        """
        width, changed = self.size.width, []
        for y in range(self.size.height):
            new, old = self.line_at(y), self._painted.get(y)
            if old is None or new[1] != old[1]:
                changed.append(Region(0, y, width, 1))
            elif new[0] != old[0]:
                changed.append(Region(0, y, changed_cells(new[0], old[0], width), 1))
        if changed:
            self.refresh(*changed)

    def render_lines(self, crop: Region) -> list[Strip]:
        """The strips of a part of the widget.

        A whole strip has all its styles. So Textual's way, which takes twice as long, is for
        padding alone. These widgets have no other decoration.
        """
        if self.styles.padding:
            return super().render_lines(crop)
        width = self.size.width
        strips = [self._strip_at(y, width) for y in crop.line_range]
        if filters := self.get_line_filters():
            _, background = self.background_colors
            for line_filter in filters:
                strips = [strip.apply_filter(line_filter, background) for strip in strips]
        if crop.column_span != (0, width):
            strips = [strip.crop(*crop.column_span) for strip in strips]
        return strips

    def render_line(self, y: int) -> Strip:
        """The strip of row ``y``, which Textual sends."""
        return self._strip_at(y, self.size.width)

    def _strip_at(self, y: int, width: int) -> Strip:
        line, mark = self._painted[y] = self.line_at(y)
        strip = self._strips.get((line, mark, width))
        if strip is None:
            strip = self._strips[line, mark, width] = self._strip(line, mark, width)
        return strip

    def notify_style_update(self) -> None:
        """Clear the caches: the theme or the focus changed."""
        self._strips.clear()
        self._rich_styles.clear()
        super().notify_style_update()

    def _strip(self, line: Line, mark: int, width: int) -> Strip:
        if mark == CURSOR:
            # One style for the whole row is legible in every theme, and costs few bytes.
            line = (("".join(text for text, _ in line), "cursor"),)
        segments = [Segment(plain(text), self._style(style)) for text, style in line]
        if mark == CURSOR_ELSEWHERE:
            behind = self._style("cursor-elsewhere")
            segments = [Segment(text, (style or behind) + behind) for text, style, _ in segments]
        strip = Strip(segments, sum(cell_len(segment.text) for segment in segments))
        last = segments[-1].style if segments else self._style("text")
        return strip.crop_extend(0, width, last)

    def _style(self, name: str) -> Style:
        style = self._rich_styles.get(name)
        if style is None:
            style = self._rich_styles[name] = style_of(self.app.theme_variables, name)
        return style
