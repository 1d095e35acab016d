"""The body of the monitor: its panels, and the view that decides which of them are visible."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Container
from textual.geometry import Size

from locktop.collector.model import Notable
from locktop.collector.render.words.nearest import question
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.tui.feed import SnapshotFeed
from locktop.tui.screen_start import LISTS, ScreenStart
from locktop.tui.screens.activity_reader import ActivityReader
from locktop.tui.screens.blocking_panel import BlockingPanel
from locktop.tui.screens.deadlock_panel import DeadlockPanel
from locktop.tui.screens.details_subject import Topic
from locktop.tui.screens.details_target import DetailsTarget, Followed
from locktop.tui.screens.elsewhere_reader import ElsewhereReader, ProcessChosen
from locktop.tui.screens.list_panels import LockPanel, ThreadPanel
from locktop.tui.typed_filter import TypedFilter
from locktop.tui.views.activity_graphs import activity_graphs
from locktop.tui.views.overview import Room, overview_lines
from locktop.tui.views.subject_graphs import LastMinutes
from locktop.tui.widgets.details import Details
from locktop.tui.widgets.item_list import ItemList
from locktop.tui.widgets.list_area import ListArea
from locktop.tui.widgets.list_screen import ListScreen
from locktop.tui.widgets.scroll_panel import ScrollPanel

if TYPE_CHECKING:
    from textual.screen import Screen

#: From this size the details are beside the lists.
WIDE = (150, 28)
MEDIUM_HEIGHT = 34
#: The views of the body by the classes of the screen.
_OVERVIEW = "overview"
#: The views with one list of their own.
_ONE_LIST = ("blocking", "deadlocks")
AnyPanel = LockPanel | ThreadPanel | BlockingPanel | DeadlockPanel


def compose_body() -> ComposeResult:
    """The widgets of the body."""
    with Container(id="body"):
        yield Details(id=_OVERVIEW)
        with ListArea(id="lists"):
            yield ItemList(id="locks")
            yield ItemList(id="threads")
            yield ItemList(id="blocking")
            yield ItemList(id="deadlocks")
        yield Details(id="details")


def choose_shape(screen: Screen[None], size: Size) -> None:
    """Choose the layout of the body for a size of the terminal."""
    wide = size.width >= WIDE[0] and size.height >= WIDE[1]
    medium = not wide and size.height >= MEDIUM_HEIGHT
    screen.set_class(wide, "wide")
    screen.set_class(medium, "medium")
    screen.set_class(not wide and not medium, "small")


class MonitorBody:
    """Knows which view is visible, and which panel the keys are for."""

    def __init__(self, screen: ListScreen, feed: SnapshotFeed) -> None:
        """Args:
        screen: has the widgets of compose_body(). Its classes say what is visible.
        feed: brings the snapshots.
        """
        self._screen = screen
        self.is_live = True  # whether newer snapshots come to the screen
        self.overview = screen.query_one(f"#{_OVERVIEW}", Details)
        self.details = screen.query_one("#details", Details)
        self._lists = screen.query_one("#lists", ListArea)
        self.locks = LockPanel(screen.query_one("#locks", ItemList))
        self.threads = ThreadPanel(screen.query_one("#threads", ItemList))
        self.blocking = BlockingPanel(screen.query_one("#blocking", ItemList))
        self.blocking.elsewhere = ElsewhereReader(screen, feed, lambda: self.is_live).steps
        self.deadlocks = DeadlockPanel(screen.query_one("#deadlocks", ItemList))
        self.target = DetailsTarget(self.locks, self.threads, self.blocking)
        self._panels: dict[str, AnyPanel] = {
            "locks": self.locks,
            "threads": self.threads,
            "blocking": self.blocking,
            "deadlocks": self.deadlocks,
        }
        self._used = "locks"  # the list in use, or used last

    # Which view

    @property
    def view(self) -> str:
        """The name of the view in use."""
        if self._screen.has_class(_OVERVIEW):
            return _OVERVIEW
        return "details" if self._screen.has_class("zoomed") else self._used

    @property
    def reads_details(self) -> bool:
        """Whether the details have the focus. Widgets learn that later than the screen."""
        return self._screen.focused is self.details

    @property
    def keeps_target(self) -> bool:
        """Whether a list that changes by itself leaves the details as they are."""
        return self.target.stays or self.reads_details

    def panel(self) -> AnyPanel:
        """The list in use, or used last."""
        return self._panels[self._used]

    def panels(self) -> Iterable[AnyPanel]:
        """All lists."""
        return self._panels.values()

    def focused(self) -> ScrollPanel:
        """The panel that the keys move."""
        if self._screen.has_class(_OVERVIEW):
            return self.overview
        return self.details if self.reads_details else self.panel().widget

    def show(self, view: str) -> ScrollPanel:
        """Make a view visible; return the panel that is to have the focus."""
        self._screen.set_class(view == _OVERVIEW, _OVERVIEW)
        self._screen.set_class(view == "details", "zoomed")
        if view == _OVERVIEW:
            return self.overview
        if view == "details":
            if self.panel().subject is None and not self.target.stays:
                self.use(self.locks.widget)  # an empty list has no row to describe
            return self.details
        self.target.clear()
        self.use(self._panels[view].widget)
        return self.panel().widget

    def use(self, used: ItemList) -> None:
        """Let the keys be for this list."""
        self._used = next(name for name, panel in self._panels.items() if panel.widget is used)
        for name in self._panels:
            self._screen.set_class(name == self._used, f"on-{name}")
        self._screen.set_class(self._used in _ONE_LIST, "one-list")

    @property
    def has_columns(self) -> bool:
        """Whether the user can choose the order and the columns of what is seen."""
        return self.view in LISTS

    def next_panel(self, step: int) -> ScrollPanel:
        """The visible panel after the one with the focus, or with -1 before."""
        order: list[ScrollPanel] = [self.locks.widget, self.threads.widget, self.details]
        if self._used in _ONE_LIST:
            order = [self.panel().widget, self.details]
        if self.view in (_OVERVIEW, "details"):
            order = [self.focused()]
        using = order.index(self.focused()) if self.focused() in order else 0
        target = order[(using + step) % len(order)]
        if isinstance(target, ItemList):
            self.target.clear()  # the row under the cursor there is the next target
            # The small layout displays one list, and only a displayed list takes the focus.
            self.use(target)
        return target

    def set_open(self, index: SnapshotIndex, is_open: bool) -> None:
        """Open or close the row under the cursor, or the lines with ▸ of the details."""
        panel, focused = self.panel(), self.focused()
        if focused is self.details:
            self.details.set_open(is_open)
        elif focused is panel.widget:
            panel.set_open(index, is_open)

    # The details

    def enter_details(self, index: SnapshotIndex | None) -> str:
        """Go to the details of the row; in the details walk on. Return why a walk ends, or ""."""
        if self.reads_details:
            return self.target.walk(index) if index is not None else ""
        if self._used == "blocking" and (pid := self.blocking.process_elsewhere):
            self._screen.post_message(ProcessChosen(pid))
            return ""
        if not self.target.stays:
            self.target.take(self.panel().subject)
        self.panel().widget.chosen = True
        self._show_details(whole=self._screen.has_class("small"))
        return ""

    def show_deadlock(self, index: SnapshotIndex) -> bool:
        """Show the deadlock with all its stacks; there, or without one, the potential ones.

        Returns:
            False where there is neither.
        """
        if not self.target.take_deadlock(index, self.reads_details):
            return False
        self._show_details(whole=self._screen.has_class("small"))
        return True

    def zoom(self) -> None:
        """Give the details the whole screen, or a part of it again."""
        self._show_details(whole=not self._screen.has_class("zoomed"))

    def leave_details(self) -> bool:
        """Leave the last step of a walk, or the details; return whether there was any."""
        if not (self._screen.has_class("zoomed") or self.reads_details):
            return False
        if self.target.walk_back():
            return True
        self._screen.remove_class("zoomed")
        if self.target.is_about(Topic.LOCK_ORDERS):
            self.target.clear()
        self._screen.call_after_refresh(self.panel().widget.focus)
        return True

    def _show_details(self, whole: bool) -> None:
        self._screen.set_class(whole, "zoomed")
        self._screen.remove_class(_OVERVIEW)
        self._screen.set_focus(self.details)

    def begin(self, start: ScreenStart) -> list[str]:
        """Take the order and the columns at first; return a message for each that is unknown."""
        wrong: list[str] = []
        lists: dict[str, LockPanel | ThreadPanel] = {"locks": self.locks, "threads": self.threads}
        names = [key.name for panel in lists.values() for key in panel.sort_keys]
        if start.sort and start.sort not in names:
            there_are = f"{', '.join(dict.fromkeys(names))}{question(start.sort, names)}"
            wrong.append(f"no sort key {start.sort!r}: {there_are}")
        for name, panel in lists.items():
            panel.begin(start.sort, start.columns.get(name, ()))
        return wrong

    # Drawing

    def sort_now(self) -> None:
        """Sort the lists at the next drawing."""
        for panel in self._panels.values():
            panel.sort_now()

    def draw_lists(
        self, index: SnapshotIndex, typed: TypedFilter, show_idle: bool, now: float
    ) -> None:
        """Draw the visible lists; see Panel.draw()."""
        for panel in self._panels.values():
            panel.draw(index, typed, show_idle, now)
        self._lists.fit()
        self.target.follow_deadlock(index, self.reads_details)

    def draw_overview(
        self,
        index: SnapshotIndex,
        activity: ActivityReader,
        alerts: Sequence[Notable],
        is_now: bool,
    ) -> None:
        """Draw the overview.

        Args:
            index: the snapshot.
            activity: has the last two minutes before it.
            alerts: all that are known, the oldest first.
            is_now: whether the snapshot is the newest one.
        """
        size = Size(self.overview.size.width - 1, self.overview.page)
        times_ns = [alert.time_ns for alert in alerts]
        graphs = activity_graphs(activity.points(), activity.until_ns, times_ns, size, is_now)
        rest = overview_lines(index, alerts, Room(size.width, size.height - len(graphs)))
        self.overview.set_heads("Overview", "")
        self.overview.show(_OVERVIEW, [*graphs, *rest])

    def draw_details(self, index: SnapshotIndex, activity: ActivityReader) -> Followed:
        """Draw the details; return what each scan is to measure more of.

        Args:
            index: the snapshot.
            activity: has the last two minutes before it.
        """
        self.target.is_live = self.is_live
        if not self.details.display:
            return Followed(0, 0)
        # The message that the cursor moved comes later than the rows.
        if self.target.current is None or not (self.target.stays or self.panel().widget.chosen):
            self.target.take(self.panel().subject)
        width = self.details.size.width - 1
        minutes = LastMinutes(activity.points(), activity.until_ns, width)
        title, lines = self.target.content(index, minutes)
        self.details.set_heads("Details", title)
        current = self.target.current
        self.details.show(current.identity if current is not None else None, lines)
        return self.target.followed(index)
