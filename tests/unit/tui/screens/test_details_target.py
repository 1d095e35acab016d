"""Enter walks on to the thread that the headline names, also where it only may hold the lock."""

from __future__ import annotations

from msgspec.structs import replace
from support.driven import opened
from unit.builders import blocking

from locktop.collector.model import HolderEvidence, ProbableHolder, Snapshot, ThreadState
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.tui.views.banner import no_deadlock


def unheld(*probable: ProbableHolder) -> Snapshot:
    """A crowd waits for g_index_lock, whose holder is not known; loader alone does not wait."""
    made = blocking.pool_behind_index(0)
    pool, lock = made.locks
    threads = tuple(
        replace(
            thread,
            holds=(),
            waiting_for=thread.waiting_for and replace(thread.waiting_for, holders=()),
        )
        for thread in made.threads
    )
    lock = replace(lock, holders=(), holder_activity=None, holders_probable=probable)
    return replace(made, source="proc", threads=threads, locks=(pool, lock))


async def test_enter_goes_to_the_only_thread_that_does_not_wait() -> None:
    async with opened(unheld(), size=(100, 24)) as screen:
        assert "only loader does not wait" in screen.text
        await screen.keys("enter", "enter")
        assert "of a thread, 1 step on" in screen.text
        text = " ".join(screen.text.split())
        assert "is not known; loader is the only thread that does not wait" in text
        await screen.keys("escape")
        assert "Details of a lock" in screen.text


async def test_enter_goes_to_the_probable_holder() -> None:
    probable = ProbableHolder(blocking.HOLDER, HolderEvidence.GUARD, 0)
    async with opened(unheld(probable), size=(100, 24)) as screen:
        assert "probably held by loader" in screen.text
        await screen.keys("enter", "enter")
        assert "of a thread, 1 step on" in screen.text
        assert "loader probably holds g_index_lock" in screen.text


def test_a_probable_holder_is_not_unknown() -> None:
    probable = ProbableHolder(blocking.HOLDER, HolderEvidence.GUARD, 0)
    assert no_deadlock(SnapshotIndex(unheld(probable))) == (
        "No deadlock is found. The holder of a lock is only probable."
    )
    assert "holders of what 8 threads wait for are not known" in no_deadlock(
        SnapshotIndex(unheld())
    )


async def test_enter_goes_from_a_class_of_locks_to_the_only_thread_that_does_not_wait() -> None:
    async with opened(blocking.writers(11), size=(100, 24)) as screen:
        assert "11 threads wait for AwaitState[] x11" in screen.text
        await screen.keys("enter", "enter")
        assert "of a thread, 1 step on" in screen.text
        assert "only leader does not wait" in screen.text


async def test_a_class_of_locks_that_is_not_there_shows_the_lock_of_it_that_matters() -> None:
    made = blocking.writers(11)
    async with opened(made, size=(100, 24)) as screen:
        await screen.keys("enter")
        assert "Details of a class of locks" in screen.text
        await screen.show(replace(made, threads=made.threads[:2], locks=made.locks[:1]))
        assert "The row of before is not there at this moment" in screen.text
        assert "Details of a lock" in screen.text
        assert "AwaitState[0]" in screen.text
        await screen.show(made)
        assert "Details of a class of locks" in screen.text


async def test_threads_that_do_other_things_show_what_most_of_them_do() -> None:
    made = blocking.pool_behind_index(0)
    async with opened(made, size=(100, 24)) as screen:
        await screen.keys("3", "enter")
        assert "Details of threads that do the same" in screen.text
        threads = tuple(
            replace(thread, waiting_for=None, state=ThreadState.OTHER) for thread in made.threads
        )
        await screen.show(replace(made, threads=threads))
        assert "It is not there at this moment" not in screen.text
        assert "The row of before is not there at this moment" in screen.text
