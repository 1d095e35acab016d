"""Lets the user choose columns, and save and take views: a list, its order, filter and columns."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable, Mapping

from locktop.collector.config.settings import SavedView
from locktop.collector.errors import LocktopError
from locktop.tui import kept_choices
from locktop.tui.screen_start import start_of
from locktop.tui.screens.list_panels import LockPanel, ThreadPanel
from locktop.tui.screens.monitor_body import MonitorBody
from locktop.tui.widgets.choice_dialog import Choice, ChoiceDialog, Chosen
from locktop.tui.widgets.list_screen import ListScreen

_COLUMN_KEYS = (("Space", "mark"), ("Enter", "keep these"), ("a", "as many as fit"))
_VIEW_KEYS = (("Enter", "take"), ("s", "save this filter"), ("Delete", "forget"))


class ListChoices:
    """The dialogues for columns and for saved views."""

    def __init__(
        self,
        screen: ListScreen,
        body: MonitorBody,
        views: Mapping[str, SavedView],
        go: Callable[[str], None],
    ) -> None:
        """Args:
        screen: has the messages and the dialogues.
        body: has the lists.
        views: the saved views by name.
        go: goes to a view by its name.
        """
        self._screen = screen
        self._body = body
        self._views = dict(views)
        self._go = go

    def open(self, what: str) -> None:
        """Open the dialogue for ``columns``, or for saved ``views``."""
        if what == "columns":
            self.open_columns()
        else:
            self.open_views()

    # Columns

    def open_columns(self) -> None:
        """Open the dialogue for the columns of the list in use."""
        panel = self._panel()
        titles = panel.titles
        if not (titles and self._body.has_columns):
            self._screen.say_without_columns()
            return
        marked = [title.casefold() for title in panel.chosen_columns or panel.visible]
        choices = [Choice(title, "", title.casefold() in marked) for title in titles]
        dialog = ChoiceDialog(f"Columns of {panel.title.lower()}", choices, _COLUMN_KEYS)
        self._screen.app.push_screen(dialog, lambda chosen: self._columns_chosen(panel, chosen))

    def _columns_chosen(self, panel: LockPanel | ThreadPanel, chosen: Chosen | None) -> None:
        if chosen is None:
            return
        panel.chosen_columns = chosen.marked if chosen.key == "enter" else ()
        self._screen.apply_filter()
        name, titles = panel.title.lower(), panel.chosen_columns
        self._screen.start(
            lambda: self._keep(lambda: kept_choices.keep_columns(name, titles)), "choices"
        )

    async def _keep(self, write: Callable[[], None], said: str = "") -> None:
        try:
            await asyncio.to_thread(write)
        except Exception as error:
            self._screen.show_error(error, prefix="Not kept: ")
            return
        if said:
            self._screen.show_message(said)

    def _panel(self) -> LockPanel | ThreadPanel:
        return self._body.threads if self._body.panel() is self._body.threads else self._body.locks

    # Views

    def open_views(self) -> None:
        """Open the list of saved views."""
        choices = [Choice(name, _says(view)) for name, view in sorted(self._views.items())]
        title = "Saved views" if choices else "Saved views: none yet"
        self._screen.app.push_screen(ChoiceDialog(title, choices, _VIEW_KEYS), self._view_chosen)

    def _view_chosen(self, chosen: Chosen | None) -> None:
        if chosen is None:
            return
        if chosen.key == "s":
            self._save_view()
        elif chosen.name in self._views and chosen.key == "enter":
            self._apply(self._views[chosen.name])
        elif chosen.name in self._views:
            name = chosen.name
            if name not in kept_choices.load()[0].views:
                self._screen.show_message(f"The view {name} is in the file of settings.")
                return
            del self._views[name]
            said = f"The view {name} is forgotten."
            self._screen.start(
                lambda: self._keep(lambda: kept_choices.keep_view(name, None), said), "choices"
            )

    def _apply(self, view: SavedView) -> None:
        try:
            start = start_of("saved", "", "", {}, {"saved": view})
        except LocktopError as error:
            self._screen.show_error(error)
            return
        self._body.begin(start)
        self._go(start.view)
        self._screen.filter.value = start.filter

    def _save_view(self) -> None:
        text = self._screen.filter_words
        if not text:
            self._screen.show_message("There is no filter to save: type one with /.")
            return
        panel = self._panel()
        view = SavedView(panel.title.lower(), text, panel.sort_by, panel.chosen_columns)
        self._views[text] = view
        said = f"Saved. v shows the view; --view {shlex.quote(text)} begins with it."
        self._screen.start(
            lambda: self._keep(lambda: kept_choices.keep_view(text, view), said), "choices"
        )


def _says(view: SavedView) -> str:
    parts = [view.view or "locks", view.filter, f"by {view.sort}" if view.sort else ""]
    return ", ".join(filter(None, (*parts, ", ".join(view.columns))))
