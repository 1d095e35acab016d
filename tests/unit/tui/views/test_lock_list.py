"""The rows of the two lists, and their order."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from rich.cells import cell_len
from unit.builders import blocking, records, scenarios

from locktop.collector.model import (
    ActivityState,
    Held,
    Kind,
    LockClass,
    Snapshot,
    ThreadActivity,
)
from locktop.collector.model.lock_figures import figure_columns
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.tui.views import lock_list, thread_list
from locktop.tui.views.sorting import StableSorter, matches
from locktop.tui.views.styled_line import line_text
from locktop.tui.views.table import lay_out


@pytest.mark.parametrize("width", range(60, 220, 7))
def test_rows_fill_the_width_exactly_and_stand_under_their_titles(width: int) -> None:
    index = SnapshotIndex(scenarios.hostile())
    locks = lay_out(lock_list.columns(index), width)
    threads = lay_out(thread_list.columns(index), width)
    for lock in index.locks.values():
        text = line_text(locks.line(lock, lock_list.mark(index, lock)))
        assert cell_len(text) == cell_len(line_text(locks.heading()))
    for thread in index.threads.values():
        text = line_text(threads.line(thread, thread_list.mark(index, thread)))
        assert cell_len(text) == cell_len(line_text(threads.heading()))
    if width >= 80:
        assert cell_len(line_text(locks.heading())) <= width
        assert cell_len(line_text(threads.heading())) <= width


def test_long_names_in_lists_keep_both_ends() -> None:
    calm = scenarios.normal()
    locks = tuple(replace(k, name=f"customer::database::pool_{k.id}_mutex") for k in calm.locks)
    index = SnapshotIndex(replace(calm, locks=locks))
    table = lay_out(lock_list.columns(index), 80)
    assert "*customer…pool_1_mutex" in line_text(table.line(index.locks[1], ("*", "waiting")))
    waits = lay_out(thread_list.columns(index), 80)
    assert "custo…pool_1_mutex" in line_text(waits.line(index.threads[4712]))


@pytest.mark.parametrize(
    ("longest_s", "is_bound", "text"),
    [(2.67, False, " 2.67s "), (2.67, True, " <2.67s "), (754.0, True, " <13m ")],
)
def test_an_upper_bound_of_the_longest_wait_has_a_sign(
    longest_s: float, is_bound: bool, text: str
) -> None:
    calm = scenarios.normal()
    lock = replace(calm.locks[0], wait_max_s=longest_s, wait_max_is_bound=is_bound)
    of_class = LockClass("m", lock.kind, (lock.id,), (lock,))
    table = lay_out(lock_list.columns(SnapshotIndex(replace(calm, locks=(lock,)))), 80)
    for row in (lock, of_class):
        assert text in line_text(table.line(row)) + " "


@pytest.mark.parametrize(
    ("longest_s", "text"),
    [(2.67, " >2.67s "), (754.0, " >12m "), (0.0312, " >31ms "), (0.0, " - ")],
)
def test_a_lower_bound_of_the_longest_wait_has_a_sign(longest_s: float, text: str) -> None:
    calm = scenarios.normal()
    lock = replace(calm.locks[0], wait_max_s=longest_s, wait_max_is_lower_bound=True)
    of_class = LockClass("m", lock.kind, (lock.id,), (lock,))
    table = lay_out(lock_list.columns(SnapshotIndex(replace(calm, locks=(lock,)))), 80)
    for row in (lock, of_class):
        assert text in line_text(table.line(row)) + " "


def test_rows_have_few_spans() -> None:
    index = SnapshotIndex(scenarios.normal())
    table = lay_out(lock_list.columns(index), 120)
    rows = [table.line(lock, lock_list.mark(index, lock)) for lock in index.locks.values()]
    assert max(len(row) for row in rows) <= 8


def test_every_kind_of_lock_has_room_for_its_name() -> None:
    kinds = next(
        c for c in lock_list.columns(SnapshotIndex(scenarios.empty())) if c.title == "KIND"
    )
    assert max(len(kind.value) for kind in Kind) <= kinds.width


def test_a_lock_without_a_release_is_held_all_the_time() -> None:
    lock = replace(scenarios.deadlock().locks[0], hold_timed=0)
    columns = {
        column.title: column for column in lock_list.columns(SnapshotIndex(scenarios.deadlock()))
    }
    assert columns["HELD%"].cell(lock)[0] == "100%"
    assert columns["HELD%"].cell(records.lock(1, "new"))[0] == "-"


def test_lists_name_a_location_by_function_and_line() -> None:
    index = SnapshotIndex(scenarios.deadlock())
    locks = {column.title: column for column in lock_list.columns(index)}
    threads = {column.title: column for column in thread_list.columns(index)}
    assert locks["HELD AT"].cell(index.locks[10])[0] == "take_left ring.c:31"
    assert threads["AT"].cell(index.threads[4730])[0] == "take_right ring.c:36"
    assert threads["AT"].cell(index.threads[4711])[0] == "cache_put cache.c:88"
    assert threads["AT"].cell(index.threads[4715])[0].endswith(" table.cc:301")
    assert threads["AT"].cell(index.threads[4714])[0] == ""


def test_a_filter_matches_every_word_in_any_case() -> None:
    assert matches("g_cache_lock mutex Worker", "CACHE worker")
    assert not matches("g_cache_lock mutex", "cache worker")
    assert matches("anything", "")


def test_sorting_happens_when_due_and_keeps_the_rows_otherwise() -> None:
    ordering = StableSorter(every_s=1.0)
    assert ordering.arrange([1, 2, 3], 0.0, lambda: [3, 2, 1]) == [3, 2, 1]
    assert ordering.arrange([1, 2, 3, 4], 0.5, lambda: [4, 3, 2, 1]) == [3, 2, 1, 4]
    assert ordering.arrange([1, 4], 0.6, lambda: [4, 1]) == [1, 4]
    assert ordering.arrange([1, 4], 1.0, lambda: [4, 1]) == [4, 1]
    ordering.sort_now()
    assert ordering.arrange([1, 4], 1.1, lambda: [1, 4]) == [1, 4]


def test_a_wide_list_has_the_activity_of_each_holder() -> None:
    calm = scenarios.normal()
    waits = replace(calm.threads[4], holds=(Held(3, 0x401100, 1.0),))
    third = replace(
        calm.locks[2],
        holders=(4715,),
        waiters=(4712,),
        holder_activity=ThreadActivity(4715, ActivityState.WAITING),
    )
    index = SnapshotIndex(
        replace(
            calm,
            threads=(*calm.threads[:4], waits, *calm.threads[5:]),
            locks=(*calm.locks[:2], third, *calm.locks[3:]),
        )
    )
    table = lay_out(lock_list.columns(index), 180)
    rows = [line_text(table.line(lock)) for lock in index.snapshot.locks[:4]]
    assert "runs cache_copy:61" in rows[0]
    assert "in fsync(7 -> /var/lib/sto" in rows[1]
    assert "waits for g_table_lock" in rows[2]
    assert lock_list.HOLDER_NOW in line_text(table.heading("WAIT"))
    assert not lay_out(lock_list.columns(index), 127).has(lock_list.HOLDER_NOW)


def sorted_names(snapshot: Snapshot) -> list[str]:
    index = SnapshotIndex(snapshot)
    return [lock.name for lock in sorted(snapshot.locks, key=lock_list.SORT_KEYS[0].row_key(index))]


def test_the_root_of_a_chain_is_above_the_locks_behind_it() -> None:
    """The crowd has waited far longer for the pool than its holders for the index."""
    made = blocking.pool_behind_index()
    assert sorted_names(made) == ["g_index_lock", "g_pool"]
    old = tuple(replace(lock, wait_s=lock.wait_s * 1000) for lock in made.locks[:1])
    assert sorted_names(replace(made, locks=(*old, *made.locks[1:]))) == ["g_index_lock", "g_pool"]
    assert sorted_names(blocking.pool_behind_index(duration_s=1.001))[0] == "g_index_lock"


def test_short_waits_and_waits_without_a_chain_change_no_order() -> None:
    made = blocking.pool_behind_index()
    short = tuple(
        replace(thread, waiting_for=replace(wait, duration_s=0.001))
        if (wait := thread.waiting_for) is not None
        else thread
        for thread in made.threads
    )
    by_wait = sorted(made.locks, key=lambda lock: -lock.wait_s)
    assert sorted_names(replace(made, threads=short)) == [lock.name for lock in by_wait]
    assert sorted_names(replace(made, threads=())) == [lock.name for lock in by_wait]


def test_each_declared_column_has_an_order_with_the_most_first() -> None:
    keys = {key.column: key for key in lock_list.SORT_KEYS}
    for name, column, _ in figure_columns():
        key = keys[column.title]
        assert key.name == column.title.lower()
        locks = [replace(records.lock(id_, "m"), **{name: id_}) for id_ in (1, 3, 2)]
        unmeasured = replace(records.lock(4, "m"), **{name: None})
        ordered = sorted([unmeasured, *locks], key=key.row_key(SnapshotIndex(scenarios.normal())))
        assert [lock.id for lock in ordered] == [3, 2, 1, 4]


def test_the_names_of_orders_are_unlike() -> None:
    names = [key.name for key in lock_list.SORT_KEYS]
    assert len(set(names)) == len(names)
