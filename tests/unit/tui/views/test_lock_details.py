"""The details of locks and threads."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace
from unit.builders import blocking, python_waits, records, scenarios

from locktop.collector.model import (
    ActivityState,
    Blame,
    Event,
    Frame,
    Held,
    Kind,
    Snapshot,
    ThreadActivity,
    ThreadGroup,
    ThreadState,
    UnobservedWait,
    Wait,
    WaitStack,
)
from locktop.collector.recording.past_pressure import PressurePhase
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.tui.views import lock_list, thread_list
from locktop.tui.views.detail_parts import latest_events
from locktop.tui.views.headline import headline
from locktop.tui.views.lock_details import lock_details, pressure_details
from locktop.tui.views.status import Pace, status_line
from locktop.tui.views.styled_line import STYLES, line_text, unfolded
from locktop.tui.views.table import lay_out
from locktop.tui.views.thread_details import thread_details


def test_recent_waits_have_their_age() -> None:
    """Recent waits are sorted by their end, so their ages are sorted too."""
    index = SnapshotIndex(scenarios.normal())
    lock, thread = index.snapshot.locks[0], index.snapshot.threads[0]

    def event(ago_s: float, wait_s: float, hold_s: float | None) -> Event:
        return Event(thread.tid, lock.id, lock.kind, ago_s, wait_s, hold_s, 0, 0, 0, False)

    long_wait, short_wait = event(10.5, 10.0, 0.25), event(2.0, 1.0, None)
    visible = [line_text(line) for line in latest_events(index, (long_wait, short_wait), False)]
    assert [text.split(" ago ")[0].strip() for text in visible[2:]] == ["250ms", "1.00s"]


def test_thread_details_name_an_unobserved_wait() -> None:
    calm = scenarios.normal()
    sleeper = next(thread for thread in calm.threads if thread.waiting_for is None)
    wait = UnobservedWait(sleeper.tid, 0x7F00, "", 2.5, 1, "OpenMP lock", False, "openmp-lock")
    seen = replace(calm, unobserved_waiters=(sleeper.tid,), unobserved_waits=(wait,))
    index = SnapshotIndex(seen)
    text = "\n".join(map(line_text, thread_details(index, index.threads[sleeper.tid])))
    assert "OpenMP lock, futex 0x7f00 for at least 2.50s" in text
    assert "the library does not observe this wait; counts as a wait for a lock, idle rule" in text
    assert calm.stacks[1][0].function in text
    cells = {
        column.title: column.cell(index.threads[sleeper.tid])[0]
        for column in thread_list.columns(index)
        if column.title in ("WAITS FOR", "SINCE")
    }
    assert cells == {"WAITS FOR": "futex: OpenMP lock", "SINCE": ">2.50s"}
    group = ThreadGroup("key", (sleeper, replace(sleeper, tid=1)), "t", 0, "")
    (waits_for,) = (c for c in thread_list.columns(index) if c.title == "WAITS FOR")
    assert waits_for.cell(group)[0] == "", "the other thread does not wait"
    quiet = replace(seen, threads=(replace(sleeper, waiting_for=None),))
    assert line_text(headline(SnapshotIndex(quiet), 120)) == (
        f" {sleeper.name} waits for OpenMP lock; its holder is not known: the library does not"
        " observe it"
    )


def details(index: SnapshotIndex, lock_id: int) -> str:
    lines = list(lock_details(index, index.locks[lock_id]))
    assert {style for line in lines for _, style in line} <= STYLES.keys()
    return "\n".join(line_text(line) for line in lines)


def test_blame_names_the_wait_of_the_holder() -> None:
    calm = scenarios.normal()
    because = (Blame(4714, 0x401100, 3.0, through=2), Blame(0, 0x401100, 1.0), Blame(0, 0, 0.5))
    locks = tuple(replace(lock, blame=because if lock.id == 1 else ()) for lock in calm.locks)
    text = details(SnapshotIndex(replace(calm, locks=locks)), 1)
    assert ", while it waited for " in text
    assert "threads that ended  took it at " in text
    assert "no known holder" in text


def test_a_sampled_wait_has_no_length_that_was_not_seen() -> None:
    """Samples may meet waits whose begin and end they do not see: "0 at most" was not so."""
    calm = scenarios.normal()
    locks = tuple(
        replace(lock, acquisitions=None, wait_max_is_lower_bound=True) for lock in calm.locks
    )
    sampled = replace(calm, source="proc", level="sampled", locks=locks)
    text = details(SnapshotIndex(sampled), 2)
    assert "310s while locktop watched, the longest >4.21s" in text
    without = tuple(replace(lock, wait_max_s=0.0) for lock in sampled.locks)
    text = details(SnapshotIndex(replace(sampled, locks=without)), 2)
    assert "310s while locktop watched  " in text
    assert "the longest" not in text


def test_the_mean_wait_excludes_ongoing_and_timed_out_waits() -> None:
    calm = replace(scenarios.normal(), events=())
    assert "310s in all, 376ms each, 4.21s at most" in details(SnapshotIndex(calm), 2)
    going_on = tuple(
        replace(k, contended=2, wait_s=1.47, wait_max_s=0.11) if k.id == 2 else k
        for k in calm.locks
    )
    assert "1.47s in all, 100ms each, 110ms" in details(
        SnapshotIndex(replace(calm, locks=going_on)), 2
    )
    beyond = tuple(replace(k, wait_max_s=0.001) if k.id == 2 else k for k in calm.locks)
    assert "310s in all, 1.00ms at most" in details(SnapshotIndex(replace(calm, locks=beyond)), 2)
    gave_up = scenarios.normal()
    assert any(event.timed_out for event in gave_up.events)
    assert "in all, 412ms at most" in details(SnapshotIndex(gave_up), 1)


def test_a_zero_of_a_dormant_library_is_unknown() -> None:
    threads = tuple(replace(t, waiting_for=None, holds=()) for t in scenarios.normal().threads)
    locks = tuple(replace(k, holders=(), waiters=()) for k in scenarios.normal().locks)
    calm = replace(scenarios.normal(), threads=threads, locks=locks)
    dormant = SnapshotIndex(replace(calm, level="dormant", complete=False))
    text = details(dormant, 2)
    assert " waiters   not known" in text
    assert " a second  -" in text
    assert " waiters   none" in details(SnapshotIndex(calm), 2)
    lines = "\n".join(line_text(line) for line in thread_details(dormant, threads[6]))
    assert "pool-0  thread 4720  asleep\n waits for not known\n holds     nothing that" in lines
    assert "lately    lock wait -, idle wait -, cpu 0%" in lines
    lines = "\n".join(line_text(line) for line in thread_details(SnapshotIndex(calm), threads[6]))
    assert "pool-0  thread 4720  idle\n waits for nothing\n holds     nothing\n" in lines
    assert line_text(headline(dormant, 80)).startswith(" The library is dormant")
    for width in (80, 200):
        woken = line_text(headline(SnapshotIndex(replace(calm, complete=False)), width))
        assert woken.startswith(" No wait is observed")
    quiet = replace(calm, locks=())
    assert line_text(headline(SnapshotIndex(quiet), 80)).startswith(" No thread waits for a lock")
    assert "begun while the library was dormant" in line_text(
        headline(SnapshotIndex(replace(quiet, complete=False)), 80)
    )


def test_a_holder_is_uncertain_if_other_threads_release_the_lock() -> None:
    calm = scenarios.normal()
    assert "not certain" not in details(SnapshotIndex(calm), 2)
    assert "journal?" not in line_text(headline(SnapshotIndex(calm), 200))
    locks = tuple(replace(k, foreign_releases=k.id == 2) for k in calm.locks)
    index = SnapshotIndex(replace(calm, locks=locks))
    assert "not certain: other threads release it too" in details(index, 2)
    assert "not certain" not in details(index, 1)
    for width in (80, 200):
        assert "journal? " in line_text(headline(index, width))
    assert index.holders((4716, 4714), 2) == "journal +1?"
    assert index.holders((4716,), 1) == "journal"


def test_a_hold_without_a_wait_is_no_recent_wait() -> None:
    calm = scenarios.normal()
    assert "\n Latest waits\n" in details(SnapshotIndex(calm), 1)
    (first, *others) = calm.events
    hold = replace(first, wait_s=0.0, hold_s=0.0042, holder=0, stack=0)
    text = details(SnapshotIndex(replace(calm, events=(hold, *others))), 1)
    assert "\n Latest waits and holds\n" in text
    assert "worker-0 did not wait, held 4.20ms  cache_put cache.c:88" in text
    assert "waited 0" not in text


def test_a_lock_is_held_by_nobody_only_if_that_is_known() -> None:
    calm = scenarios.normal()
    threads = tuple(
        replace(thread, waiting_for=replace(wait, holders=()))
        if (wait := thread.waiting_for) is not None
        else thread
        for thread in calm.threads
    )
    calm = replace(calm, threads=threads)
    free = replace(calm.locks[0], holders=(), waiters=())
    between = replace(calm.locks[0], holders=())
    for lock, complete, said in (
        (free, True, "nobody"),
        (free, False, "not known"),
        (between, True, "not known"),
    ):
        text = details(SnapshotIndex(replace(calm, locks=(lock,), complete=complete)), 1)
        assert f"\n held by   {said}\n" in text
    assert "held by" not in details(SnapshotIndex(calm), 5), (
        "no thread ever holds a condition variable"
    )
    sem = replace(between, kind=Kind.SEM, used_as_lock=True)
    text = details(SnapshotIndex(replace(calm, locks=(sem,))), 1)
    assert "\n held by   not known\n" in text
    text = details(SnapshotIndex(replace(calm, locks=(replace(sem, waiters=()),))), 1)
    assert "held by" not in text, "the holder is known only while a thread waits"


def test_an_object_without_holders_has_its_signal_counts() -> None:
    calm = scenarios.normal()
    text = details(SnapshotIndex(calm), 5)
    assert "\n signalled 2,504 times  by this process\n" in text
    assert "3.00s waited, 2 signalled" in text
    assert "held" not in text
    never = records.lock(5, "g_items", Kind.SEM)
    text = details(SnapshotIndex(replace(calm, locks=(never,))), 5)
    assert "\n posted    0 times  by this process\n" in text
    assert "0 waited, 0 posted" in text
    text = details(SnapshotIndex(calm), 1)
    assert "signalled" not in text
    assert "980ms held" in text


def test_the_first_scan_has_no_rates() -> None:
    first = SnapshotIndex(replace(scenarios.normal(), interval_s=0.0))
    lock, thread = first.locks[1], first.threads[4712]
    in_list = {column.title: column.cell(lock)[0] for column in lock_list.columns(first)} | {
        column.title: column.cell(thread)[0] for column in thread_list.columns(first)
    }
    for title in ("CONT/s", "WAIT/s", "HELD%", "ACQ/s", "WAIT%", "CPU%"):
        assert in_list[title] == "-"
    assert "\n a second  -" in details(first, 1)
    assert "\n a second  1.81k acquired" in details(SnapshotIndex(scenarios.normal()), 1)
    assert "  cpu -  " in line_text(status_line(first.snapshot, Pace(2.0, 2.0), 120))


def test_a_stack_of_ongoing_waits_is_still_waiting() -> None:
    calm = scenarios.normal()
    locks = tuple(
        replace(k, wait_stacks=(WaitStack(5, 0, 70.0),)) if k.id == 2 else k for k in calm.locks
    )
    text = details(SnapshotIndex(replace(calm, locks=locks)), 2)
    assert "100% of the wait, 70.0s, still in progress" in text


def test_waits_in_python_are_divided_and_say_so() -> None:
    text = details(SnapshotIndex(python_waits.divided()), python_waits.LOCK)
    basis = "Python functions: an estimate from 40 waits that locktop saw while they lasted"
    assert f"Waited here  1 of 3: about 60% of the wait, 60.0s\n  {basis}\n" in text
    assert "Waited here  3 of 3: about 20% of the wait, 20.0s\n" in text
    first, second = text.index(" price  "), text.index(" refund  ")
    assert text.index(" takes  ") > first < second


def test_an_inlined_frame_is_marked_and_a_wrapper_is_no_location() -> None:
    calm = scenarios.normal()
    gthread = Frame(0x401100, "__gthread_mutex_lock", "gthr-default.h", 749, "x", 0x1100, True)
    frames = (gthread, Frame(0x401100, "put", "cache.cc", 42, "x", 0x1100))
    locks = tuple(
        replace(k, wait_stacks=(WaitStack(9, 1, 70.0),)) if k.id == 2 else k for k in calm.locks
    )
    index = SnapshotIndex(replace(calm, locks=locks, stacks={**calm.stacks, 9: frames}))
    text = details(index, 2)
    assert "__gthread_mutex_lock         gthr-default.h:749 (inlined)\n" in text
    assert "put                          cache.cc:42\n" in text + "\n"
    assert index.stack_top(9) == "put cache.cc:42"


@pytest.mark.parametrize("many", [1, 3, 11, 1234])
def test_names_of_many_waiters_stay_apart_from_their_number(many: int) -> None:
    calm = scenarios.normal()
    waiters = (4715,) * many
    locks = tuple(replace(k, waiters=waiters) if k.id == 2 else k for k in calm.locks)
    text = details(SnapshotIndex(replace(calm, locks=locks)), 2)
    mark = "▸ " * (many > 1)
    assert f"\n waiters   {mark}{many}: reader 1.27s to read" in text
    assert (f"and {many - 3} more" in text) == (many > 3)


def test_a_sleeping_holder_is_not_idle() -> None:
    calm = scenarios.normal()
    threads = tuple(
        replace(t, state=ThreadState.IDLE) if t.name == "journal" else t for t in calm.threads
    )
    locks = tuple(replace(lock, holder_activity=None) for lock in calm.locks)
    index = SnapshotIndex(replace(calm, threads=threads, locks=locks))
    assert "; now asleep" in details(index, 2)
    assert thread_list.state_word(index, index.threads[4716]) == "asleep"
    assert thread_list.state_word(index, index.threads[4720]) == "idle"


def test_holder_activity_has_a_stack_with_its_age() -> None:
    calm = scenarios.normal()
    said = details(SnapshotIndex(calm), 2)
    assert "; now in fsync(7 -> /var/lib/store/journal) for 1.30 s" in said
    assert "0 journal_flush" in said
    lock = next(lock for lock in calm.locks if lock.id == 1)
    assert "; now running (58% of a CPU)" in details(SnapshotIndex(calm), 1)
    old = replace(
        lock, holder_activity=ThreadActivity(4714, ActivityState.RUNNING, stack=6, stack_age_s=1.25)
    )
    said = details(SnapshotIndex(replace(calm, locks=(old, *calm.locks[1:]))), 1)
    assert "\n The holder now  worker-2  observed asleep 1.25s ago\n" in said
    assert "; now running" in said
    assert "of a CPU" not in said


def present_hold(*, is_lower_bound: bool) -> str:
    """The details of a lock with waiters, whose holder has it for longer than all before."""
    calm = scenarios.normal()
    lock = next(lock for lock in calm.locks if len(lock.holders) == 1 and len(lock.waiters) > 1)
    held = Held(lock.id, 0, 8.64, is_lower_bound=is_lower_bound)
    longest_s = 1e-6 if is_lower_bound else 8.64
    waits = Wait(lock.id, lock.kind, 8.0, lock.holders, 1, 0x401100, seq=2)
    threads = [
        replace(thread, holds=(held,))
        if thread.tid in lock.holders
        else replace(thread, waiting_for=waits)
        if thread.tid in lock.waiters
        else thread
        for thread in calm.threads
    ]
    lock = replace(
        lock, acquisitions=2, contended=0, wait_max_s=8.0, hold_timed=1, hold_max_s=longest_s
    )
    locks = tuple([lock if lock.id == other.id else other for other in calm.locks])
    return details(SnapshotIndex(replace(calm, threads=tuple(threads), locks=locks)), lock.id)


def test_figures_say_which_waits_and_holds_still_last() -> None:
    text = present_hold(is_lower_bound=False)
    assert "acquired  2, contended 0 (0%)" in text
    assert re.search(r"\(0%\)[^\n]*, 2 wait now\n", text)
    assert re.search(r"waited .* 8\.00s at most, so far", text)
    assert re.search(r"held .* 8\.64s at most, so far  from 1 timed hold and the present one", text)


def test_a_hold_that_is_not_timed_stands_beside_those_that_are() -> None:
    text = present_hold(is_lower_bound=True)
    assert "1.00us at most, and the present one >8.64s  from 1 timed hold" in text


def test_the_waiters_come_with_the_threads_behind_them() -> None:
    index = SnapshotIndex(blocking.pool_behind_index(292))
    lines = [line_text(line) for line in lock_details(index, index.locks[blocking.INDEX])]
    waiters = next(line for line in lines if line.startswith(" waiters"))
    assert " 8: " in waiters
    assert ", 292 more behind these" in waiters
    list_row = lay_out(lock_list.columns(index), 80).line(index.locks[blocking.INDEX])
    assert " 8 " in line_text(list_row)


@pytest.mark.parametrize(
    ("shares", "text"),
    [
        ([0.0, 0.04, 0.8], "waits took 80% of threads' time in the last 6s, up to 4% before"),
        ([0.8, 0.0], "waits took 0% of threads' time in the last 6s, up to 80% before"),
        ([0.3], "waits took 30% of threads' time in the last 6s"),
        ([], "-  not measured yet"),
    ],
)
def test_the_pressure_is_a_sentence(shares: list[float], text: str) -> None:
    lengths = [10.0] * (len(shares) - 1) + [6.2]
    phases = [PressurePhase(*pair) for pair in zip(shares, lengths, strict=False)]
    (line,) = map(line_text, pressure_details(phases))
    assert line.split(maxsplit=1) == ["pressure", text]
    assert len(line) <= 80


def test_the_id_of_a_thread_stands_once_where_its_name_has_it() -> None:
    calm = scenarios.normal()
    (tid,) = calm.locks[0].holders

    def details(snapshot: Snapshot) -> str:
        lines = unfolded(lock_details(SnapshotIndex(snapshot), snapshot.locks[0]))
        return "\n".join(map(line_text, lines))

    assert f" ({tid}) for" in details(calm)
    alike = replace(calm, threads=tuple(replace(thread, name="worker") for thread in calm.threads))
    assert f"worker:{tid} for" in details(alike)
