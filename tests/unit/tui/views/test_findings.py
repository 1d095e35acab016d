"""The details begin with what is wrong and what to do; holders and waiters follow."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace
from unit.builders import hangs, records, scenarios

from locktop.collector.model import (
    ActivityState,
    Held,
    Kind,
    Pattern,
    PatternName,
    Snapshot,
    ThreadActivity,
    ThreadState,
)
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.tui.views.deadlock_details import deadlock_details
from locktop.tui.views.lock_details import lock_details
from locktop.tui.views.styled_line import STYLES, Line, line_text, unfolded
from locktop.tui.views.thread_details import thread_details

LONG_HOLD = Pattern(PatternName.LONG_HOLD, 2, (4716,), "held for 1.31 s", "Make the call earlier.")


def texts(lines: Iterable[Line], is_open: bool = False) -> list[str]:
    lines = list(unfolded(lines, has_room=False, is_open=is_open))
    assert {style for line in lines for _, style in line} <= STYLES.keys()
    return [line_text(line) for line in lines]


def of_lock(snapshot: Snapshot, lock: int, is_open: bool = False) -> list[str]:
    index = SnapshotIndex(snapshot)
    return texts(lock_details(index, index.locks[lock]), is_open)


def of_thread(snapshot: Snapshot, tid: int) -> list[str]:
    index = SnapshotIndex(snapshot)
    return texts(thread_details(index, index.threads[tid]))


def test_a_pattern_comes_before_the_holder_the_waiters_and_the_figures() -> None:
    snapshot = replace(scenarios.normal(), patterns=(LONG_HOLD,))
    lines = of_lock(snapshot, 2)
    labels = [line[1:10].strip() for line in lines[1:5]]
    assert labels == ["Long hold", "advice", "held by", "waiters"]
    assert lines[1:3] == [" Long hold: held for 1.31 s", " advice    Make the call earlier."]
    assert ", at journal_flush " in lines[3], "where the holder is now"
    assert next(line for line in lines if line.startswith(" acquired")) in lines[5:]
    assert of_thread(snapshot, 4716)[1] == " Long hold at g_table_lock: held for 1.31 s"
    assert not any("Long hold" in line for line in of_lock(snapshot, 1)), "of another lock"


def test_a_deadlock_is_the_first_line_of_its_locks_and_threads() -> None:
    snapshot = scenarios.deadlock()
    edge = snapshot.deadlocks[0].cycle[0]
    for lines in (of_lock(snapshot, edge.waits_for), of_thread(snapshot, edge.tid)):
        assert lines[1].startswith(" Deadlock: 3 threads wait for each other"), lines[1]
        assert lines[1].endswith("  d shows it")
        assert lines[2].startswith(" advice    ")
    assert not any("Deadlock" in line for line in of_lock(snapshot, 1)), "of another lock"


def test_a_deadlock_report_begins_with_the_waits_and_the_advice() -> None:
    index = SnapshotIndex(scenarios.deadlock())
    lines = texts(deadlock_details(index))
    assert [line.split(" waits")[0] for line in lines[1:4]] == [
        f" philosopher-{number}" for number in range(3)
    ]
    assert all(", held by philosopher-" in line for line in lines[1:4])
    assert lines[4].startswith(" advice    Take "), lines[4]
    assert (
        lines[5] == " now       No thread of it goes on. w saves a snapshot; then end the process."
    )
    assert lines[6] == ""


def test_a_hang_of_the_whole_process_is_the_first_line_of_each_thread() -> None:
    snapshot = hangs.hung()
    assert snapshot.hang is not None
    lines = of_thread(snapshot, snapshot.hang.tids[0])
    assert lines[1].startswith(" Hang: all "), lines[1]
    assert any(line.startswith(" advice    Nothing in this process") for line in lines[2:5])


def test_a_holder_that_waits_long_itself_is_no_cause() -> None:
    calm = scenarios.normal()

    def behind(wait_s: float) -> str:
        wait = records.wait(1, Kind.MUTEX, wait_s)
        threads = tuple(
            replace(thread, waiting_for=wait, state=ThreadState.WAITING)
            if thread.tid == 4716
            else thread
            for thread in calm.threads
        )
        return "\n".join(of_lock(replace(calm, threads=threads), 2))

    assert " Behind g_cache_lock: journal, which has g_table_lock, has waited 2.50s" in behind(2.5)
    assert " advice    Look at g_cache_lock first" in behind(2.5)
    assert "Behind" not in behind(0.001), "over before anybody reads of it"


def test_a_holder_that_runs_for_long_is_a_finding() -> None:
    calm = scenarios.normal()

    def runs(held_s: float | None) -> str:
        threads = tuple(
            replace(thread, holds=(Held(2, 0x401200, held_s),)) if thread.tid == 4716 else thread
            for thread in calm.threads
        )
        now = ThreadActivity(4716, ActivityState.RUNNING, cpu=0.98)
        locks = tuple(
            replace(lock, holder_activity=now) if lock.id == 2 else lock for lock in calm.locks
        )
        return "\n".join(of_lock(replace(calm, threads=threads, locks=locks), 2))

    assert " Long hold: journal has held g_table_lock for 3.00s and is running (98%" in runs(3.0)
    assert "Long hold" not in runs(0.01)
    assert "Long hold" not in runs(None), "a hold that is not timed may have just begun"


def test_many_readers_are_one_line_that_opens() -> None:
    calm = scenarios.normal()
    readers = tuple(
        records.thread(
            5000 + number,
            f"reader-{number}",
            ThreadState.RUNNING,
            holds=(Held(2, 0x401200, 0.001 * number, shared=True),),
        )
        for number in range(8)
    )
    tids = tuple(reader.tid for reader in readers)
    locks = tuple(replace(lock, holders=tids) if lock.id == 2 else lock for lock in calm.locks)
    snapshot = replace(calm, threads=(*calm.threads, *readers), locks=locks)
    closed = [line for line in of_lock(snapshot, 2) if "reader-" in line]
    (line,) = [line for line in closed if line.startswith(" held by")]
    assert line.startswith(
        " held by   ▸ 8: reader-0, reader-1, reader-2 and 5 more read it for up to 7.00ms"
    )
    opened = of_lock(snapshot, 2, is_open=True)
    assert any(line.startswith(" held by   ▾ 8: ") for line in opened)
    assert sum("reads it" in line for line in opened) == 8
