"""The call tree, and the callers and callees of one function; of a live process or of a file."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.timer import Timer

from locktop.collector.model import Snapshot
from locktop.collector.render.files import save_new
from locktop.collector.render.formats import CALL_TREE_FORMATS, ResultFormats
from locktop.collector.render.profiles.call_tree import Butterfly, Node, Step
from locktop.collector.render.profiles.profile import Profile, SnapshotProfile, Weight
from locktop.collector.render.rendered_files import call_tree_name
from locktop.tui.bindings import bindings
from locktop.tui.screen_actions import CALL_TREE
from locktop.tui.views.call_tree import Branches, Row
from locktop.tui.views.call_tree_rows import (
    TreeWords,
    WingRow,
    call_tree_headline,
    figure,
    tree_columns,
    wing_columns,
    wing_rows,
)
from locktop.tui.views.cells import percent
from locktop.tui.views.styled_line import Line
from locktop.tui.views.table import lay_out
from locktop.tui.widgets.item_list import ItemList
from locktop.tui.widgets.list_screen import ListScreen, Travel
from locktop.tui.widgets.list_texts import ListTexts
from locktop.tui.widgets.scroll_panel import ScrollPanel

#: From this size callers and callees are beside the tree.
WIDE = (140, 20)
#: After a tree was added up there is no other one for this many times as long.
_RARER = 19.0

StatusLine = Callable[[int], Line]


class TreeTexts(ListTexts):
    """The texts of a call tree."""

    def __init__(self, screen: CallTreeScreen) -> None:
        super().__init__(screen, screen.active_list)
        self._tree = screen

    def report(self) -> Callable[[], str]:
        data = self._tree.file("text")
        return lambda: data.decode()

    def source_line(self) -> tuple[str, int] | None:
        return self._tree.location_under_cursor()


class CallTreeScreen(ListScreen):
    """Shows a profile, or the newest of several."""

    SCREEN = CALL_TREE
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(*CALL_TREE.actions)]
    #: The words of the lists.
    WORDS: ClassVar[TreeWords] = TreeWords()

    def __init__(
        self,
        profile: Profile,
        status: StatusLine,
        *,
        weight: Weight | None = None,
        idle: bool = False,
        pause: Callable[[], None] | None = None,
        travel: Travel | None = None,
        profile_of: Callable[[Snapshot], Profile] = SnapshotProfile,
        formats: ResultFormats[...] = CALL_TREE_FORMATS,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make the screen.

        Args:
            profile: the profile to begin with.
            status: returns the first line for a width.
            weight: one of the profile's weights, None for its first.
            idle: whether to show waits for work.
            pause: pauses the snapshots, None where there are none.
            travel: see ListScreen.
            profile_of: makes the profile of a newer snapshot.
            formats: what the screen saves and copies, with the arguments of CALL_TREE_FORMATS.
            now: a monotonic clock in seconds.
        """
        super().__init__(travel)
        self.texts = TreeTexts(self)
        self._profile = profile
        self._status = status
        self._weight = weight or profile.weights[0]
        self._show_idle = idle
        self._pause = pause
        self._profile_of = profile_of
        self._formats = formats
        self._now = now
        self._later: Timer | None = None  # draws a snapshot that came too early
        self._next_at = float("-inf")
        self._branches = Branches()
        self._rows: dict[int, Row] = {}
        self._root: Node | None = None
        self._walked: list[Step] = []  # the path of functions, the visible one at the end
        self._wings: list[WingRow] = []
        self._wing_ids: dict[tuple[str, Step | None, str], int] = {}
        # Made here: the screen may close before Textual has mounted them.
        self._tree_list = ItemList(id="tree")
        self._wing_list = ItemList(id="wings")

    def compose(self) -> ComposeResult:
        """The widgets from the top."""
        self.add_class("on-tree")
        self._choose_shape(self.app.size.width, self.app.size.height)
        yield from self.compose_top()
        with Container(id="call-tree-body"):
            yield from self.compose_lists()
        yield from self.compose_footer()

    def compose_lists(self) -> ComposeResult:
        """The lists below the headline."""
        yield self._tree_list
        yield self._wing_list

    def on_mount(self) -> None:
        """Give the first list the focus."""
        self.active_list().focus()

    def show_snapshot(self, snapshot: Snapshot) -> None:
        """Show a newer snapshot of the same process."""
        self._profile, self._root = self.profile_of(snapshot), None
        if not (self.is_mounted and self.is_current) or self._later is not None:
            return
        wait_s = self._next_at - self._now()
        if wait_s > 0:
            self._later = self.set_timer(wait_s, self._draw_later)
        else:
            self._draw()

    def profile_of(self, snapshot: Snapshot) -> Profile:
        """The profile of a newer snapshot."""
        return self._profile_of(snapshot)

    def _draw_later(self) -> None:
        self._later = None
        self._draw()

    # Drawing

    def _draw(self) -> None:
        width = self.size.width
        self.status_row.show((self._status(self.status_row.room(width)),))
        if self._root is None:
            began = self._now()
            self._root = self.add_up()
            ended = self._now()
            self._next_at = ended + _RARER * (ended - began)
        self.headline_lines.show(self.headline(self._root, width))
        self.draw_tree(self._root)
        self._draw_wings(self._root)

    def add_up(self) -> Node:
        """Add up what the lists show, and return the tree."""
        return self._profile.tree(self._weight.name)

    def headline(self, root: Node, width: int) -> Sequence[Line]:
        """The lines above the lists."""
        return (call_tree_headline(self._profile, self._weight, root, self._show_idle, width),)

    def draw_tree(self, root: Node) -> None:
        """Draw the tree."""
        rows = self._branches.rows(root, self._show_idle, self.filter_words, self._now())
        self._rows = {self._branches.id_of(row.path): row for row in rows}
        table = lay_out(tree_columns(self._weight, root.value), self._tree_list.size.width)
        self._tree_list.set_heads(
            self._profile.name.capitalize(), self._caption(), table.heading("SHARE")
        )
        by_id = self._rows
        self._tree_list.show(list(by_id), lambda id_: table.line(by_id[id_]))

    def _caption(self) -> str:
        filter_text = f", with “{self.filter_words}”" if self.filter_words else ""
        estimate = ", estimated" if self._profile.estimate else ""
        return f"{self.WORDS.caption}by {self._weight.says}{estimate}{filter_text}"

    def _draw_wings(self, root: Node) -> None:
        if not self._wing_list.display:
            return
        step = self._step_seen()
        butterfly = self._profile.butterfly(self._weight.name, step) if step is not None else None
        if butterfly is None:
            self._wing_list.set_heads("Function", "")
            self._wing_list.show((), lambda _: ())
            return
        self._wings = wing_rows(butterfly, self._show_idle, self.WORDS)
        by_id = {self._wing_id(row): row for row in self._wings}
        table = lay_out(wing_columns(butterfly, self._weight), self._wing_list.size.width)
        self._wing_list.set_heads(
            "Function", self._share_text(butterfly, root), table.heading("OF IT")
        )
        self._wing_list.show(list(by_id), lambda id_: table.line(by_id[id_]))

    def _wing_id(self, row: WingRow) -> int:
        # Each of the two titles has an id of its own, for any text.
        step = row.wing.step if row.wing is not None else None
        key = (row.side, step, row.title)
        return self._wing_ids.setdefault(key, len(self._wing_ids))

    def _share_text(self, butterfly: Butterfly, root: Node) -> str:
        if butterfly.value <= 0:
            return "waits for work" if butterfly.idle > 0 else "not in this snapshot"
        share = percent(butterfly.value / root.value) if root.value > 0 else "0%"
        own = f", {figure(butterfly.own, self._weight)} itself" if butterfly.own > 0 else ""
        return f"{share} of all{own}"

    def _step_seen(self) -> Step | None:
        """The function with visible callers: the last of the path, else that under the cursor."""
        if self._walked:
            return self._walked[-1]
        return self.step_under_cursor()

    def step_under_cursor(self) -> Step | None:
        """The function under the cursor."""
        current = self._tree_list.current
        row = self._rows.get(current) if current is not None else None
        return row.node.step if row is not None else None

    # Events

    def on_resize(self, event: events.Resize) -> None:
        """Choose the shape for the new size."""
        self._choose_shape(event.size.width, event.size.height)
        self.call_after_refresh(self._redraw)

    def _choose_shape(self, width: int, height: int) -> None:
        wide = width >= WIDE[0] and height >= WIDE[1]
        self.set_class(wide, "both")

    def _redraw(self) -> None:
        self.show_keys()
        self._draw()

    @on(events.ScreenResume)
    def _back_in_sight(self) -> None:
        self.call_after_refresh(self._redraw)

    @on(ItemList.Moved)
    def _moved(self, event: ItemList.Moved) -> None:
        if event.source is self.first_list() and self._root is not None and not self._walked:
            self._draw_wings(self._root)

    def active_list(self) -> ItemList:
        return self._wing_list if self.has_class("on-wings") else self.first_list()

    def first_list(self) -> ItemList:
        """The list whose row the callers and callees belong to."""
        return self._tree_list

    def focused_panel(self) -> ScrollPanel:
        return self.active_list()

    def apply_filter(self) -> None:
        self._branches.sort_now()
        self._draw()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Follow a click on the other list."""
        alone = self.has_class("on-wings") and not self.has_class("both")
        if alone and event.widget is not self._wing_list:
            # Textual gave the focus of a list that was just hidden to another hidden one.
            self.call_after_refresh(self._wing_list.focus)
        elif event.widget is self._wing_list and not self._walked:
            self.action_walk()
        elif isinstance(event.widget, ItemList):
            self.take_list(event.widget)
            self.use(event.widget is self._wing_list)

    def take_list(self, used: ItemList) -> None:
        """The user went to a list."""

    def use(self, wings: bool) -> None:
        """Go to callers and callees, or to the first list."""
        self.set_class(wings, "on-wings")
        self.set_class(not wings, "on-tree")
        if self.focused is not self.active_list():
            # The list may have been hidden until now.
            self.call_after_refresh(self.active_list().focus)
        if not wings:
            self._walked = []
        self.call_after_refresh(self._draw)

    # Actions, as named in actions.py

    def action_help(self) -> None:
        """Show the keys and the notes on the profile."""
        self.show_help(self._profile.notes(self._weight.name), tree_first=True)

    def action_panel(self, _: int) -> None:
        """Go to the other list."""
        if self.has_class("on-wings"):
            self.use(False)
        else:
            self.action_walk()

    def action_walk(self) -> None:
        """Show the callers and callees of the function under the cursor."""
        if not self.has_class("on-wings"):
            step = self._step_seen()
            if step is not None:
                self._walk_to(step)
            return
        row = self._wing_under_cursor()
        if row is not None and row.wing is not None and row.side != "itself":
            self._walk_to(row.wing.step)

    def _wing_under_cursor(self) -> WingRow | None:
        current = self._wing_list.current
        return next((row for row in self._wings if self._wing_id(row) == current), None)

    def _walk_to(self, step: Step) -> None:
        self._walked.append(step)
        self.use(True)
        self.call_after_refresh(self._to_the_middle)

    def _to_the_middle(self) -> None:
        if self._root is None:
            return
        self._draw_wings(self._root)
        for row in self._wings:
            if row.side == "itself":
                self._wing_list.choose(self._wing_id(row))

    def leave_part(self) -> bool:
        """Go back one function, if callers and callees have the focus."""
        if not self.has_class("on-wings"):
            return False
        self._walked.pop()
        if self._walked:
            self._to_the_middle()
        else:
            self.use(False)
        return True

    def leave(self) -> None:
        """Leave the call tree, if there is a screen below."""
        if self._pause is not None:
            self.dismiss()

    def action_open(self) -> None:
        """Open the branch, or go to the first row in it."""
        row = self._row_in_use()
        if row is None or row.open is None:
            return
        if row.open:
            self._tree_list.move(1)
        else:
            self._set_open(row, True)

    def action_close(self) -> None:
        """Close the branch, or go to the row that it is in."""
        row = self._row_in_use()
        if row is None:
            return
        if row.open:
            self._set_open(row, False)
            return
        above = [
            parent for parent in self._rows.values() if parent.path == row.path[: len(parent.path)]
        ]
        if len(above) > 1:
            self._tree_list.choose(self._branches.id_of(above[-2].path))

    def _row_in_use(self) -> Row | None:
        if self.active_list() is not self._tree_list or self._tree_list.current is None:
            return None
        return self._rows.get(self._tree_list.current)

    def _set_open(self, row: Row, is_open: bool) -> None:
        self._tree_list.chosen = True
        self._branches.set_open(row.path, is_open)
        self._draw()

    def action_weight(self) -> None:
        """Change to the next weight."""
        weights = self._profile.weights
        if len(weights) == 1:
            self.show_message(f"There is one weight: {weights[0].says}.")
            return
        names = [weight.name for weight in weights]
        self._weight = weights[(names.index(self._weight.name) + 1) % len(names)]
        self._root = None
        self._branches.sort_now()
        self._draw()

    def action_idle(self) -> None:
        """Show or hide waits for work."""
        self._show_idle = not self._show_idle
        self.apply_filter()

    def location_under_cursor(self) -> tuple[str, int] | None:
        """The file and the line of the function under the cursor of the tree."""
        current = self._tree_list.current
        row = self._rows.get(current) if current is not None else None
        location = row.node.location if row is not None else None
        return (location.path or location.file, location.line) if location is not None else None

    def file(self, form: str) -> bytes:
        """The tree, or the butterfly of one function, as ``json`` or ``text``."""
        step = self._walked[-1] if self._walked else None
        return self._formats.render(form, self._profile, self._weight, self._show_idle, step)

    def action_save(self, form: str) -> None:
        """Save what is on the screen: the tree, or the butterfly of one function."""
        data = self.file(form)
        name, suffix = call_tree_name(self._profile), self._formats[form].suffix
        self.save(partial(save_new, name, suffix, data))

    def action_pause(self) -> None:
        """Hold the screen still; the scans go on."""
        if self._pause is not None:
            self._pause()
