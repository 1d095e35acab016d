"""The start of the screen: its first view, and the order, filter and columns of the lists."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from locktop.collector.config.settings import SavedView
from locktop.collector.errors import LocktopError
from locktop.collector.render.words.nearest import question
from locktop.tui.monitor_views import VIEW_NAMES

#: The lists that have columns and an order.
LISTS = ("locks", "threads")


class ScreenStart(Struct, frozen=True):
    """The first view, and how its lists are shown."""

    view: str = "locks"
    sort: str = ""  # name of a sort key; "" for the first one of each list
    filter: str = ""
    columns: Mapping[str, tuple[str, ...]] = {}  # titles by list; none: as many as fit
    views: Mapping[str, SavedView] = {}  # the saved views by name


def start_of(
    view: str,
    sort: str,
    filter_text: str,
    columns: Mapping[str, tuple[str, ...]],
    saved: Mapping[str, SavedView],
) -> ScreenStart:
    """Return the start for a view by its name, or by the name that the user saved it under.

    Args:
        view: the name.
        sort: the user's sort key; "" for that of the saved view.
        filter_text: the user's filter; "" for that of the saved view.
        columns: the user's columns by list.
        saved: the saved views by name.

    Raises:
        LocktopError: there is no such view.
    """
    choice = saved.get(view)
    if choice is None:
        _check(view, saved)
        return ScreenStart(view, sort, filter_text, columns, saved)
    name = choice.view or "locks"
    _check(name, {})
    own = {list_of(name): choice.columns} if choice.columns else {}
    return ScreenStart(
        name, sort or choice.sort, filter_text or choice.filter, {**own, **columns}, saved
    )


def list_of(view: str) -> str:
    """Return the list that the columns of a view belong to."""
    return view if view in LISTS else LISTS[0]


def _check(view: str, saved: Mapping[str, SavedView]) -> None:
    if view not in VIEW_NAMES:
        names = (*VIEW_NAMES, *saved)
        there_are = f"there is no such view; there are {', '.join(names)}"
        raise LocktopError(f"--view {view}: {there_are}{question(view, names)}")
