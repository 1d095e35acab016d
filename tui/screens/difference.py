"""The difference of two spans: where more was waited in the second than in the first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import BindingType

from locktop.collector.render.profiles.call_tree_difference import (
    DifferenceNode,
    DifferenceRow,
    rows,
)
from locktop.tui.bindings import bindings
from locktop.tui.screen_actions import DIFFERENCE
from locktop.tui.views.cells import duration
from locktop.tui.views.difference import difference_columns, signed
from locktop.tui.views.styled_line import Line, cut, make_line
from locktop.tui.views.table import lay_out
from locktop.tui.widgets.one_list_screen import OneListScreen


class DifferenceScreen(OneListScreen):
    """Shows a tree whose figures are those of two spans."""

    SCREEN = DIFFERENCE
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(*DIFFERENCE.actions)]

    def __init__(
        self,
        title: str,
        root: DifferenceNode,
        lost: tuple[int, int],
        sentences: Sequence[str] = (),
    ) -> None:
        """Make the screen.

        Args:
            title: names the two spans.
            root: the joined trees.
            lost: records that are lost of the first span and of the second one.
            sentences: further lines on the difference.
        """
        super().__init__("difference")
        self._lost = lost
        self._sentences = sentences
        self._title = title
        self._root = root
        self._rows = list(rows(root))

    def apply_filter(self) -> None:
        width = self.size.width
        self.show_keys()
        self.status_row.show((cut(make_line((f" {self._title}", "strong")), width),))
        further = [make_line((f" {sentence}", "text")) for sentence in self._sentences]
        lines = (_sums(self._root, self._lost), *further)
        self.headline_lines.show(tuple(cut(line, width) for line in lines))
        words = self.filter_words.lower()
        visible = {
            number: row for number, row in enumerate(self._rows) if not words or _has(row, words)
        }
        table = lay_out(difference_columns(), self._list.size.width)
        self._list.set_heads("B minus A", "per second of each span", table.heading("MORE/s"))
        self._list.show(list(visible), lambda number: table.line(visible[number]))

    def action_help(self) -> None:
        """Show the keys."""
        self.show_help(tree_first=True)


def _sums(root: DifferenceNode, lost: tuple[int, int]) -> Line:
    more = signed(root.more_wait, duration(abs(root.more_wait)))
    waits = f"{root.before.count:.1f} to {root.after.count:.1f}"
    # First, so that a narrow terminal shows it: the sums are too small by these records.
    flag = [(f" records lost: A {lost[0]:,}, B {lost[1]:,} ", "flag"), " "] if any(lost) else [" "]
    return make_line(
        *flag,
        ("Waited per second  ", "label"),
        f"A {duration(root.before.wait)}  B {duration(root.after.wait)}  ",
        (more, "waiting" if root.more_wait > 0 else "running"),
        ("   waits a second  ", "label"),
        waits,
    )


def _has(row: DifferenceRow, words: str) -> bool:
    return any(words in node.step.name.lower() for node in row.nodes)
