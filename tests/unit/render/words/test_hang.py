"""The sentences about a process whose threads all wait for each other."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from support.pages import page
from unit.builders import hangs, records, scenarios

from locktop.collector.analysis.alerts import AlertKind, Alerts
from locktop.collector.extensions.watch.alert_line import lock_name
from locktop.collector.model import BlockReason, Hang, Kind, Snapshot
from locktop.collector.render import check_report
from locktop.collector.render.documents.snapshot_codec import document
from locktop.collector.render.words import hang, verdict
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.tui import accessible
from locktop.tui.views.banner import banner, no_deadlock
from locktop.tui.views.overview import Room, overview_lines
from locktop.tui.views.status import verdict_flag
from locktop.tui.views.styled_line import line_text


def hanging(certain: bool = True) -> Snapshot:
    """All threads wait for each other, and no cycle of locks is known."""
    stuck = scenarios.deadlock()
    waiting = tuple(thread for thread in stuck.threads if thread.waiting_for is not None)
    whole = Hang(
        certain=certain,
        since_s=12.5,
        tids=tuple(thread.tid for thread in waiting),
        doubt="" if certain else "a handler of SIGTERM may wake a thread",
        changed_words={waiting[0].tid: 3},
    )
    return replace(stuck, threads=waiting, deadlocks=(), hang=whole)


def test_a_certain_hang_is_a_deadlock_in_one_line() -> None:
    snapshot = hanging()
    count = len(snapshot.threads)
    assert verdict.is_deadlocked(snapshot)
    line = verdict.line(snapshot)
    assert line.startswith(f"deadlock: all {count} threads of ")
    assert "wait for each other, for 12.5 s: " in line
    assert "(3 already: nobody woke it)" in line
    report = check_report.lines(snapshot)
    assert f"HANG: all {count} threads wait for each other, for 12.5 s" in report
    assert any(one.startswith("Nothing in this process will ever run again") for one in report)


def test_a_doubtful_hang_counts_when_it_has_lasted() -> None:
    snapshot = hanging(certain=False)
    assert not verdict.is_deadlocked(snapshot)
    assert verdict.is_doubtful(snapshot)
    assert verdict.line(snapshot).startswith("cannot tell whether there is a deadlock: all ")
    assert "unless a handler of SIGTERM may wake a thread" in verdict.line(snapshot)
    assert snapshot.hang is not None
    short = replace(snapshot, hang=replace(snapshot.hang, since_s=2.0, is_lower_bound=True))
    assert verdict.long_hang(short) is None
    assert verdict.may_be_long(short)


def test_the_groups_have_all_threads_of_the_hang() -> None:
    snapshot = hanging()
    assert snapshot.hang is not None
    tids = [thread.tid for group in hang.groups(snapshot) for thread in group.threads]
    assert sorted(tids) == sorted(snapshot.hang.tids)


def test_who_waits_for_another_process_comes_first() -> None:
    snapshot = hanging(certain=False)
    assert snapshot.hang is not None
    for tid in snapshot.hang.tids:
        calls = {tid: "write(1 -> pipe:[77])"}
        doubtful = replace(snapshot, hang=replace(snapshot.hang, calls=calls))
        first = hang.groups(doubtful)[0]
        assert [thread.tid for thread in first.threads] == [tid]
        assert first.what == "room in a pipe, write(1 -> pipe:[77])"


def test_the_screen_says_so_within_its_width() -> None:
    for certain, word in ((True, "HANG"), (False, "HANG?")):
        index = SnapshotIndex(hanging(certain))
        assert verdict_flag(index) == word
        for width in (80, 120):
            lines = [line_text(line) for line in banner(index, 3, width)]
            assert len(lines) == (3 if certain or width > 80 else 4)
            assert all(len(line) <= width for line in lines)
            assert "HANG: all" in lines[0]
        assert "but all" in no_deadlock(index)
        assert "wait for each other" in "\n".join(
            map(line_text, overview_lines(index, (), Room(120, 30)))
        )
        assert "hang" in accessible.facts(index)["Deadlock"]


@pytest.mark.parametrize(("width", "height"), [(80, 4), (60, 4), (40, 6), (80, 3)])
def test_the_condition_of_a_possible_hang_is_never_cut(width: int, height: int) -> None:
    lines = [line_text(line) for line in banner(SnapshotIndex(hanging(False)), height, width)]
    text = " ".join(" ".join(lines).split())
    assert "for 12.5 s, unless a handler of SIGTERM may wake a thread" in text
    assert len(lines) <= height + 1
    assert all(len(line) <= width for line in lines)


def test_the_line_of_the_source_is_never_cut() -> None:
    snapshot = hangs.hung()
    frame = records.frame("(anonymous namespace)::count_rows", "pool_waits_for_itself.cc", 62)
    stacks = dict.fromkeys(snapshot.stacks, (frame,))
    lines = banner(SnapshotIndex(replace(snapshot, stacks=stacks)), 12, 60)
    texts = [line_text(line) for line in lines]
    assert any(
        text.endswith("joiner waits for the end of pool-0, at count_rows:62") for text in texts
    ), texts
    assert all(len(text) <= 60 for text in texts)


def test_a_lock_of_python_keeps_its_own_word() -> None:
    """The C library calls a ``threading.Lock`` a semaphore."""
    snapshot = hanging()
    wait = snapshot.threads[0].waiting_for
    assert wait is not None
    name = "Lock in submit_order (orders_service.py:29)"
    locks = tuple(
        replace(lock, kind=Kind.SEM, name=name) if lock.id == wait.lock else lock
        for lock in snapshot.locks
    )
    threads = tuple(
        replace(thread, waiting_for=replace(wait, kind=Kind.SEM)) if not number else thread
        for number, thread in enumerate(snapshot.threads)
    )
    snapshot = replace(snapshot, locks=locks, threads=threads)
    assert f" for {name}" in verdict.line(snapshot)
    assert "sem Lock" not in "\n".join(check_report.lines(snapshot))
    assert lock_name(wait.lock, snapshot) == name


def test_a_hang_is_one_alert() -> None:
    alerts = Alerts(None)
    (alert,) = alerts.due(hanging())
    assert alert.kind is AlertKind.DEADLOCK
    alerts.mark_reported(alert)
    assert alerts.due(hanging()) == []
    assert Alerts(None).due(hanging(certain=False)) == []


def test_a_hang_is_part_of_the_document() -> None:
    snapshot = hanging()
    written = document(snapshot)
    assert written["hang"]["certain"] is True
    assert written["hang"]["changed_words"] == {str(snapshot.threads[0].tid): 3}
    assert check_report.document(snapshot)["hang"] == written["hang"]


def without(snapshot: Snapshot, count: int) -> Snapshot:
    """Return the hang of the first threads alone."""
    assert snapshot.hang is not None
    return replace(snapshot, hang=replace(snapshot.hang, tids=snapshot.hang.tids[:count]))


@pytest.mark.parametrize(
    ("name", "snapshot"),
    [
        ("hang", hangs.hung()),
        ("hang-possible", replace(without(hangs.hung(certain=False), 1), stacks={})),
    ],
)
def test_the_section_of_the_report_names_what_each_thread_waits_for(
    name: str, snapshot: Snapshot
) -> None:
    lines = [hang.sentence(snapshot), "", *hang.lines(snapshot)]
    assert "".join(f"{line}\n" for line in lines) == page(name)


@pytest.mark.parametrize(
    ("count", "end"),
    [
        (10, ", sleeper waits for std::latch"),
        (11, ", dreamer waits for futex in descend (tree.c:1)"),
        (12, ", dreamer waits for futex in descend (tree.c:1), and 1 group more"),
        (13, ", dreamer waits for futex in descend (tree.c:1), and 2 groups more"),
    ],
)
def test_the_sentence_has_eight_groups(count: int, end: str) -> None:
    sentence = hang.sentence(without(hangs.hung(), count))
    assert sentence.endswith(end)


def test_a_process_that_goes_on_has_no_sentence() -> None:
    calm = scenarios.normal()
    assert (hang.sentence(calm), list(hang.lines(calm)), hang.groups(calm)) == ("", [], [])
    assert not hang.is_the_finding(calm)


def test_a_deadlock_over_locks_says_more_than_the_hang() -> None:
    whole = hanging()
    over_locks = replace(whole, deadlocks=scenarios.deadlock().deadlocks)
    absent = tuple(
        replace(edge, reason=BlockReason.ABSENT) for edge in over_locks.deadlocks[0].cycle[:1]
    )
    over_barrier = replace(whole, deadlocks=(replace(over_locks.deadlocks[0], cycle=absent),))
    assert hang.is_the_finding(whole)
    assert hang.is_the_finding(over_barrier)
    assert not hang.is_the_finding(over_locks)
    assert not hang.is_the_finding(hanging(certain=False))
