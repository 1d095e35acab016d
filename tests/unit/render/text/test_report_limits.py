"""The limits of the sections of the text report: how much each lists, and how it says the rest."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace
from unit.builders import full_report, records, scenarios

from locktop.collector.model import (
    ActivityState,
    Blame,
    Held,
    Kind,
    Lock,
    Mark,
    Misuse,
    MisuseKind,
    Pattern,
    PatternName,
    Snapshot,
    Thread,
    ThreadActivity,
    ThreadState,
    TimeSplit,
    UnobservedWait,
    WaitStack,
)
from locktop.collector.render.text import report

CALM = scenarios.empty()


def section(snapshot: Snapshot, heading: str) -> list[str]:
    """Return the lines of the section that begins with ``heading``, without its heading."""
    lines = report.render(snapshot, width=200, idle=True).splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith(heading))
    end = next((n for n in range(begin, len(lines)) if not lines[n]), len(lines))
    return lines[begin + 1 : end]


def patterns(count: int) -> Snapshot:
    return replace(CALM, patterns=(Pattern(PatternName.CONVOY, 0, (), "why", "advice"),) * count)


def misuses(count: int) -> Snapshot:
    return replace(CALM, misuses=(Misuse(MisuseKind.RELEASED_FREE, 1, 11, 0, 0, 1, 1.0),) * count)


def marks(count: int) -> Snapshot:
    return replace(CALM, marks=tuple(Mark(11, 1.0 + n, f"step {n}") for n in range(count)))


def waiters(count: int) -> Snapshot:
    """Threads that wait for a lock each."""
    threads = tuple(
        records.thread(
            10 + n,
            "w",
            ThreadState.WAITING,
            waiting_for=records.wait(1 + n, Kind.MUTEX, 1.0, stack=0),
        )
        for n in range(count)
    )
    locks = tuple(records.lock(1 + n, f"g_{chr(97 + n % 26)}{n // 26}") for n in range(count))
    return replace(CALM, threads=threads, locks=locks)


def conditions(count: int) -> Snapshot:
    names = (f"g_{chr(97 + n)}" for n in range(count))
    return replace(
        CALM,
        locks=tuple(
            records.lock(1 + n, name, Kind.COND, waiters=(99,)) for n, name in enumerate(names)
        ),
    )


def unobserved(count: int) -> Snapshot:
    waits = tuple(UnobservedWait(10 + n) for n in range(count))
    tids = tuple(wait.tid for wait in waits)
    return replace(CALM, unobserved_waits=waits, unobserved_waiters=tids)


def others(count: int) -> Snapshot:
    """Threads that each do something else."""
    return replace(
        CALM,
        threads=tuple(
            full_report.active(10 + n, "w", ActivityState.BLOCKED, call=f"call{n}")
            for n in range(count)
        ),
    )


def timed(tid: int, **shares: float) -> Thread:
    return records.thread(tid, "w", ThreadState.RUNNING, time=TimeSplit(**shares))


def busy(count: int) -> Snapshot:
    return replace(CALM, threads=tuple(timed(10 + n, cpu=0.5, idle=0.5) for n in range(count)))


@pytest.mark.parametrize(
    ("make", "heading", "limit", "more"),
    [
        (patterns, "CONTENTION PATTERNS", 10, "  and 1 more"),
        (misuses, "MISUSES", 10, "  and 1 more"),
        (marks, "MARKS", 20, None),
        (waiters, "THREADS WAITING NOW", 50, "  and 1 more"),
        (conditions, "SEMAPHORES AND CONDITIONS", 20, "  and 1 more"),
        (unobserved, "THREADS IN UNOBSERVED WAITS", 20, "  and 1 more"),
        (others, "OTHER THREADS", 12, "  and 1 more"),
        (busy, "WHERE THE TIME", 15, "  and 1 more"),
    ],
)
def test_a_section_lists_no_more_than_its_limit(
    make: Callable[[int], Snapshot], heading: str, limit: int, more: str | None
) -> None:
    whole, cut = section(make(limit), heading), section(make(limit + 1), heading)
    assert not any(line.startswith("  and ") for line in whole)
    assert len(cut) == len(whole) + (more is not None)
    assert more in (None, *cut)


def test_the_oldest_marks_are_left_out_and_the_newest_is_last() -> None:
    found = section(marks(21), "MARKS")
    assert found[0] == "  20.0 s ago, thread 11: step 19"
    assert found[-1] == "  1.00 s ago, thread 11: step 0"


def contended(count: int, stacks: int, **more: object) -> Snapshot:
    """Locks with less and less wait, each from several stacks."""
    locks = []
    for n in range(count):
        waits = tuple(WaitStack(1 + s, 2, 10.0 - s) for s in range(stacks))
        name = f"g_{chr(97 + n)}"
        locks.append(
            records.lock(
                1 + n, name, contended=9, wait_s=100.0 - n, wait_stacks=waits, blame=BLAME, **more
            )
        )
    return replace(CALM, locks=tuple(locks), stacks={}, sites={})


BLAME = tuple(Blame(20 + n, 0, 10.0 - n) for n in range(4))


def test_five_locks_with_three_stacks_and_three_holders_each_are_located() -> None:
    found = section(contended(6, 4), "WHERE THE WAITS WERE")
    one = [
        "  mutex {}, {} % of its wait: 10.0 s in 2 waits",
        "  mutex {}, {} % of its wait: 9.00 s in 2 waits",
        "  mutex {}, {} % of its wait: 8.00 s in 2 waits",
        "    mutex {} was held meanwhile by",
        "      thread 20, 29 %: 10.0 s",
        "      thread 21, 26 %: 9.00 s",
        "      thread 22, 23 %: 8.00 s",
    ]
    assert found[:7] == [
        line.format("g_a", share) for line, share in zip(one, (10, 9, 8, 0, 0, 0, 0), strict=True)
    ]
    assert len(found) == 5 * 7


def test_a_lock_with_hardly_any_wait_is_not_located() -> None:
    snapshot = contended(3, 1)
    shares = (1000.0, 1.0, 0.99)
    locks = tuple(
        replace(lock, wait_s=wait_s, blame=())
        for lock, wait_s in zip(snapshot.locks, shares, strict=True)
    )
    found = section(replace(snapshot, locks=locks), "WHERE THE WAITS WERE")
    assert [line.split()[1] for line in found] == ["g_a,", "g_b,"]


def holders(count: int) -> Snapshot:
    now = ThreadActivity(11, ActivityState.BLOCKED, "read", stack=1, stack_age_s=2.0)
    locks: list[Lock] = [
        records.lock(1 + n, f"g_{chr(97 + n)}", holder_activity=now) for n in range(count)
    ]
    return replace(CALM, locks=tuple(locks), stacks={1: (records.frame("f", "f.c", 1),)})


def test_the_stacks_of_five_holders_are_listed() -> None:
    found = section(holders(6), "HOLDERS NOW")
    assert found[:3] == [
        "  thread 11 holds mutex g_a and is in read",
        "      its stack, 2.00 s ago:",
        "      f at /src/store/f.c:1",
    ]
    assert len(found) == 5 * 3


@pytest.mark.parametrize(
    ("count", "tids"),
    [(8, "10, 11, 12, 13, 14, 15, 16, 17"), (9, "10, 11, 12, 13, 14, 15, 16, 17 and 1 more")],
)
def test_a_group_lists_eight_threads(count: int, tids: str) -> None:
    wait = records.wait(1, Kind.MUTEX, 1.0)
    made = [
        records.thread(10 + n, f"w-{n}", ThreadState.WAITING, waiting_for=wait)
        for n in range(count)
    ]
    unobserved_waits = tuple(
        UnobservedWait(thread.tid, 0x7F10, duration_s=1.0, stack=1, type="Rust Mutex", idle=False,
                       why="rust")
        for thread in made
    )  # fmt: skip
    lock = records.lock(1, "g_lock", waiters=tuple(thread.tid for thread in made))
    snapshot = replace(CALM, threads=tuple(made), locks=(lock,), stacks={})
    (line,) = section(snapshot, "THREADS WAITING NOW")
    assert line == f"  {count} threads (w-#: {tids}) for up to 1.00 s: mutex g_lock"
    calm = replace(
        CALM,
        unobserved_waits=unobserved_waits,
        unobserved_waiters=tuple(thread.tid for thread in made),
        stacks={},
    )
    (line,) = section(calm, "THREADS IN UNOBSERVED")
    assert line == (
        f"  {count} threads ({tids}) for at least 1.00 s: Rust Mutex, futex 0x7f10 (counts as a"
        " wait for a lock, idle rule rust)"
    )


def in_group(kind: Kind, *names: str) -> str:
    """Return the line of threads that wait at one call site for locks with these names."""
    made = [
        records.thread(
            10 + n,
            f"w-{n}",
            ThreadState.WAITING,
            waiting_for=replace(records.wait(1 + n, kind, 1.0, stack=1), is_lower_bound=n == 0),
        )
        for n in range(2)
    ]
    locks = tuple(
        records.lock(1 + n, name, kind, waiters=(10 + n,)) for n, name in enumerate(names)
    )
    snapshot = replace(CALM, threads=tuple(made), locks=locks, stacks={})
    return section(snapshot, "THREADS WAITING NOW")[0]


@pytest.mark.parametrize(
    ("names", "lock"),
    [
        (("conn::mu", "conn::mu"), "mutex conn::mu, one lock each"),
        (("mutex 0x55d0", "mutex 0x55e0"), "one mutex each"),
    ],
)
def test_threads_that_wait_for_a_lock_each_are_one_group(names: tuple[str, ...], lock: str) -> None:
    assert in_group(Kind.MUTEX, *names) == f"  2 threads (w-#: 10, 11) for at least 1.00 s: {lock}"


@pytest.mark.parametrize(
    ("count", "last"), [(30, "f at /src/store/f.c:30"), (31, "and 1 frame more")]
)
def test_thirty_frames_of_a_waiting_thread_are_listed(count: int, last: str) -> None:
    stack = tuple(records.frame("f", "f.c", 1 + n) for n in range(count))
    wait = records.wait(1, Kind.MUTEX, 1.0)
    thread = records.thread(10, "w", ThreadState.WAITING, waiting_for=wait)
    snapshot = replace(CALM, threads=(thread,), stacks={1: stack})
    assert section(snapshot, "THREADS WAITING NOW")[-1] == f"      {last}"


@pytest.mark.parametrize(
    ("time", "cells"),
    [
        ({"cpu": 0.01, "idle": 0.99}, "      1%         0%    0%       99%    0%     0%"),
        ({"cpu": 0.5, "runnable": 0.004}, "     50%        <1%    0%        0%    0%     0%"),
        ({"cpu": 0.5, "contended": 0.005}, "     50%         0%    0%        0%    0%     0%"),
        ({"cpu": 0.5, "unknown": ("disk",)}, "     50%         0%    0%        0%     ?     0%"),
        (
            {"cpu": 0.5, "disk": 0.2, "unknown": ("disk",)},
            "     50%         0%    0%        0%   20%     0%",
        ),
    ],
)
def test_a_share_of_time_is_a_percentage(time: dict[str, float], cells: str) -> None:
    found = section(replace(CALM, threads=(timed(11, **time),)), "WHERE THE TIME")
    assert found[1] == f"  {cells.removeprefix('  ')}  thread 11 (w)"


@pytest.mark.parametrize("time", [{"idle": 1.0}, {"other": 1.0}, {"cpu": 0.009}])
def test_a_thread_that_only_waits_for_work_is_in_no_table_of_time(time: dict[str, float]) -> None:
    page = report.render(replace(CALM, threads=(timed(11, **time),)))
    assert "WHERE THE TIME" not in page


@pytest.mark.parametrize(("waiters", "count"), [((), 0), ((12,), 1)])
def test_a_thread_that_waits_for_work_with_a_wanted_lock_waits(
    waiters: tuple[int, ...], count: int
) -> None:
    wait = records.wait(2, Kind.COND, 5.0)
    idle = records.thread(
        11, "w", ThreadState.IDLE, waiting_for=wait, holds=(Held(1, 0, 5.0), Held(9, 0, 5.0))
    )
    locks = (records.lock(1, "g_lock", waiters=waiters), records.lock(2, "g_ready", Kind.COND))
    page = report.render(replace(CALM, threads=(idle,), locks=locks))
    assert page.count("thread 11 (w) for 5.00 s: cond g_ready") == count
