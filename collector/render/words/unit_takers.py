"""The words about threads that took units of a semaphore and did not post them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from locktop.collector.model import Frame, Kind, Snapshot, TakenUnits, UnitTaker
from locktop.collector.model.frames import innermost_own_frame, is_standard_library
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.collector.render.words.source_location import (
    file_and_line,
    full_location,
    function_name,
    shortest_location,
)
from locktop.collector.render.words.units import counted
from locktop.collector.symbols.python.interpreter import is_interpreter_module

_MAX_NAMED = 3
_MAX_FRAMES = 8
_Describe = Callable[[Frame], str]


def phrase(index: SnapshotIndex, lock_id: int, width: int = 0) -> str:
    """Return "all 3 units taken, not given back: a and b in f (x.c:7), c (ended) in g (x.c:9)".

    If one call site took all of them, it comes before the names. The result is "" if the takers
    are not known, or if not all units are taken.

    Args:
        index: The snapshot.
        lock_id: The semaphore.
        width: If the text has more characters, it has the short form of source locations.
    """
    taken = index.taken_units.get(lock_id)
    if taken is None:
        return ""
    text = _phrase(index, taken, _location)
    return _phrase(index, taken, shortest_location) if 0 < width < len(text) else text


def _phrase(index: SnapshotIndex, taken: TakenUnits, describe: _Describe) -> str:
    what = f"all {taken.all} units" if taken.all > 1 else "the only unit"
    call_sites = {_call_site(index, taker, describe) for taker in taken.takers}
    (call_site,) = call_sites if len(call_sites) == 1 and not taken.ended else ("",)
    if call_site.startswith("in "):
        names = ", ".join([*_taker_names(index, taken), *_more(taken)])
        return f"{what} taken {call_site}, not given back: {names}"
    return f"{what} taken, not given back: {', '.join(_groups(index, taken, describe))}"


def groups(index: SnapshotIndex, lock_id: int) -> list[str]:
    """Return the takers of a semaphore by call site: ["a and b in f (x.c:7)", "1 more thread"]."""
    taken = index.taken_units.get(lock_id)
    return _groups(index, taken, _location) if taken is not None else []


def _groups(index: SnapshotIndex, taken: TakenUnits, describe: _Describe) -> list[str]:
    names: dict[str, list[str]] = {}
    for taker in taken.takers[:_MAX_NAMED]:
        call_site = _call_site(index, taker, describe)
        names.setdefault(call_site, []).append(_name(index, taker))
    groups = []
    for call_site, threads in names.items():
        if call_site:
            groups.append(f"{_list_words(threads)} {call_site}")
        else:
            groups += threads
    return groups + _more(taken)


def _list_words(names: list[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def _taker_names(index: SnapshotIndex, taken: TakenUnits) -> list[str]:
    return [_name(index, taker) for taker in taken.takers[:_MAX_NAMED]]


def _more(taken: TakenUnits) -> list[str]:
    """Return the takers without a name."""
    parts = []
    if (more := len(taken.takers) - _MAX_NAMED) > 0:
        parts.append(counted(more, "more thread"))
    if taken.ended:
        by = "a thread that ended" if taken.ended == 1 else "threads that ended"
        parts.append(f"{taken.ended} by {by}")
    return parts


def _name(index: SnapshotIndex, taker: UnitTaker) -> str:
    thread = index.threads.get(taker.tid)
    ended = " (ended)" if thread is not None and not thread.alive else ""
    times = f" x{taker.units}" if taker.units > 1 else ""
    return f"{index.thread_name(taker.tid)}{ended}{times}"


def _location(frame: Frame) -> str:
    where = file_and_line(frame) if frame.function else ""
    return f"{function_name(frame)} ({where})" if where else function_name(frame)


def _call_site(index: SnapshotIndex, taker: UnitTaker, describe: _Describe) -> str:
    """Return "in f (x.c:7)", "" if that is not known.

    "first in" says that the thread took further units elsewhere, and may have those.
    """
    frame = own_frame(index, taker)
    if frame is None:
        return ""
    return f"{'first in' if taker.took_more else 'in'} {describe(frame)}"


def own_frame(index: SnapshotIndex, taker: UnitTaker) -> Frame | None:
    """Return the frame of the program that took the unit; None if it is not known.

    A function of an interpreter or of a standard library says nothing about the program.
    """
    site = index.snapshot.sites.get(taker.site)
    frames = index.stack(taker.stack) or ((site,) if site is not None else ())
    frame = innermost_own_frame(frames)
    if frame is None or is_interpreter_module(frame.module) or is_standard_library(frame):
        return None
    return frame


def stacks(index: SnapshotIndex, lock_id: int) -> Iterator[tuple[str, int]]:
    """Yield the known stacks in which units were taken, each with the names of its threads."""
    taken = index.taken_units.get(lock_id)
    names: dict[int, list[str]] = {}
    for taker in taken.takers[:_MAX_NAMED] if taken is not None else ():
        if index.stack(taker.stack) and own_frame(index, taker) is not None:
            names.setdefault(taker.stack, []).append(_name(index, taker))
    for stack, threads in names.items():
        yield _list_words(threads), stack


def lines(snapshot: Snapshot) -> Iterator[str]:
    """Yield the section of a text report: the semaphores whose units are all taken.

    The known stacks in which threads took the units follow each semaphore.
    """
    if all(lock.taken_units is None for lock in snapshot.locks):
        return  # the indexes of a large process take time
    index = SnapshotIndex(snapshot)
    yield "UNITS TAKEN AND NOT POSTED"
    for lock_id in index.taken_units:
        lock = index.locks[lock_id]
        kind = "" if lock.name.startswith(Kind.SEM) else f"{Kind.SEM} "
        yield f"  {kind}{index.lock_name(lock_id)}: {phrase(index, lock_id)}"
        for names, stack in stacks(index, lock_id):
            yield f"    {names} took a unit in"
            for number, frame in enumerate(index.stack(stack)[:_MAX_FRAMES]):
                yield f"      {number} {full_location(frame)}"
