"""The functions that run inside a lock, as a page of plain text."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from locktop.collector.extensions.inside.inside_tree import InsideTree, inside
from locktop.collector.extensions.inside.model import InsideProfile, LockInside, profile_of
from locktop.collector.model import Lock, Snapshot
from locktop.collector.render.profiles.call_tree import Node
from locktop.collector.render.text.call_tree import SMALLEST, named
from locktop.collector.render.words import units
from locktop.collector.render.words.lock_kind import name_with_kind
from locktop.collector.render.words.wrap import wrapped
from locktop.collector.sanitize import clean

_COLUMN = 9
_MIN_NAME = 20
#: The most locks in a text report, and functions of one lock there.
_MAX_LOCKS, _MAX_FUNCTIONS = 5, 8


def render(snapshot: Snapshot, lock: Lock, width: int = 100) -> str:
    """Return the page of a lock of a snapshot with a profile. No line is longer than ``width``."""
    lines = _lines(snapshot, lock, width)
    return "\n".join(part for line in lines for part in wrapped(line, width)) + "\n"


def summary(snapshot: Snapshot, width: int) -> Iterator[str]:
    """Yield the section of the text report: of each sampled lock the functions inside."""
    profile = profile_of(snapshot)
    if profile is None:
        return
    inside_locks = [(lock, profile.locks.get(lock.id)) for lock in snapshot.locks]
    sampled = [(lock, of_lock) for lock, of_lock in inside_locks if of_lock and of_lock.samples]
    if not sampled:
        return
    yield from ("", "WHAT RUNS INSIDE LOCKS, most samples first")
    sampled.sort(key=lambda pair: -pair[1].samples)
    for lock, of_lock in sampled[:_MAX_LOCKS]:
        tree = inside(snapshot, of_lock.stacks)
        yield from (f"  {line}" for line in _head(profile, lock, of_lock))
        yield f"{'total':>{_COLUMN}}{'own':>{_COLUMN}}{'asleep':>{_COLUMN}}  function"
        largest = sorted(tree.functions, key=lambda function: -function.total)[:_MAX_FUNCTIONS]
        yield from _functions(replace(tree, functions=tuple(largest)), width)
    if len(sampled) > _MAX_LOCKS:
        yield f"  and {units.counted(len(sampled) - _MAX_LOCKS, 'more lock')}"


def _lines(snapshot: Snapshot, lock: Lock, width: int) -> Iterator[str]:
    process, profile = snapshot.process, profile_of(snapshot)
    assert profile is not None
    of_lock = profile.locks.get(lock.id)
    tree = inside(snapshot, of_lock.stacks if of_lock is not None else ())
    yield f"locktop callers --inside: {process.comm} {process.pid}, {snapshot.taken_at}"
    yield from _head(profile, lock, of_lock)
    if tree.samples:
        yield ""
        yield f"{'total':>{_COLUMN}}{'own':>{_COLUMN}}{'asleep':>{_COLUMN}}  function"
        yield from _functions(tree, width)
        yield ""
        yield f"{'total':>{_COLUMN}}{'own':>{_COLUMN}}  tree, from the calls that took the lock"
        yield from _tree(tree, width)
    if snapshot.notes:
        yield from ("", "NOTES", *(f"  {note}" for note in snapshot.notes))


def _head(profile: InsideProfile, lock: Lock, of_lock: LockInside | None) -> Iterator[str]:
    named_lock = clean(f"{name_with_kind(lock.kind, lock.name)} (id {lock.id})")
    if of_lock is None or not of_lock.samples:
        yield f"{named_lock}: no sample while a thread held it in contention"
    else:
        yield (
            f"{named_lock}: {units.counted(of_lock.samples, 'sample')}, held"
            f" {units.percent(of_lock.share)} of {units.duration(profile.duration_s)},"
            f" on CPU {units.percent(of_lock.on_cpu / of_lock.samples)},"
            f" asleep {units.percent(1 - of_lock.on_cpu / of_lock.samples)}"
        )
    if of_lock is not None and of_lock.pressure:
        slice_s = units.duration(of_lock.pressure_slice_s)
        shares = "  ".join(units.percent(share) for share in of_lock.pressure)
        yield f"pressure, share of all threads' time in waits, each {slice_s}: {shares}"
    if profile.lost:
        yield f"{units.counted(profile.lost, 'sample')} lost"


def _functions(tree: InsideTree, width: int) -> Iterator[str]:
    left_out = 0
    for function in tree.functions:
        if function.total < SMALLEST * tree.samples:
            left_out += 1
            continue
        figures = [function.total, function.own, function.asleep]
        name = named(function.step, function.location)
        yield _line([figure / tree.samples for figure in figures], name, 0, width)
    if left_out:
        few = units.counted(left_out, "function")
        yield f"{few} under {100 * SMALLEST:.1f} % left out; --format json has all"


def _tree(tree: InsideTree, width: int) -> Iterator[str]:
    line = [(0, node) for node in reversed(tree.root.children)]
    while line:
        depth, node = line.pop()
        if node.value < SMALLEST * tree.samples:
            continue
        figures = [node.value / tree.samples, node.own / tree.samples]
        yield _line(figures, _said(node), depth, width)
        line += [(depth + 1, child) for child in reversed(node.children)]


def _said(node: Node) -> str:
    return named(node.step, node.location) + (" (inlined)" if node.inlined else "")


def _line(shares: list[float], name: str, depth: int, width: int) -> str:
    before = "".join(f"{units.percent(share) if share else '-':>{_COLUMN}}" for share in shares)
    room = max(_MIN_NAME, width - len(before) - 2)
    inward = "  " * min(depth, (room - _MIN_NAME) // 2)
    return f"{before}  {inward}{clean(name, max(_MIN_NAME, room - len(inward)))}"
