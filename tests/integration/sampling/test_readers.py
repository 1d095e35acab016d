"""The readers of a sampled reader-writer lock: their number is known, and that a writer waits."""

from __future__ import annotations

from contextlib import closing

from msgspec.structs import replace
from support.eventually import until
from support.targets import StartTarget, Target

from locktop.collector.extensions.stacks import groups, text_report
from locktop.collector.model import Kind, Lock, Snapshot
from locktop.collector.render import check_report
from locktop.collector.render.text.report import render
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.collector.sources.attach import attach
from locktop.tui.views import lock_details, thread_details, thread_list
from locktop.tui.views.headline import headline
from locktop.tui.views.styled_line import line_text, unfolded


def starved(target: Target) -> Snapshot:
    """Return a snapshot of the starved writer in which its lock has readers."""
    target.expect("ready")
    snapshots: list[Snapshot] = []
    with closing(attach(target.pid)) as source:

        def has_readers() -> bool:
            snapshots.append(source.scan(resolve=True))
            return catalog_of(snapshots[-1]).readers > 0

        until(has_readers, "readers")
    return snapshots[-1]


def test_a_writer_behind_many_readers_gets_no_advice_about_one_of_them(
    start_unprepared: StartTarget,
) -> None:
    """The first pictures said to make a sleep of 40 ms elsewhere, and left three readers out."""
    target = start_unprepared("starved_update", "crowd")
    target.expect("ready")
    snapshots: list[Snapshot] = []
    with closing(attach(target.pid)) as source:

        def has_probable_readers() -> bool:
            snapshots.append(source.scan(resolve=True))
            catalog = catalog_of(snapshots[-1])
            return bool(catalog.readers and catalog.holders_probable)

        until(has_probable_readers, "readers that are probably known")
    # Later the pattern has its own advice.
    index = SnapshotIndex(replace(snapshots[-1], patterns=()))
    lock = catalog_of(snapshots[-1])
    count = f"{lock.readers} reader{'s' * (lock.readers > 1)}"
    text = "\n".join(map(line_text, unfolded(lock_details.lock_details(index, lock))))
    assert f"behind {count}, probably query:" in text
    assert f"held by   {count}, probably query:" in text
    assert "advice    Let the lock prefer writers if its readers overlap;" in text
    for width in (80, 100):
        first = line_text(headline(index, width))
        assert count in first
        assert " >" in first


def catalog_of(snapshot: Snapshot) -> Lock:
    """Return the lock that the writer waits for."""
    (lock,) = [lock for lock in snapshot.locks if lock.name == "g_catalog"]
    return lock


def test_the_readers_are_counted_and_the_starved_writer_is_named(
    start_unprepared: StartTarget,
) -> None:
    snapshot = starved(start_unprepared("starved_update"))
    lock, index = catalog_of(snapshot), SnapshotIndex(snapshot)
    assert lock.readers in (1, 2)
    assert lock.holders == ()
    held = f"held by {lock.readers} reader"
    first = line_text(headline(index, 100))
    assert "prices waits for g_catalog to write" in first
    assert held in first
    assert held in line_text(headline(index, 80))
    (writer,) = [thread for thread in snapshot.threads if thread.name == "prices"]
    details = (
        *unfolded(lock_details.lock_details(index, lock)),
        *unfolded(thread_details.thread_details(index, writer)),
    )
    text = "\n".join(map(line_text, details))
    assert f"held by   {lock.readers} reader" in text
    assert "to write" in text
    assert f"rwlock g_catalog to write, {held}" in render(snapshot, width=200)


def test_a_sleeping_reader_is_not_idle_while_a_writer_waits(
    start_unprepared: StartTarget,
) -> None:
    """A crowd of readers was hidden as idle, so the screen showed the writer alone."""
    target = start_unprepared("contention_patterns", "longread-not")
    target.expect("ready")
    snapshots: list[Snapshot] = []
    with closing(attach(target.pid)) as source:

        def has_holder() -> bool:
            snapshots.append(source.scan(resolve=True))
            locks = [lock for lock in snapshots[-1].locks if lock.name == "g_rwlock"]
            return any(len(lock.holders_probable) > 0 for lock in locks)

        until(has_holder, "a probable holder")
    index = SnapshotIndex(snapshots[-1])
    (lock,) = [lock for lock in index.locks.values() if lock.name == "g_rwlock"]
    for holder in lock.holders_probable:
        thread = index.threads[holder.tid]
        assert not index.is_idle(thread)
        assert thread_list.state_word(index, thread) in ("asleep", "running")
    (main,) = [thread for thread in index.threads.values() if thread.tid == target.pid]
    assert index.is_idle(main)
    assert " asleep" in render(snapshots[-1]).split("LOCKS")[0]


def test_readers_behind_a_writer_wait_for_the_lock_after_a_reader_has_left(
    start_unprepared: StartTarget,
) -> None:
    """The value of their word has changed, so they waited for an unknown object, as if for work."""
    target = start_unprepared("readers_queue_behind_writer")
    target.expect("ready")
    with closing(attach(target.pid)) as source:
        snapshot = source.scan()
    waits = [thread.waiting_for for thread in snapshot.threads if thread.name == "reader"]
    assert [(wait.kind, wait.shared, wait.idle) for wait in waits if wait is not None] == [
        (Kind.RWLOCK, True, False)
    ] * 3
    (lock,) = snapshot.locks
    assert (lock.readers, len(lock.waiters)) == (1, 4)


def test_stacks_name_the_number_of_readers(start_unprepared: StartTarget) -> None:
    snapshot = starved(start_unprepared("starved_update"))
    (line,) = [
        line
        for line in text_report.render(groups.find(snapshot), 200).splitlines()
        if "waits for rwlock g_catalog" in line
    ]
    assert f", held by {catalog_of(snapshot).readers} reader" in line


def test_check_says_that_readers_have_the_lock(start_unprepared: StartTarget) -> None:
    snapshot = starved(start_unprepared("starved_update"))
    threads = tuple(
        replace(thread, waiting_for=replace(thread.waiting_for, duration_s=60.0))
        if thread.name == "prices" and thread.waiting_for is not None
        else thread
        for thread in snapshot.threads
    )
    first, *others = check_report.lines(replace(snapshot, threads=threads), width=200)
    assert "for a lock that readers hold" in first
    assert any("waits for g_catalog to write" in line for line in others)


def test_a_lock_that_a_writer_has_has_no_readers(start_unprepared: StartTarget) -> None:
    target = start_unprepared("ring_of_three")
    target.go_on()
    with closing(attach(target.pid)) as source:
        assert all(lock.readers == 0 for lock in source.scan().locks)
