"""A comparison as a page of plain text: sentences first, then the figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from locktop.collector.extensions.diff import sentences
from locktop.collector.extensions.diff.model import (
    Difference,
    FigureChange,
    LockChanges,
    SideComparison,
)
from locktop.collector.render.words.wrap import wrapped
from locktop.collector.sanitize import clean

#: Locks of each list; the JSON has all.
_MAX_LOCKS = 20
_FIGURE, _TIMES, _INTERVAL = 11, 8, 19
_MIN_LABEL = 20
_WIDTH = 80


def render(comparison: SideComparison) -> str:
    """Return the page, of 80 columns."""
    lines = [part for line in _lines(comparison) for part in wrapped(line, _WIDTH)]
    return "\n".join(lines) + "\n"


def section(comparison: SideComparison) -> Difference:
    """Return the page as a part of the snapshot of the later side."""
    return Difference(clean(comparison.before.title), tuple(render(comparison).splitlines()))


def _lines(comparison: SideComparison) -> Iterator[str]:
    yield from sentences.headlines(comparison)
    yield ""
    yield sentences.side_line("A", comparison.before)
    yield sentences.side_line("B", comparison.after)
    changed = [lock for lock in (comparison.totals, *comparison.locks) if lock.worthy]
    if changed:
        yield ""
        yield _row("", "A", "B", "times", "95 % interval")
        for lock in changed[: _MAX_LOCKS + 1]:
            yield from _lock_lines(lock, comparison)
        yield from _more(len(changed) - _MAX_LOCKS - 1)
    yield from _uses("NEW IN B", comparison.new)
    yield from _uses("GONE FROM A", comparison.gone)
    notes = list(sentences.notes(comparison))
    if notes:
        yield ""
        yield "NOTES"
        yield from (f"  {note}" for note in notes)


def _lock_lines(lock: LockChanges, comparison: SideComparison) -> Iterator[str]:
    name = sentences.lock_line(lock) if lock.key is not None else lock.name.upper()
    yield clean(name, _WIDTH)
    per_second = [change for change in lock.worthy if not change.is_per_transaction]
    per_transaction = [change for change in lock.worthy if change.is_per_transaction]
    yield from map(_change_line, per_second)
    if per_transaction:
        yield f"  per transaction, {sentences.transaction_name(comparison)}"
        yield from (f"  {_change_line(change)}" for change in per_transaction)


def _change_line(change: FigureChange) -> str:
    return _row(
        f"  {sentences.label(change)}",
        sentences.value(change, change.before),
        sentences.value(change, change.after),
        sentences.times(change.ratio) if change.ratio is not None else "-",
        sentences.interval(change.interval),
    )


def _row(label: str, before: str, after: str, times: str, interval: str) -> str:
    label_width = max(_MIN_LABEL, len(label))
    return (
        f"{label:{label_width}}{before:>{_FIGURE}}{after:>{_FIGURE}}"
        f"{times:>{_TIMES}}{interval:>{_INTERVAL}}"
    ).rstrip()


def _uses(title: str, locks: Sequence[LockChanges]) -> Iterator[str]:
    if locks:
        yield ""
        yield title
        for lock in locks[:_MAX_LOCKS]:
            yield f"  {sentences.use_line(lock)}"
        yield from _more(len(locks) - _MAX_LOCKS)


def _more(count: int) -> Iterator[str]:
    if count > 0:
        yield f"  {count} more; --format json has all"
