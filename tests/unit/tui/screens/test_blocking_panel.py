"""The blocking tree on the screen: rows, keys, details."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import pytest
from msgspec.structs import replace
from textual.geometry import Size
from unit.builders import blocking, records, scenarios

from locktop.collector.model import Snapshot
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.tui.extension_parts import StepElsewhere
from locktop.tui.screens.blocking_panel import BlockingPanel
from locktop.tui.typed_filter import TypedFilter
from locktop.tui.views.styled_line import Line, line_text
from locktop.tui.widgets.item_list import ItemList


class PlainList:
    """The part of a list widget that a panel uses."""

    display = True

    def __init__(self, width: int) -> None:
        self.size = Size(width, 40)
        self.heads: tuple[str, str, str] = ("", "", "")
        self.ids: list[int] = []
        self.lines: list[str] = []
        self.cursor = 0
        self.chosen = False

    @property
    def current(self) -> int | None:
        return self.ids[self.cursor] if self.cursor < len(self.ids) else None

    def set_heads(self, title: str, detail: str, columns: Line = ()) -> None:
        self.heads = title, detail, line_text(columns)

    def show(self, ids: Sequence[int], row: Callable[[int], Line]) -> None:
        self.ids, self.lines = list(ids), [line_text(row(id_)) for id_ in ids]

    @property
    def current_text(self) -> str:
        return self.lines[self.cursor]

    def choose(self, wanted: int, by_itself: bool = False) -> bool:
        self.cursor = self.ids.index(wanted)
        return True

    def move(self, rows: int) -> None:
        self.cursor += rows


class Driven:
    """A panel over a plain list."""

    def __init__(self, snapshot: Snapshot, width: int = 80) -> None:
        self.index = SnapshotIndex(snapshot)
        self.list = PlainList(width)
        self.panel = BlockingPanel(cast(ItemList, self.list))
        self.typed = TypedFilter()
        self.draw()

    def draw(self) -> list[str]:
        self.panel.draw(self.index, self.typed, show_idle=False, now=0.0)
        return self.list.lines

    def open(self, is_open: bool) -> list[str]:
        self.panel.set_open(self.index, is_open)
        return self.draw()

    def details(self) -> str:
        found = self.panel.details(self.index, self.list.current or 0)
        assert found is not None
        return "\n".join([found[0], *map(line_text, found[1])])


def test_the_root_has_its_lock_its_location_its_activity_and_what_is_behind() -> None:
    driven = Driven(blocking.pool_behind_index())
    first, about, user, crowd, *others = driven.list.lines
    assert first.split()[:3] == ["*▾", "loader", "g_index_lock"]
    assert first.split()[3:] == ["13.0s", "300", "300s"]
    assert about.strip().startswith("held 13.0s at journal_write journal.c:210; now in read(7")
    assert user.split()[:3] == ["▾", "user-200", "g_index_lock"]
    assert crowd.split()[:3] == ["▸", "worker-#", "x292"]
    assert "user-201 +6" in crowd, "the other holders of a connection"
    assert all(len(line) <= 80 for line in driven.list.lines)
    assert [line.split()[1:4] for line in others] == [["user-#", "7", "threads"]]
    assert driven.list.heads[1] == "300 waiting behind 1 root"


def test_a_wide_row_says_all_in_columns() -> None:
    first, second, *_ = Driven(blocking.pool_behind_index(), 240).list.lines
    assert "in read(7 -> /var/lib/x/index) for 3.00 s" in first
    assert "journal_write journal.c:210" in first
    assert " 100 " in first, "the tid"
    assert "user-200" in second


@pytest.mark.parametrize("width", [80, 90, 100, 139, 140, 200])
def test_a_row_fits(width: int) -> None:
    for snapshot in (blocking.pool_behind_index(), scenarios.normal(), scenarios.deadlock()):
        driven = Driven(snapshot, width)
        assert driven.list.lines
        assert all(len(line) <= width for line in driven.list.lines)
        assert len(driven.list.heads[2]) <= width


def test_rows_open_and_close() -> None:
    driven = Driven(blocking.pool_behind_index())
    driven.list.cursor = 3  # the crowd
    opened = driven.open(True)
    assert opened[4].strip().startswith("worker-300")
    assert "and 242 more" in opened[54]
    driven.open(True)
    assert driven.list.cursor == 4, "go into an open row"
    driven.open(False)
    assert driven.list.cursor == 3, "go out to the row above"
    assert len(driven.open(False)) == 5
    driven.open(False)
    assert driven.list.cursor == 2, "a closed row leads to its parent"
    driven.list.cursor = 0
    assert len(driven.open(False)) == 2
    assert driven.list.lines[0].startswith("*▸ loader")


def test_the_rows_keep_their_ids_from_scan_to_scan() -> None:
    driven = Driven(blocking.pool_behind_index())
    ids = driven.list.ids
    driven.index = SnapshotIndex(blocking.pool_behind_index(duration_s=14.0))
    driven.draw()
    assert driven.list.ids == ids
    assert ids[0] == blocking.HOLDER


def test_the_details_say_what_waits_behind() -> None:
    driven = Driven(blocking.pool_behind_index())
    text = driven.details()
    assert text.startswith("of a thread")
    assert "300 threads wait behind this, 300 s each second; longest 12.0s user-200" in text
    assert "g_index_lock for 13.0s, taken at journal_write journal.c:210" in text
    driven.list.cursor = 3
    assert "waits for g_pool (sem) for 11.0s" in driven.details()
    lock = driven.panel.lock(driven.index)
    assert lock is not None
    assert lock.name == "g_pool"


def test_a_cycle_is_a_root() -> None:
    driven = Driven(scenarios.deadlock())
    ring = next(i for i, line in enumerate(driven.list.lines) if line.startswith("!▾"))
    driven.list.cursor = ring
    text = driven.details()
    assert text.startswith("of a cycle")
    assert " waits for " in text
    assert ", held by " in text
    assert "wait for each other" in driven.list.lines[ring + 1]


def test_a_lock_with_an_unknown_holder_is_a_root() -> None:
    snapshot = blocking.pool_behind_index(4)
    threads = tuple(replace(thread, uses=None) for thread in snapshot.threads)
    driven = Driven(replace(snapshot, threads=threads))
    row = next(i for i, line in enumerate(driven.list.lines) if line.startswith("*▾ g_pool"))
    assert "its holder is not known" in driven.list.lines[row + 1]
    driven.list.cursor = row
    assert driven.details().startswith("of a lock")


def test_roots_alike_are_one_row_that_opens_and_names_the_only_thread_that_does_not_wait() -> None:
    driven = Driven(blocking.writers(11))
    assert len(driven.list.lines) == 2
    assert driven.list.lines[0].startswith("*▸ AwaitState[]  11 locks")
    assert driven.list.lines[0].split()[-3:] == ["1.10s", "11", "11.0s"]
    unknown = "holder not known; the only thread that does not wait: leader"
    assert driven.list.lines[1].strip() == unknown
    assert driven.list.heads[1] == "11 waiting behind 11 roots"
    assert driven.details().startswith("of a thread")
    opened = driven.open(True)
    assert opened[2].startswith("*  ▾ AwaitState[10]")
    assert len(opened) == 2 + 2 * 11
    assert len(driven.open(False)) == 2
    driven.typed.type("writer-205")
    assert len(driven.draw()) == 2
    driven.typed.type("nothing")
    assert driven.draw() == []


def test_a_filter_leaves_the_trees_with_a_found_thread() -> None:
    driven = Driven(scenarios.normal())
    assert sum(line.startswith("*") for line in driven.list.lines) == 2
    driven.typed.type("reader")
    assert [line.split()[1] for line in driven.draw() if line.startswith("*")] == ["journal"]


def test_nothing_waits() -> None:
    driven = Driven(records.snapshot((), ()))
    assert driven.list.lines == []
    assert driven.list.heads[1] == "no wait for a lock is observed now"
    driven.open(True)
    assert driven.panel.lock(driven.index) is None
    driven.index = SnapshotIndex(records.snapshot((), (), level="dormant"))
    driven.draw()
    assert driven.list.heads[1] == "not known: the library is dormant"


@pytest.mark.parametrize("snapshot", [blocking.pool_behind_index(), scenarios.deadlock()])
def test_rows_of_another_moment_do_without_the_threads_that_ended(snapshot: Snapshot) -> None:
    driven = Driven(snapshot, width=200)
    driven.index = SnapshotIndex(replace(snapshot, threads=()))
    for cursor in range(len(driven.list.ids)):
        driven.list.cursor = cursor
        assert driven.details()
        assert driven.panel.row_text(driven.index)


def test_the_steps_in_other_processes_are_below_the_root_whose_thread_waits() -> None:
    driven = Driven(blocking.pool_behind_index())
    steps = [StepElsewhere(1, "loader: writes"), StepElsewhere(42, "the only reader is cat 42")]
    wanted: list[Sequence[int]] = []

    def elsewhere(pid: int, tids: Sequence[int]) -> dict[int, list[StepElsewhere]]:
        wanted.append(tids)
        return {tids[0]: steps}

    driven.panel.elsewhere = elsewhere
    root, _, step, user, *_ = driven.draw()
    assert wanted == [[driven.index.blocking.roots[0].tids[0]]]
    assert root.split()[:2] == ["*▾", "loader"]
    assert step.strip() == "→ the only reader is cat 42"
    assert user.split()[0] == "▾"
    assert driven.panel.process_elsewhere == 0
    driven.list.cursor = 2
    assert driven.panel.process_elsewhere == 42
    assert driven.panel.row_text(driven.index) == driven.list.current_text


def test_without_waits_for_locks_the_steps_begin_at_the_first_thread() -> None:
    driven = Driven(records.snapshot((), ()))
    assert driven.list.lines == []
    driven.panel.elsewhere = lambda pid, tids: {0: [StepElsewhere(pid, "a"), StepElsewhere(7, "b")]}
    assert [line.strip() for line in driven.draw()] == ["→ a", "→ b"]
    assert driven.list.heads[1] == "no wait for a lock is observed now, but for another process"
    driven.list.cursor = 0
    assert driven.panel.process_elsewhere == 0  # the process that is watched already
    driven.typed.type("x")
    assert driven.draw() == []
