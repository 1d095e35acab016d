"""The code that runs inside a lock: functions with shares, and the tree below the call sites."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container

from locktop.collector.extensions.inside.formats import INSIDE_FORMATS
from locktop.collector.extensions.inside.inside_tree import FunctionShare
from locktop.collector.extensions.inside.lock_profile import InsideLockProfile
from locktop.collector.extensions.inside.model import inside_of, profile_of
from locktop.collector.model import Lock, Snapshot
from locktop.collector.render.files import save_new
from locktop.collector.render.profiles.call_tree import Node, Step
from locktop.collector.render.profiles.profile import Profile
from locktop.collector.render.rendered_files import call_tree_name
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.tui.bindings import bindings
from locktop.tui.extensions.inside.lines import (
    SORT_KEYS,
    function_columns,
    inside_title,
    missing_samples,
    samples_line,
)
from locktop.tui.extensions.inside.sampling import InsideSampling
from locktop.tui.extensions.inside.screen_actions import SCREEN_ACTIONS
from locktop.tui.new_notes import NewNotes
from locktop.tui.screens.call_tree import CallTreeScreen, StatusLine
from locktop.tui.views.call_tree_rows import TreeWords, location_of
from locktop.tui.views.sorting import StableSorter, matches, next_sort_key, sort_key_named
from locktop.tui.views.styled_line import Line, make_line, wrap
from locktop.tui.views.table import lay_out
from locktop.tui.widgets.item_list import ItemList
from locktop.tui.widgets.list_screen import Travel

#: How long a note stays in the last line.
_NOTES_S = 15.0
#: The indentation of a wrapped reason.
_INDENT = 2


class InsideLockScreen(CallTreeScreen):
    """Shows the samples of one lock, of the newest snapshot or of a moment of the past.

    While the screen shows now, locktop samples the threads that hold the lock.
    """

    SCREEN = SCREEN_ACTIONS
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(*SCREEN_ACTIONS.actions)]
    CSS = """
    #inside { height: 1fr; width: 100%; }
    #functions { height: 2fr; }
    InsideLockScreen #tree, InsideLockScreen.both #tree {
        height: 3fr; width: 100%; display: block;
    }
    InsideLockScreen.on-wings #inside { display: none; }
    InsideLockScreen.both #inside { width: 60%; display: block; }
    """
    WORDS = TreeWords(
        caption="from the calls that took the lock, ",
        top="no caller: takes the lock",
    )

    def __init__(
        self,
        snapshot: Snapshot,
        lock: Lock,
        sampling: InsideSampling,
        status: StatusLine,
        *,
        pause: Callable[[], None],
        travel: Travel,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make the screen; see CallTreeScreen for the other arguments.

        Args:
            snapshot: the snapshot to begin with.
            lock: of the snapshot.
            sampling: takes the samples.
        """
        self._lock = lock
        self._profile: InsideLockProfile
        super().__init__(
            InsideLockProfile(snapshot, lock), status, pause=pause, travel=travel, now=now
        )
        self._sampling = sampling
        self._is_gone = False
        self._functions: Sequence[FunctionShare] = ()  # of all samples that the weight counts
        self._shares: dict[int, FunctionShare] = {}
        self._ids: dict[Step, int] = {}  # of rows
        self._sorter = StableSorter()
        self._sort_by = SORT_KEYS[0].name
        self._new_notes = NewNotes()
        self._new_notes.select(snapshot.notes)
        self._function_list = self._first = ItemList(id="functions")

    def compose_lists(self) -> ComposeResult:
        """The functions above the tree, and callers and callees."""
        with Container(id="inside"):
            yield self._function_list
            yield self._tree_list
        yield self._wing_list

    def on_mount(self) -> None:
        """Begin to sample."""
        self._sample(self._profile.snapshot)

    def on_unmount(self) -> None:
        """Take no more samples."""
        self._sampling.end()

    def profile_of(self, snapshot: Snapshot) -> Profile:
        """See CallTreeScreen. A lock that is not there has no samples."""
        lock = next((lock for lock in snapshot.locks if lock.id == self._lock.id), None)
        self._is_gone = lock is None
        self._lock = lock or self._lock
        return InsideLockProfile(snapshot, self._lock)

    def show_snapshot(self, snapshot: Snapshot) -> None:
        super().show_snapshot(snapshot)
        if self.is_mounted:
            self._sample(snapshot)
            if new := self._new_notes.select(snapshot.notes):
                self.show_message(*new, style="waiting", seconds=_NOTES_S)

    def _sample(self, snapshot: Snapshot) -> None:
        if not self._is_past and not snapshot.ended:
            self._sampling.begin(self._lock.id, self._draw)

    @property
    def _is_past(self) -> bool:
        return self._travel is not None and self._travel.is_active

    # Drawing

    def add_up(self) -> Node:
        self._functions = self._profile.functions(self._weight.name)
        return super().add_up()

    def headline(self, root: Node, width: int) -> Sequence[Line]:
        """See CallTreeScreen. Without samples the lines say why."""
        reason = self._reason()
        if not reason:
            is_sampling = self._sampling.is_on and not self._is_past
            return (samples_line(self._profile.snapshot, self._profile.lock, is_sampling, width),)
        line = (*inside_title(self._profile.lock), *make_line((reason, "waiting")))
        return wrap(line, width, _INDENT)

    def _reason(self) -> str:
        """Why there are no samples; "" if there are some."""
        snapshot, sampling = self._profile.snapshot, self._sampling
        of_lock = inside_of(snapshot, self._lock.id)
        if of_lock is not None and of_lock.samples:
            return ""
        if sampling.refusal and not self._is_past:
            return sampling.refusal
        if self._is_gone:
            return "the lock is not in this snapshot"
        if profile_of(snapshot) is None:
            if self._is_past or sampling.is_replay:
                return "no samples at this moment: locktop takes them only while asked to"
            return "no samples: the process has ended" if snapshot.ended else "sampling begins"
        return missing_samples(SnapshotIndex(snapshot), self._profile.lock)

    def draw_tree(self, root: Node) -> None:
        """Draw the functions and the tree."""
        self._draw_functions()
        super().draw_tree(root)

    def _draw_functions(self) -> None:
        key = sort_key_named(SORT_KEYS, self._sort_by)
        rows = {
            self._ids.setdefault(function.step, len(self._ids)): function
            for function in sorted(self._functions, key=key.key)
            if matches(location_of(function.step, function.location), self.filter_words)
        }
        # A moment of the past may be far from the one before, and no drawing follows.
        if self._is_past or not self._shares:
            self._sorter.sort_now()
        self._shares = rows
        ids = self._sorter.arrange(list(rows), self._now(), lambda: list(rows))
        samples = max(sum(function.own for function in self._functions), 1)
        table = lay_out(function_columns(samples), self._function_list.size.width)
        self._function_list.set_heads(
            "Functions", f"by {self._weight.says} in them", table.heading(key.column)
        )
        self._function_list.show(ids, lambda id_: table.line(rows[id_]))

    # The lists

    def first_list(self) -> ItemList:
        return self._first

    def take_list(self, used: ItemList) -> None:
        if used is not self._wing_list:
            self._first = used

    def step_under_cursor(self) -> Step | None:
        if self._first is not self._function_list:
            return super().step_under_cursor()
        current = self._function_list.current
        share = self._shares.get(current) if current is not None else None
        return share.step if share is not None else None

    def apply_filter(self) -> None:
        self._sorter.sort_now()
        super().apply_filter()

    # Actions, as named in actions.py

    def action_panel(self, step: int) -> None:
        """Go to the next list: functions, tree, callers and callees."""
        lists = [self._function_list, self._tree_list, self._wing_list]
        target = lists[(lists.index(self.active_list()) + step) % len(lists)]
        if target is self._wing_list:
            self.action_walk()
        else:
            self._first = target
            self.use(wings=False)

    def action_sort(self) -> None:
        """Sort the functions by the next column."""
        self._sort_by = next_sort_key(SORT_KEYS, self._sort_by)
        self.apply_filter()

    def action_weight(self) -> None:
        """Change to the next weight."""
        self._sorter.sort_now()
        super().action_weight()

    def file(self, form: str) -> bytes:
        """All that runs inside the lock, as ``json`` or ``text``."""
        return INSIDE_FORMATS.render(form, self._profile.snapshot, self._profile.lock)

    def action_copy(self, what: str) -> None:
        """See ListScreen. Without samples there is no report."""
        if what == "report" and (reason := self._reason()):
            self.show_message(f"Not copied: {reason}")
            return
        super().action_copy(what)

    def action_save(self, form: str) -> None:
        """Save all that runs inside the lock."""
        if reason := self._reason():
            self.show_message(f"Not saved: {reason}")
            return
        name, suffix = call_tree_name(self._profile), INSIDE_FORMATS[form].suffix
        self.save(partial(save_new, name, suffix, self.file(form)))
