"""Lines that tell what runs inside a lock: functions with shares."""

from __future__ import annotations

from collections.abc import Iterator

from rich.cells import cell_len

from locktop.collector.extensions.inside.inside_tree import FunctionShare, inside
from locktop.collector.extensions.inside.model import inside_of, profile_of
from locktop.collector.model import CONTENTION_KINDS, Lock, Snapshot
from locktop.collector.render.words.lock_kind import kind_word, name_with_kind
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.tui.views.call_tree import HOT
from locktop.tui.views.call_tree_rows import location_of
from locktop.tui.views.cells import bar, counted, duration, fit_right, percent
from locktop.tui.views.detail_parts import labelled
from locktop.tui.views.shorten import fit_location, strip_arguments
from locktop.tui.views.sorting import SortKey
from locktop.tui.views.styled_line import Line, line_text, make_line
from locktop.tui.views.table import Cell, Column

_BAR = 8
_SHARE = 6
_TOP = 3
#: The orders of the list of functions. The function that took the lock has all samples.
SORT_KEYS: tuple[SortKey[FunctionShare], ...] = (
    SortKey("total", "TOTAL", lambda function: (-function.total, -function.own, function.step)),
    SortKey("own", "OWN", lambda function: (-function.own, -function.total, function.step)),
    SortKey("asleep", "ASLEEP", lambda function: (-function.asleep, -function.own, function.step)),
)


def function_columns(samples: int) -> tuple[Column[FunctionShare], ...]:
    """The columns of the list of functions; shares are of ``samples``."""

    def total(row: FunctionShare) -> Cell:
        part = row.total / samples
        return f"{percent(part):>4} {bar(part, _BAR)}", "waiting" if part >= HOT else "text"

    def own(row: FunctionShare) -> Cell:
        return _share(row.own, samples)

    def asleep(row: FunctionShare) -> Cell:
        return _share(row.asleep, samples)

    def name(row: FunctionShare) -> Cell:
        style = "strong" if row.own / samples >= HOT else "text"
        return location_of(row.step, row.location), style

    return (
        Column("TOTAL", _BAR + 5, total),
        Column("OWN", _SHARE, own, fitting=fit_right),
        Column("ASLEEP", _SHARE, asleep, fitting=fit_right),
        Column("FUNCTION", 20, name, fitting=fit_location, grow=1),
    )


def _share(part: int, samples: int) -> Cell:
    return (percent(part / samples), "text") if part else ("-", "dim")


def inside_title(lock: Lock) -> Line:
    """The begin of the line above the lists."""
    kind = name_with_kind(lock.kind, lock.name).removesuffix(lock.name)
    return make_line((" Inside ", "label"), kind, (lock.name, "strong"), "  ")


def missing_samples(index: SnapshotIndex, lock: Lock) -> str:
    """Why there is no sample of the holder of a lock, and what is known of the holder."""
    holders = index.holders(lock.holders, lock.id)
    if lock.kind not in CONTENTION_KINDS:
        owner = f"{holders} has it now" if holders else "its holder is not known"
        what = kind_word(lock.kind, lock.name)
        return f"no samples: nobody records who holds a {what}; {owner}"
    if holders and lock.waiters:
        return f"no sample yet: {holders} holds it"
    if lock.waiters:
        return "no sample yet: its holder is not known"
    return "no sample yet: no thread waits for it now"


def samples_line(snapshot: Snapshot, lock: Lock, is_sampling: bool, width: int) -> Line:
    """The line above the lists, for a lock with samples.

    Args:
        snapshot: has the figures of the profile.
        lock: of the snapshot.
        is_sampling: whether locktop goes on sampling.
        width: cells. The last figure is left out where the whole line does not fit.
    """
    samples, profile = inside_of(snapshot, lock.id), profile_of(snapshot)
    if samples is None or profile is None or not samples.samples:
        return inside_title(lock)
    rate = f"{1 / profile.period_s:.0f} Hz" if profile.period_s > 0 else ""
    running = samples.on_cpu / samples.samples
    brief = (
        *inside_title(lock),
        *make_line(
            ("sampling " if is_sampling else "sampled at ", "label"),
            f"{rate}, {counted(samples.samples, 'sample')}, ",
            (f"on CPU {percent(running)}", "running"),
            f", asleep {percent(1 - running)}",
        ),
    )
    held = f", held {percent(samples.share)} of {duration(profile.duration_s)}"
    whole = (*brief, *make_line(held))
    return whole if cell_len(line_text(whole)) <= width else brief


def inside_details(index: SnapshotIndex, lock: Lock) -> Iterator[Line]:
    """The functions that take the most of the holds, in the details of a lock with samples."""
    of_lock = inside_of(index.snapshot, lock.id)
    if of_lock is None or not of_lock.samples:
        return
    tree = inside(index.snapshot, of_lock.stacks)
    # A function that only calls the others tells nothing.
    telling = [
        function for function in tree.functions if function.own or function.total < tree.samples
    ]
    telling.sort(key=SORT_KEYS[0].key)
    for number, function in enumerate(telling[:_TOP]):
        name = strip_arguments(location_of(function.step, function.location))
        share = percent(function.total / tree.samples)
        yield labelled("" if number else "inside", f"{share:>4}  ", (name, "where"))
    yield labelled("", (f"of {counted(tree.samples, 'sample')}; I shows all", "dim"))
