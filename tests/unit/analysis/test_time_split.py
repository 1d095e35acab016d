"""The parts of a thread's time add up for any figures of the kernel and the library."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace

from locktop.collector.analysis import time_split
from locktop.collector.analysis.time_split import Used
from locktop.collector.linux.procfs import CLOCK_TICK_S
from locktop.collector.linux.threads import KernelThread
from locktop.collector.model import TimeSplit
from locktop.collector.sources.probes.time_accounting import TimeAccounting

PARTS = ("cpu", "runnable", "contended", "idle", "disk", "other")


def split(
    ran_s: float = 0.0,
    queued_s: float | None = 0.0,
    disk_s: float | None = 0.0,
    contended: float = 0.0,
    idle: float = 0.0,
    interval_s: float = 1.0,
) -> TimeSplit:
    found = time_split.split(interval_s, Used(ran_s, queued_s, disk_s), contended, idle)
    assert found is not None
    return found


def shares(found: TimeSplit) -> dict[str, float]:
    return {part: round(getattr(found, part), 6) for part in PARTS if getattr(found, part) > 1e-9}


def total(found: TimeSplit) -> float:
    return sum(getattr(found, part) for part in PARTS)


def test_unaccounted_time_is_other() -> None:
    assert shares(split(ran_s=0.2, queued_s=0.1, contended=0.3, idle=0.1)) == {
        "cpu": 0.2, "runnable": 0.1, "contended": 0.3, "idle": 0.1, "other": 0.3,
    }  # fmt: skip
    assert shares(split()) == {"other": 1.0}


def test_a_wait_is_no_longer_than_the_sleep_in_it() -> None:
    """A woken waiter that stood in the run queue: the queue is a figure of the kernel."""
    found = shares(split(ran_s=0.1, queued_s=0.4, contended=0.9))
    assert found == {"cpu": 0.1, "runnable": 0.4, "contended": 0.5}


def test_an_excess_is_taken_from_both_sorts_of_wait() -> None:
    found = shares(split(ran_s=0.5, contended=0.6, idle=0.4))
    assert found == {"cpu": 0.5, "contended": 0.3, "idle": 0.2}


def test_a_spinner_is_on_a_cpu() -> None:
    assert shares(split(ran_s=1.0, contended=1.0)) == {"cpu": 1.0}


def test_clocks_that_differ_do_not_exceed_the_interval() -> None:
    assert shares(split(ran_s=1.02, queued_s=0.1, disk_s=0.3, idle=1.0)) == {"cpu": 1.0}
    assert shares(split(ran_s=0.3, queued_s=2.0)) == {"cpu": 0.3, "runnable": 0.7}


def test_impossible_figures_count_as_nothing() -> None:
    assert shares(split(ran_s=-1.0, queued_s=-2.0, disk_s=-3.0, idle=0.25)) == {
        "idle": 0.25, "other": 0.75,
    }  # fmt: skip


def test_uncounted_parts_are_named() -> None:
    assert split().unknown == ()
    assert split(queued_s=None, disk_s=None).unknown == ("runnable", "disk")
    without_library = time_split.split(1.0, Used(0.5, 0.0, 0.0), 0.0, 0.0, waits_known=False)
    assert without_library is not None
    assert without_library.unknown == ("contended", "idle")
    assert shares(without_library) == {"cpu": 0.5, "other": 0.5}


def test_no_interval_has_no_split() -> None:
    assert time_split.split(0.0, Used(0.0, 0.0, 0.0), 0.0, 0.0) is None
    assert time_split.split(-1.0, Used(0.0, 0.0, 0.0), 0.0, 0.0) is None


def test_the_parts_always_add_up() -> None:
    dice = random.Random(7)
    for _ in range(5000):
        figure = [dice.choice([0.0, -0.1, 0.3, dice.random(), 2 * dice.random()]) for _ in range(3)]
        waits = [dice.choice([0.0, 1.0, dice.random()]) for _ in range(2)]
        used = Used(figure[0], dice.choice([None, figure[1]]), dice.choice([None, figure[2]]))
        found = time_split.split(dice.choice([0.2, 0.5, 3.0]), used, *waits)
        assert found is not None
        assert total(found) == pytest.approx(1.0, abs=1e-9)
        assert min(getattr(found, part) for part in PARTS) >= -1e-12
        moved = time_split.reclassify(found, dice.random(), dice.random() < 0.5)
        assert moved is not None
        assert total(moved) == pytest.approx(1.0, abs=1e-9)


def test_an_idle_wait_has_its_own_part() -> None:
    found = split(ran_s=0.2, contended=0.6)
    assert shares(time_split.reclassify(found, 1.0, to_idle=True) or found) == {
        "cpu": 0.2, "idle": 0.6, "other": 0.2,
    }  # fmt: skip
    assert time_split.reclassify(found, 0.0, to_idle=True) is found
    assert time_split.reclassify(None, 1.0, to_idle=True) is None


def test_several_splits_have_a_mean() -> None:
    assert TimeSplit.mean([]) is None
    found = TimeSplit.mean([split(ran_s=1.0), split(contended=0.5, disk_s=None)])
    assert found is not None
    assert shares(found) == {"cpu": 0.5, "contended": 0.25, "other": 0.25}
    assert found.unknown == ("disk",)


# ---- from scan to scan ----


def task(at_s: float, **more: object) -> KernelThread:
    made = KernelThread(
        "worker", "S", 0.0, b"worker", at_s, ran_ns=1, queued_ns=0, runs=1, disk_ticks=0
    )
    return replace(made, **more)


def splits(
    *tasks: KernelThread, contended: float = 0.0, idle: float = 0.0
) -> list[TimeSplit | None]:
    times, found = TimeAccounting(), []
    for number, one in enumerate(tasks):
        times.begin(float(number))
        found.append(times.time_split((7, 0), one, contended if number else 0.0, idle, True))
    return found


def seconds(value: float) -> int:
    return int(value * 1e9)


def test_the_first_scan_has_no_split() -> None:
    assert splits(task(0.0)) == [None]


def test_counters_of_the_kernel_count_since_the_last_scan() -> None:
    first = task(0.0, ran_ns=seconds(5), queued_ns=seconds(3), runs=9, disk_ticks=100)
    now = task(
        2.0, ran_ns=seconds(5.5), queued_ns=seconds(3.5), runs=12,
        disk_ticks=100 + int(0.5 / CLOCK_TICK_S),
    )  # fmt: skip
    found = splits(first, now, contended=0.25)[1]
    assert found is not None
    assert shares(found) == {"cpu": 0.25, "runnable": 0.25, "disk": 0.25, "contended": 0.25}
    assert found.unknown == ()


def test_a_thread_that_was_not_read_has_slept() -> None:
    same = task(0.0)
    found = splits(same, same, same, idle=1.0)
    assert [one and shares(one) for one in found] == [None, {"idle": 1.0}, {"idle": 1.0}]
    found = splits(same, same, task(2.0, ran_ns=1 + seconds(0.5), runs=2))
    assert found[2] is not None
    assert shares(found[2]) == {"cpu": 0.5, "other": 0.5}, "since the thread was known to sleep"


def test_ongoing_queueing_is_counted_once() -> None:
    """The kernel adds queueing when the thread gets a CPU; no figure grows before."""
    queued = task(0.0, state="R")
    found = splits(
        queued,
        replace(queued, at_s=1.0),
        replace(queued, at_s=2.0),
        task(3.0, state="S", ran_ns=1 + seconds(0.1), queued_ns=seconds(2.2), runs=2),
    )
    assert [one and shares(one) for one in found] == [
        None,
        {"runnable": 1.0},
        {"runnable": 1.0},
        {"cpu": 0.1, "runnable": 0.2, "other": 0.7},
    ]


def test_late_counts_of_running_threads_lead_to_no_conclusion(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("locktop.collector.linux.procfs.ticks_always", lambda: False)
    running = task(0.0, state="R")
    found = splits(running, replace(running, at_s=1.0))[1]
    assert found is not None
    assert shares(found) == {"other": 1.0}


def test_one_long_disk_sleep_shows_uncounted_disk_time() -> None:
    stuck = task(0.0, state="D", disk_ticks=None)
    found = splits(stuck, replace(stuck, at_s=1.0))[1]
    assert found is not None
    assert (shares(found), found.unknown) == ({"disk": 1.0}, ("disk",))
    found = splits(stuck, replace(stuck, at_s=1.0, runs=2))[1]
    assert found is not None
    assert (shares(found), found.unknown) == ({"other": 1.0}, ("disk",)), (
        "the thread ran in between"
    )


def test_another_thread_with_the_same_id_begins_anew() -> None:
    old = task(0.0, ran_ns=seconds(9), runs=90)
    young = task(1.0, ran_ns=seconds(1), runs=3)
    later = task(2.0, ran_ns=seconds(1.5), runs=4)
    found = splits(old, young, later)
    assert found[1] is None
    assert found[2] is not None
    assert found[2].cpu == pytest.approx(0.5)


def test_processor_time_remains_without_scheduler_counters() -> None:
    first = task(0.0, ran_ns=0, runs=0, cpu_s=4.0)
    found = splits(first, replace(first, at_s=1.0, cpu_s=4.75), idle=0.25)[1]
    assert found is not None
    assert (shares(found), found.unknown) == ({"cpu": 0.75, "idle": 0.25}, ("runnable",))


def test_an_ended_thread_has_no_split() -> None:
    times = TimeAccounting()
    times.begin(0.0)
    assert times.time_split(1, None, 0.0, 0.0, True) is None


@pytest.mark.parametrize("share", [1.6e-13, 4e-17, 0.0])
def test_a_share_below_any_clock_is_none(share: float) -> None:
    found = split(ran_s=0.25, contended=share, idle=share)
    assert (found.contended, found.idle, found.other) == (0.0, 0.0, 0.75)
    found = split(ran_s=0.25, idle=0.75 - share)
    assert found.other == 0.0
    assert split(idle=1e-6).idle == 1e-6
    assert (split(idle=1e-9).idle, split(contended=1e-9).contended) == (1e-9, 1e-9)


def test_a_share_that_moves_as_a_whole_leaves_nothing() -> None:
    time = split(contended=0.7, idle=0.1)
    moved = time_split.reclassify(time, 1.0 - 1e-13, to_idle=True)
    assert moved is not None
    assert moved.contended == 0.0
    back = time_split.reclassify(moved, 1.0 - 1e-13, to_idle=False)
    assert back is not None
    assert (back.idle, back.contended) == (0.0, pytest.approx(0.8))
    half = time_split.reclassify(time, 0.5, to_idle=True)
    assert half is not None
    assert (half.contended, half.idle) == (pytest.approx(0.35), pytest.approx(0.45))
