"""The line of the source that a row or the details are about."""

from __future__ import annotations

from msgspec.structs import replace
from unit.builders import scenarios

from locktop.collector.model import Frame
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.tui.screens import source_line


def frame(function: str, file: str | None, line: int, module: str = "store") -> Frame:
    return Frame(0x1000 + line, function, file, line, module, line)


def index_with(stack: tuple[Frame, ...]) -> SnapshotIndex:
    """The deadlock with one stack for all waits, and without call sites."""
    made = scenarios.deadlock()
    return SnapshotIndex(replace(made, stacks=dict.fromkeys(made.stacks, stack), sites={}))


def waiting(index: SnapshotIndex) -> int:
    return index.snapshot.deadlocks[0].cycle[0].tid


def test_the_innermost_own_frame_is_the_line() -> None:
    stack = (
        frame("__lll_lock_wait", "/usr/src/glibc/lowlevellock.c", 49, "libc.so.6"),
        frame("std::mutex::lock()", "/usr/include/c++/12/bits/std_mutex.h", 100),
        frame("take_right", "/src/ring.c", 36),
        frame("philosopher", "/src/ring.c", 51),
    )
    index = index_with(stack)
    assert source_line.thread_line(index, waiting(index)) == ("/src/ring.c", 36)
    assert source_line.deadlock_line(index, 0) == ("/src/ring.c", 36)
    assert source_line.deadlock_line(index, 1) == ("/src/ring.c", 36)


def test_without_an_own_frame_any_frame_with_a_file_is_the_line() -> None:
    stack = (frame("sem_wait", None, 1), frame("std::x", "/usr/include/x.h", 7))
    index = index_with(stack)
    assert source_line.thread_line(index, waiting(index)) == ("/usr/include/x.h", 7)


def test_without_any_file_there_is_no_line() -> None:
    index = index_with((frame("take_right", None, 1),))
    assert source_line.thread_line(index, waiting(index)) is None
    assert source_line.thread_line(index, 1) is None


def test_the_line_of_a_lock_is_where_its_holder_took_it() -> None:
    index = SnapshotIndex(scenarios.normal())
    lock = next(lock for lock in index.locks.values() if lock.name == "g_cache_lock")
    found = source_line.lock_line(index, lock)
    assert found is not None
    assert (found[0].rsplit("/", 1)[-1], found[1]) == ("cache.c", 88)
