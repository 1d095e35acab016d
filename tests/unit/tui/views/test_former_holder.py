"""Enter to a holder that has let go of the lock already."""

from __future__ import annotations

from msgspec.structs import replace
from support.driven import opened
from unit.builders import blocking, records, scenarios

from locktop.collector.model import Event, Kind, Snapshot, ThreadState

HOLDER, LOCK = 4714, 1  # worker-2 has g_cache_lock
HOLD = Event(HOLDER, LOCK, Kind.MUTEX, 1.0, 0.25, 0.5, 0, 0, 0x401200, False)


def freed(*events: Event) -> Snapshot:
    """The usual snapshot, with the lock free again."""
    calm = scenarios.normal()
    threads = tuple(
        replace(thread, holds=())
        if thread.tid == HOLDER
        else replace(thread, waiting_for=replace(wait, holders=()))
        if (wait := thread.waiting_for) is not None and wait.lock == LOCK
        else thread
        for thread in calm.threads
    )
    locks = tuple(
        replace(lock, holders=(), holder_activity=None) if lock.id == LOCK else lock
        for lock in calm.locks
    )
    return replace(calm, threads=threads, locks=locks, events=events)


async def test_the_holder_stays_with_its_last_hold() -> None:
    async with opened(scenarios.normal(), size=(80, 24)) as screen:
        await screen.keys("enter")
        assert "g_cache_lock" in screen.text
        await screen.keys("enter")
        assert "of a thread, 1 step on" in screen.text
        assert "has let go" not in screen.text
        await screen.show(freed(HOLD))
        assert "worker-2 has let go of g_cache_lock: held it for 500ms, until 250ms ago" in (
            screen.text
        )
        assert "p pauses" in screen.text
        await screen.keys("p")
        assert "has let go" in screen.text
        assert "p pauses" not in screen.text


async def test_enter_goes_to_the_last_holder_of_a_free_lock() -> None:
    async with opened(freed(HOLD), size=(80, 24)) as screen:
        await screen.keys("enter", "enter")
        assert "worker-2 has let go of g_cache_lock" in screen.text
        await screen.keys("escape")
        assert "Details of a lock" in screen.text


async def test_without_a_record_the_message_offers_the_pause() -> None:
    async with opened(freed(), size=(80, 24)) as screen:
        await screen.keys("enter", "enter")
        await screen.says("or nobody holds it; p pauses the screen.")


async def test_enter_goes_to_the_holder_that_an_earlier_scan_named() -> None:
    before = blocking.writers(3)
    other = records.thread(900, "other", ThreadState.RUNNING)  # so no holder is likely
    after = replace(before, threads=(*before.threads, other), duration_s=before.duration_s + 0.4)
    async with opened(before, size=(80, 24)) as screen:
        await screen.keys("enter")
        await screen.show(after)
        await screen.keys("enter")
        assert "is not known; 400 ms ago likely leader" in screen.text
        assert "leader  thread 100" in screen.text
        assert "p pauses" in screen.text
        later = replace(after, duration_s=after.duration_s + 9.0)
        await screen.show(later)
        assert "leader was named as the holder of" in screen.text
        assert "has let go" not in screen.text


async def test_a_holder_that_has_ended_is_named() -> None:
    ended = freed(HOLD)
    ended = replace(ended, threads=tuple(t for t in ended.threads if t.tid != HOLDER))
    async with opened(scenarios.normal(), size=(80, 24)) as screen:
        await screen.keys("enter", "enter")
        await screen.show(ended)
        assert "of a holder that has ended" in screen.text
        assert "has let go of g_cache_lock" in screen.text


async def test_the_root_of_a_tree_stays_when_the_tree_is_gone() -> None:
    """A hidden list is not drawn, so its rows are those of an earlier moment."""
    for size in ((80, 24), (120, 40)):
        async with opened(blocking.pool_behind_index(), size=size) as screen:
            await screen.keys("4", "enter")
            title = next(line for line in screen.lines if "Details" in line)
            assert "behind" in screen.text
            calm = replace(
                blocking.pool_behind_index(),
                locks=tuple(
                    replace(k, holders=(), waiters=()) for k in blocking.pool_behind_index().locks
                ),
                threads=tuple(
                    replace(t, waiting_for=None, holds=())
                    for t in blocking.pool_behind_index().threads
                ),
            )
            await screen.show(calm)
            assert "has let go of" in screen.text, (title, screen.text)
            assert "behind this" not in screen.text
