"""The line that says the main problem."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from unit.builders import blocking, records, scenarios

from locktop.collector.model import (
    ActivityState,
    Frame,
    HolderEvidence,
    Kind,
    LockRates,
    Notable,
    NotableKind,
    Pattern,
    PatternName,
    ProbableHolder,
    ThreadActivity,
    ThreadState,
    Wait,
)
from locktop.collector.render.words.patterns import ADVICE
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.tui.views.headline import headline
from locktop.tui.views.past_alerts import PastAlerts
from locktop.tui.views.styled_line import line_text


@pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
def test_a_narrow_headline_says_less(width: int) -> None:
    text = line_text(headline(SnapshotIndex(scenarios.normal()), width))
    assert "g_table_lock" in text
    assert "journal" in text
    assert len(text) <= width
    assert "210" in text


@pytest.mark.parametrize("width", [100, 200])
def test_the_headline_gives_new_sampled_waits_a_lower_bound(width: int) -> None:
    """Sampling does not know the begin of waits that began before the first scan."""
    calm = scenarios.normal()
    waiting = [t for t in calm.threads if t.waiting_for and t.state is ThreadState.WAITING]
    begun = {
        t.tid: replace(t, waiting_for=replace(t.waiting_for, duration_s=0.0))
        for t in waiting
        if t.waiting_for
    }
    locks = tuple(replace(lock, rates=LockRates()) for lock in calm.locks)
    many = replace(calm, threads=tuple(begun.get(t.tid, t) for t in calm.threads), locks=locks)
    one = replace(calm, threads=(*list(begun.values())[:1],), locks=locks)
    busy = replace(many, locks=calm.locks)
    text = line_text(headline(SnapshotIndex(busy), width))
    assert "just begun" not in text, "other waits came before"
    assert ", lately " in text
    for snapshot in (many, one):
        text = line_text(headline(SnapshotIndex(snapshot), width))
        assert ", just begun" in text
        assert " 0" not in text


@pytest.mark.parametrize(("count", "words"), [(1, " waits amid its"), (3, "3 threads wait")])
def test_the_headline_names_waits_amid_work(count: int, words: str) -> None:
    own = Frame(0x10, "app::step", None, None, "app", 0x10)
    wait = replace(records.wait(1, Kind.COND, 4.0), stack=7, idle=True)
    threads = [records.thread(n, "s", ThreadState.IDLE, waiting_for=wait) for n in range(count)]
    calm = records.snapshot(tuple(threads), ())
    why = dict.fromkeys(range(count), "condition")
    deep = replace(calm, stacks={7: (own,) * 12}, why=why)
    text = line_text(headline(SnapshotIndex(deep), 80))
    assert words in text
    assert "for no lock: i shows idle waits" in text


def test_the_headline_names_recent_waits_within_its_width() -> None:
    calm = scenarios.normal()
    quiet = SnapshotIndex(replace(calm, threads=()))
    wide, narrow = (line_text(headline(quiet, width)) for width in (120, 80))
    assert wide.endswith("Most waited for lately: g_cache_lock, 1.88s a second")
    assert narrow == " No thread waits now; lately most for g_cache_lock, 1.88s a second"


def test_the_headline_of_an_ended_process_says_so() -> None:
    over = scenarios.ended()
    assert "g_table_lock" in line_text(headline(SnapshotIndex(over), 120)), (
        "the lock of the former deadlock"
    )
    calm = SnapshotIndex(replace(over, threads=()))
    assert line_text(headline(calm, 80)) == " The process has ended; this is its last snapshot."


def test_the_headline_of_a_calm_process_says_so() -> None:
    assert "No thread waits" in line_text(headline(SnapshotIndex(scenarios.empty()), 80))


def test_without_names_no_one_can_say_that_no_thread_waits() -> None:
    """A wait for a lock of Rust or Python is one by the names of the functions around it."""
    unnamed = replace(records.sampled(scenarios.empty()), names_left=9)
    assert "not known yet" in line_text(headline(SnapshotIndex(unnamed), 80))
    with_library = replace(scenarios.empty(), names_left=9)
    assert "No thread waits" in line_text(headline(SnapshotIndex(with_library), 80))


def test_the_headline_of_a_quiet_moment_has_the_last_minute() -> None:
    normal = scenarios.normal()
    locks = tuple(replace(lock, rates=LockRates()) for lock in normal.locks)
    lock = next(lock for lock in locks if not lock.idle)
    quiet = replace(
        normal, threads=(), locks=locks, patterns=(), recent_lock_waits={lock.id: (0.0, 2.5)}
    )
    text = line_text(headline(SnapshotIndex(quiet), 200))
    assert text.startswith(" Quiet now. In the last minute threads waited 2.5")
    assert text.endswith(f"most for {SnapshotIndex(quiet).lock_name(lock.id)}.")


def test_the_headline_of_a_quiet_moment_has_the_alerts() -> None:
    calm = scenarios.empty()
    alerts = [
        Notable(time_ns=second * 10**9, kind=NotableKind.WAIT, text="") for second in (20, 40, 60)
    ]
    past = PastAlerts(alerts, 72 * 10**9)
    text = line_text(headline(SnapshotIndex(calm), 80, past))
    assert text == " Quiet now. 3 long waits, one about every 20 s, the last 12 s ago (key {)"
    unknown = line_text(headline(SnapshotIndex(replace(calm, complete=False)), 80, past))
    assert unknown.startswith(" No wait is observed now. 3 long waits")
    normal = scenarios.normal()
    assert line_text(headline(SnapshotIndex(normal), 80, past)) == (
        line_text(headline(SnapshotIndex(normal), 80))
    )
    lately = SnapshotIndex(replace(normal, threads=()))
    assert line_text(headline(lately, 120, past)).endswith("; 3 long waits (key {)")
    assert line_text(headline(lately, 80, past)) == line_text(headline(lately, 80))


def test_the_headline_names_a_wait_of_the_holder_other_than_for_a_lock() -> None:
    calm = scenarios.normal()
    locks = tuple(replace(lock, holder_activity=None) for lock in calm.locks)
    calm = replace(calm, locks=locks)
    text = line_text(headline(SnapshotIndex(calm), 400))
    index = SnapshotIndex(calm)
    (holder,) = [t for t in calm.threads if f"; held by {index.thread_name(t.tid)} " in text]
    assert holder.waiting_for is None
    slots = replace(calm.locks[0], id=77, kind=Kind.SEM, name="g_slots", holders=(), waiters=())
    waits = replace(holder, waiting_for=Wait(77, Kind.SEM, 1.5, (), 0, 0, 4))
    threads = tuple(waits if thread is holder else thread for thread in calm.threads)
    stuck = SnapshotIndex(replace(calm, threads=threads, locks=(*calm.locks, slots)))
    assert line_text(headline(stuck, 400)) == f"{text}, which waits for g_slots"


def test_the_headline_names_semaphore_waits_if_no_thread_waits_for_a_lock() -> None:
    waits = [
        records.thread(
            5000 + i,
            f"t{i}",
            ThreadState.IDLE,
            waiting_for=records.wait(1, Kind.SEM, 48.0 - i),
        )
        for i in range(2)
    ]
    index = SnapshotIndex(records.snapshot(tuple(waits), ()))
    brief = " No wait for a mutex or rwlock; 2 on semaphores, up to 48.0s."
    assert line_text(headline(index, 70)) == brief
    assert line_text(headline(index, 80)) == f"{brief} a: all stacks"
    assert line_text(headline(index, 120)) == (
        " No thread waits for a mutex or rwlock; 2 wait on semaphores, the longest 48.0s."
        " a: all stacks"
    )


def test_the_headline_adds_up_short_sleeps_at_a_semaphore() -> None:
    """A thread that a post woke in vain sleeps anew, so its last sleep says little."""
    waits = [
        records.thread(
            5000 + i, f"t{i}", ThreadState.IDLE, waiting_for=records.wait(1, Kind.SEM, 0.001)
        )
        for i in range(5)
    ]
    slots = records.lock(1, "g_slots", Kind.SEM, rates=LockRates(wait=5.0))
    index = SnapshotIndex(records.snapshot(tuple(waits), (slots,)))
    assert line_text(headline(index, 120)) == (
        " No thread waits for a mutex or rwlock; 5 wait on semaphores, together 5.00s a second."
        " a: all stacks"
    )
    brief = " No wait for a mutex or rwlock; 5 on semaphores, 5.00s a second."
    assert line_text(headline(index, 80)) == f"{brief} a: all stacks"


def test_a_wide_headline_has_the_activity_of_the_holder() -> None:
    index = SnapshotIndex(scenarios.normal())
    wide = line_text(headline(index, 200))
    assert wide.endswith(", now in fsync(7 -> /var/lib/store/journal) for 1.30 s")
    assert line_text(headline(index, 100)).endswith(", now in fsync")
    assert "now in" not in line_text(headline(index, 60))
    lock = replace(
        index.locks[2], holder_activity=ThreadActivity(4716, ActivityState.RUNNING, stack=7)
    )
    spans = SnapshotIndex(replace(index.snapshot, locks=(index.locks[1], lock)))
    assert line_text(headline(spans, 140)).endswith(", now runs journal_flush:233")


def test_the_headline_of_a_stopped_process_says_so() -> None:
    stopped = replace(scenarios.normal(), stopped=True)
    assert line_text(headline(SnapshotIndex(stopped), 80)).startswith(" STOPPED by a signal")


def unsignalled(count: int) -> SnapshotIndex:
    threads = tuple(
        records.thread(
            5000 + i,
            f"t{i}",
            ThreadState.IDLE,
            waiting_for=records.wait(1, Kind.COND, 12.0 - i),
        )
        for i in range(count)
    )
    tids = tuple(thread.tid for thread in threads)
    no_signal = Pattern(PatternName.NO_SIGNAL, 1, tids, "3 threads wait", "")
    locks = (records.lock(1, "g_done", Kind.COND),)
    return SnapshotIndex(records.snapshot(threads, locks, patterns=(no_signal,)))


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (1, " t0 waits for g_done for 12.0s: no signal came meanwhile"),
        (3, " 3 threads wait for g_done, the longest 12.0s: no signal came meanwhile"),
    ],
)
def test_the_headline_names_waits_that_no_signal_reaches(count: int, text: str) -> None:
    index = unsignalled(count)
    line = headline(index, 80)
    assert line_text(line) == text
    assert "waiting" not in {style for _, style in line}
    busy = records.lock(2, "g_busy", rates=LockRates(wait=0.5))
    both = SnapshotIndex(replace(index.snapshot, locks=(*index.snapshot.locks, busy)))
    assert line_text(headline(both, 200)) == f"{text}. Lately most for g_busy, 500ms a second"
    assert line_text(headline(both, 80)) == text
    contended = scenarios.normal()
    worse = replace(contended, patterns=index.snapshot.patterns)
    assert line_text(headline(SnapshotIndex(worse), 80)) == line_text(
        headline(SnapshotIndex(contended), 80)
    )


@pytest.mark.parametrize("name", [PatternName.STARVED_WRITER, PatternName.CONVOY])
def test_the_headline_names_the_pattern_of_the_lock(name: PatternName) -> None:
    calm = scenarios.normal()
    (lock,) = (lock.id for lock in calm.locks if lock.name == "g_table_lock")
    pattern = Pattern(name, lock, (4712,), "5 handovers a second", ADVICE[name])
    text = line_text(headline(SnapshotIndex(replace(calm, patterns=(pattern,))), 200))
    assert f" ({name.words})" in text


def test_the_headline_names_a_pattern_while_no_thread_waits() -> None:
    calm = scenarios.normal()
    threads = tuple(replace(thread, waiting_for=None) for thread in calm.threads)
    minor = Pattern(PatternName.HIGH_RATE, 1, (), "2,000,000 a second", "")
    major = Pattern(PatternName.STARVED_WRITER, 2, (4713,), "4 s behind readers", "")
    seen = replace(calm, threads=threads, patterns=(minor, major))
    text = line_text(headline(SnapshotIndex(seen), 100))
    assert text == " g_table_lock (starved writer): 4 s behind readers"
    assert "No thread waits" not in text


def test_the_headline_names_the_root_of_a_chain_not_the_symptom() -> None:
    """292 threads wait for a connection, whose holders all wait for the index lock."""
    index = SnapshotIndex(blocking.pool_behind_index())
    narrow = line_text(headline(index, 80))
    assert narrow == (" g_index_lock: 300 behind it; held by loader at journal_write:210, in read")
    assert line_text(headline(index, 200)) == (
        " 300 threads wait behind g_index_lock, the longest 12.0s; held by loader for 13.0s"
        " at journal_write journal.c:210, now in read(7 -> /var/lib/x/index) for 3.00 s"
    )
    for width in range(20, 160):
        assert len(line_text(headline(index, width))) <= width


def test_the_headline_of_a_chain_with_an_unknown_holder_says_so() -> None:
    made = blocking.pool_behind_index()
    waits = [thread.waiting_for for thread in made.threads]
    threads = tuple(
        replace(thread, waiting_for=replace(wait, holders=())) if wait else thread
        for thread, wait in zip(made.threads, waits, strict=True)
    )
    pool, lock = made.locks
    unheld = replace(lock, holders=(), holder_activity=None)
    index = SnapshotIndex(replace(made, threads=threads, locks=(pool, unheld)))
    assert line_text(headline(index, 80)) == (
        " g_index_lock: 300 threads behind it; holder not known"
    )


@pytest.mark.parametrize("width", [80, 200])
def test_a_lock_that_nobody_takes_for_lack_of_cpus_has_no_unknown_holder(width: int) -> None:
    """The details say that no thread held the lock in most of the wait."""
    wait = records.wait(1, Kind.MUTEX, 0.265)
    waiter = records.thread(11, "w", ThreadState.WAITING, waiting_for=wait)
    starved = Pattern(PatternName.CPU_STARVED, 1, (11,), "12 threads runnable on 2 CPUs", "")
    mutex = records.lock(1, "m", waiters=(11,))
    index = SnapshotIndex(records.snapshot((waiter,), (mutex,), patterns=(starved,)))
    assert line_text(headline(index, width)).endswith("; mostly free")


def test_the_headline_of_a_class_without_a_holder_counts_all_its_waiters() -> None:
    """Each writer waits for a condition of its own; the leader alone goes on."""
    index = SnapshotIndex(blocking.writers(11))
    assert line_text(headline(index, 80)) == (
        " AwaitState[] x11: 11 wait 1.10s; only leader does not wait"
    )
    assert line_text(headline(index, 140)) == (
        " 11 threads wait for AwaitState[] x11, the longest 1.10s; only leader does not wait"
    )


@pytest.mark.parametrize(
    ("now", "words"),
    [
        (ThreadActivity(0, ActivityState.RUNNING, cpu=0.01), "running"),
        (ThreadActivity(0, ActivityState.BLOCKED, "fsync", "fsync(7 -> /srv/1.log)"), "in fsync"),
    ],
)
def test_the_activity_of_the_likely_holder_leaves_the_name_its_cells(
    now: ThreadActivity, words: str
) -> None:
    made = blocking.writers(11)
    threads = tuple(
        thread if thread.waiting_for else replace(thread, now=replace(now, tid=thread.tid))
        for thread in made.threads
    )
    index = SnapshotIndex(replace(made, threads=threads))
    assert line_text(headline(index, 80)) == (
        f" AwaitState[] x11: 11 wait 1.10s; only leader does not wait, {words}"
    )


def test_a_pool_that_waits_for_work_never_counts() -> None:
    made = blocking.pool_behind_index()
    threads = tuple(
        replace(thread, state=ThreadState.IDLE, waiting_for=replace(wait, idle=True))
        if (wait := thread.waiting_for) is not None and wait.kind is Kind.SEM
        else thread
        for thread in made.threads
    )
    text = line_text(headline(SnapshotIndex(replace(made, threads=threads)), 80))
    assert text.startswith(" g_index_lock: 8 wait 12.0s; held by loader at journal_write:210")


def test_readers_that_are_only_probable_are_named_at_80_columns() -> None:
    readers = [records.thread(tid, "starved", ThreadState.IDLE) for tid in (32041, 32042, 32043)]
    wait = records.wait(1, Kind.RWLOCK, 11.6)
    writer = records.thread(32409, "starved", ThreadState.WAITING, waiting_for=wait)
    probable = tuple(
        ProbableHolder(tid=thread.tid, evidence=HolderEvidence.GUARD, site=0) for thread in readers
    )
    now = ThreadActivity(32041, ActivityState.BLOCKED, "clock_nanosleep", "clock_nanosleep(0.03 s)")
    lock = records.lock(
        1, "prices", Kind.RWLOCK, waiters=(32409,), readers=3, holders_probable=probable,
        holder_activity=now,
    )  # fmt: skip
    snapshot = records.snapshot((*readers, writer), (lock,))
    text = line_text(headline(SnapshotIndex(replace(snapshot, source="proc")), 80))
    assert text == (
        " prices: starved:32409 waits 11.6s; held by 3 readers, probably starved:32041 +2"
    )
