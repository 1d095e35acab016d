"""The screen and the reports call unknown figures unknown, not zero or nobody."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace
from support.driven import opened
from unit.builders import records, scenarios

from locktop.collector.analysis.idle.classifier import most_wait_first
from locktop.collector.model import Held, Kind, Snapshot, Thread, ThreadState, WaitStack
from locktop.collector.render.text import report
from locktop.collector.render.words import verdict
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.tui.views import lock_list, thread_list
from locktop.tui.views.banner import no_deadlock
from locktop.tui.views.class_details import class_details
from locktop.tui.views.group_details import group_details
from locktop.tui.views.headline import headline
from locktop.tui.views.shorten import middle
from locktop.tui.views.styled_line import line_text
from locktop.tui.views.thread_details import thread_details


def native_stacks() -> Snapshot:
    return records.sampled(scenarios.normal())


def of_python(count: int = 3) -> Snapshot:
    """Threads that each wait for a Python lock of one name, without known holders."""
    threads = tuple(
        records.thread(
            10 + n, f"w{n}", ThreadState.WAITING,
            waiting_for=replace(records.wait(50 + n, Kind.SEM, 7.0), idle=False),
        )
        for n in range(count)
    )  # fmt: skip
    sleeper = records.thread(9, "sleeper", ThreadState.IDLE)
    locks = tuple(
        replace(records.lock(
            50 + n, "Lock in transfer (bank.py:9)", Kind.SEM, wait_s=7.0, waiters=(10 + n,),
            wait_stacks=(WaitStack(1, 0, 7.0),),
        ), used_as_lock=True, idle=False)
        for n in range(count)
    )  # fmt: skip
    made = records.snapshot((sleeper, *threads), locks)
    return records.sampled(replace(made, stacks=records.STACKS))


def details_of(seen: Snapshot, thread: Thread) -> str:
    return "\n".join(map(line_text, thread_details(SnapshotIndex(seen), thread)))


def test_the_deadlock_line_distinguishes_none_from_unknown() -> None:
    assert no_deadlock(SnapshotIndex(scenarios.normal())).startswith("There is no deadlock.")
    hidden = SnapshotIndex(of_python())
    assert no_deadlock(hidden) == (
        "No deadlock is found, but the holders of what 3 threads wait for are not known."
    )
    assert "the holder of what a thread waits for" in no_deadlock(SnapshotIndex(of_python(1)))
    calm = replace(of_python(0), threads=())
    assert no_deadlock(SnapshotIndex(calm)) == (
        "No deadlock is found. Potential deadlocks of a sampled process are not known."
    )
    dormant = replace(scenarios.normal(), threads=(), complete=False)
    assert "not every held lock is known" in no_deadlock(SnapshotIndex(dormant))


async def test_keys_say_that_figures_are_unknown() -> None:
    async with opened(of_python()) as screen:
        await screen.keys("d")
        await screen.says("holders of what 3 threads wait for are not known")
        await screen.keys("L")
        await screen.says("There is no level to set: the process runs without the library.")


def test_the_verdict_counts_waits_of_unknown_holders() -> None:
    line = verdict.line(of_python())
    assert "3 waiting for a lock (3 for one whose holder is not known)" in line
    calm = verdict.line(scenarios.normal())
    assert "waiting for a lock" in calm
    assert "not known" not in calm


def test_class_details_name_unknown_holders() -> None:
    index = SnapshotIndex(of_python())
    (of,) = index.classes.values()
    said = "\n".join(map(line_text, class_details(index, of)))
    assert "held by   likely sleeper, the only thread that does not wait" in said
    free = replace(
        of_python(), threads=(), locks=tuple(replace(one, waiters=()) for one in of_python().locks)
    )
    index = SnapshotIndex(free)
    (of,) = index.classes.values()
    assert "held by" not in "\n".join(map(line_text, class_details(index, of)))


def test_details_of_a_sampled_thread_name_unknown_figures() -> None:
    seen = native_stacks()
    thread = replace(seen.threads[0], holds=(), wait_s={}, waiting_for=None)
    seen = replace(seen, threads=(thread, *seen.threads[1:]))
    said = details_of(seen, thread)
    assert "waited    never observed" in said
    assert "holds     nothing that is known" in said
    assert "acquired" not in said
    counted = scenarios.normal()
    within = details_of(counted, replace(counted.threads[0], holds=(), wait_s={}, waiting_for=None))
    assert "waited    never\n" in within
    assert "holds     nothing\n" in within
    assert "acquired  " in within


@pytest.mark.parametrize("sampled", [True, False])
def test_group_details_have_waits_for_objects_without_owners(sampled: bool) -> None:
    seen = of_python(1)
    same = tuple(
        replace(seen.threads[1], tid=20 + n, name=f"pool-{n}", wait_s={Kind.SEM: 7.0})
        for n in range(4)
    )
    if not sampled:
        seen = replace(seen, source="preload", level="contended")
        same = tuple(replace(thread, acquisitions=7, contended=1) for thread in same)
    index = SnapshotIndex(replace(seen, threads=same))
    (group,) = index.groups.values()
    said = "\n".join(map(line_text, group_details(index, group)))
    assert "waited    28.0s for locks, all together" in said
    assert ("acquired" in said) is not sampled


def test_unsampled_figures_are_dashes() -> None:
    index = SnapshotIndex(records.sampled(scenarios.fleet()))
    cells = {
        column.title: {
            column.cell(row)[0] for row in (*index.locks.values(), *index.classes.values())
        }
        for column in lock_list.columns(index)
    }
    unmeasured = (
        "CONT/s",
        "HELD%",
        "CONTEND",
        "HOLD~",
        "ACQ/s",
        "WAIT50",
        "WAIT99",
        "HOLD50",
        "HOLD99",
    )
    for title in unmeasured:
        assert cells[title] == {"-"}, title
    assert len(cells["WAIT/s"]) > 1
    (contended,) = (one for one in thread_list.columns(index) if one.title == "CONTEND")
    rows = (*index.threads.values(), *index.groups.values())
    assert {contended.cell(row)[0] for row in rows} == {"-"}


def test_a_group_with_one_thread_that_was_not_counted_has_no_count() -> None:
    seen = scenarios.fleet()
    index = SnapshotIndex(seen)
    group = next(iter(index.groups.values()))
    not_counted = replace(group.threads[0], acquisitions=None, contended=None)
    group = replace(group, threads=(not_counted, *group.threads[1:]))
    assert "acquired" not in "\n".join(map(line_text, group_details(index, group)))


def test_locks_without_counts_are_sorted_as_with_counts_of_zero() -> None:
    seen = records.sampled(scenarios.fleet())
    zeros = [
        replace(lock, hold_s=0.0, rates=replace(lock.rates, contended=0.0, hold=0.0))
        for lock in seen.locks
    ]
    for key in lock_list.SORT_KEYS:
        in_order = [lock.id for lock in sorted(seen.locks, key=key.key)]
        assert in_order == [lock.id for lock in sorted(zeros, key=key.key)]
    acquired = [replace(lock, acquisitions=0) for lock in seen.locks]
    assert [lock.id for lock in sorted(seen.locks, key=most_wait_first)] == [
        lock.id for lock in sorted(acquired, key=most_wait_first)
    ]


def test_the_text_report_of_samples_has_no_signals_and_holds() -> None:
    seen = scenarios.normal()
    page = report.render(seen)
    sampled = report.render(records.sampled(seen))
    row = r"^ +3  12 min 34 s +{}  cond  pool_ready$"
    assert re.search(row.format("[0-9]+"), page, re.MULTILINE)
    assert re.search(row.format("-"), sampled, re.MULTILINE)
    assert re.search(r"^ +21.3 ms +- +900 us +- +-  mutex +stats_mutex$", sampled, re.MULTILINE)


def test_the_first_line_names_the_only_thread_that_may_hold_the_lock() -> None:
    for width in (76, 120):
        line = line_text(headline(SnapshotIndex(of_python(1)), width))
        assert line.endswith("; only sleeper does not wait")


def test_the_text_report_calls_a_sleeping_holder_asleep() -> None:
    seen = of_python(1)
    holder = replace(seen.threads[0], holds=(Held(50, 0, None),))
    page = report.render(replace(seen, threads=(holder, seen.threads[1])))
    assert "2 threads (1 asleep, 1 waiting)" in page
    assert "2 threads (1 idle, 1 waiting)" in report.render(seen)


def test_the_text_report_omits_call_sites_of_little_wait() -> None:
    seen = scenarios.normal()
    first, second, *rest = seen.locks
    stacks = (WaitStack(1, 5, 100.0),), (WaitStack(2, 5, 0.05),)
    most = replace(first, wait_s=100.0, wait_stacks=stacks[0])
    least = replace(second, wait_s=0.05, wait_stacks=stacks[1])
    page = report.render(replace(seen, locks=(most, least, *rest)))
    assert f"{first.name}, 100 % of its wait" in page
    assert f"{second.name}, 100 % of its wait" not in page
    more = replace(seen, locks=(most, replace(least, wait_s=1.0), *rest))
    assert f"{second.name}, 5 % of its wait" in report.render(more)


def test_a_long_name_loses_its_least_telling_part_first() -> None:
    name = "acme::storage::index_[abi:cxx11].rw"
    assert middle(name, 60) == name
    assert middle(name, 26) == "acme::storage::index_.rw"
    assert middle(name, 12) == "ac…index_.rw"
