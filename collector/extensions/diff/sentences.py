"""The words of a comparison, for the command and the screen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from locktop.collector.extensions.diff.intervals import MIN_PIECES, Interval
from locktop.collector.extensions.diff.model import (
    FigureChange,
    LockChanges,
    LockMeasure,
    Side,
    SideComparison,
)
from locktop.collector.render.words import units
from locktop.collector.render.words.lock_kind import kind_word
from locktop.collector.sanitize import clean

NOTHING = "Nothing changed."
#: Locks with a sentence of their own.
MAX_SENTENCES = 3
_LONGEST_MARK = 40
_VERBS = {
    LockMeasure.WAIT: "waits",
    LockMeasure.CONTENDED: "is contended",
    LockMeasure.MEAN_WAIT: "a wait takes",
    LockMeasure.ACQUISITIONS: "is taken",
    LockMeasure.HOLD: "is held",
    LockMeasure.MEAN_HOLD: "a hold takes",
    LockMeasure.TRANSACTIONS: "transactions are",
}
_LABELS = {
    LockMeasure.WAIT: "waits",
    LockMeasure.CONTENDED: "contended",
    LockMeasure.MEAN_WAIT: "mean wait",
    LockMeasure.ACQUISITIONS: "taken",
    LockMeasure.HOLD: "held",
    LockMeasure.MEAN_HOLD: "mean hold",
    LockMeasure.TRANSACTIONS: "transactions",
}
_COUNTS = (LockMeasure.CONTENDED, LockMeasure.ACQUISITIONS, LockMeasure.TRANSACTIONS)


def headlines(comparison: SideComparison) -> Iterator[str]:
    """Yield sentences on what changed most: of all locks, of the first locks, new ones and gone."""
    if not comparison.has_changes:
        yield NOTHING
        return
    worthy = [lock for lock in comparison.locks if lock.worthy]
    # The sum says nothing more than the one lock that changed.
    totals = [comparison.totals] if comparison.totals.worthy and len(worthy) != 1 else []
    for lock in (*totals, *worthy[:MAX_SENTENCES]):
        yield sentence(lock.name, _main_change(lock))
    for word, locks in (("new", comparison.new), ("gone", comparison.gone)):
        if locks:
            names = ", ".join(lock.name for lock in locks[:MAX_SENTENCES])
            more = len(locks) - MAX_SENTENCES
            yield f"{word}: {names}{f', and {more} more' if more > 0 else ''}"


def _main_change(lock: LockChanges) -> FigureChange:
    """Return the first change: that of the waiting, if there is one."""
    first = lock.worthy[0]
    if first.measure is not LockMeasure.TRANSACTIONS:
        return first
    return next((change for change in lock.worthy if change.measure is LockMeasure.WAIT), first)


def sentence(name: str, change: FigureChange) -> str:
    """Return ``mu: waits 3.1 times as long: 0.42 s/s, was 0.13 s/s (2.2 to 4.4 times)``.

    Args:
        name: of the lock, clean.
        change: one of its changes.
    """
    after, before = value(change, change.after), value(change, change.before)
    verb = _VERBS[change.measure]
    if change.is_per_transaction:
        verb = f"per transaction, {verb}"
    if change.ratio is None or change.after == 0:
        return f"{name}: {verb} {after}, was {before}"
    how = "often" if change.measure in _COUNTS else "long"
    between = f" ({interval(change.interval)} times)" if change.interval is not None else ""
    return f"{name}: {verb} {times(change.ratio)} times as {how}: {after}, was {before}{between}"


def label(change: FigureChange) -> str:
    """Return the name of a figure in a table."""
    return _LABELS[change.measure]


def lock_line(lock: LockChanges) -> str:
    """Return the name of a lock with its kind, and how many there are."""
    if lock.key is None:
        return lock.name
    word = kind_word(lock.key.kind, lock.name)
    details = [] if lock.name.startswith(word) else [word]
    before, after = lock.counts
    if before != after and before and after:
        details.append(f"A {before} and B {after} locks")
    elif max(before, after) > 1:
        details.append(f"{max(before, after)} locks")
    return f"{lock.name} ({', '.join(details)})" if details else lock.name


def times(ratio: float) -> str:
    """Return a ratio with two or three digits: ``0.32``, ``1.12``, ``3.1``, ``1,240``."""
    if ratio < 0.01:
        return "<0.01"
    if ratio < 1.995:
        return f"{ratio:.2f}"
    if ratio < 9.95:
        return f"{ratio:.1f}"
    return f"{ratio:,.0f}" if ratio < 1e6 else ">1M"


def interval(between: Interval | None) -> str:
    """Return an interval of a ratio: ``2.2 to 4.4``; "" for none."""
    return f"{times(between.low)} to {times(between.high)}" if between is not None else ""


def value(change: FigureChange, figure: float) -> str:
    """Return a figure with its unit: ``0.42 s/s``, ``13.0 ms/s``, ``1.20k/s``, ``4.20 ms``."""
    if change.measure in _COUNTS:
        count = units.count(figure)
        return count if change.is_per_transaction else f"{count}/s"
    if change.is_mean or change.is_per_transaction:
        return units.duration(figure)
    if figure >= 0.0995:
        return f"{figure:.2f} s/s" if figure < 9.995 else f"{figure:.1f} s/s"
    return f"{units.duration(figure)}/s" if figure > 0 else "0"


def use_line(lock: LockChanges) -> str:
    """Return how much a new lock, or one that is gone, was used."""
    figures = []
    for measure in (LockMeasure.WAIT, LockMeasure.ACQUISITIONS, LockMeasure.HOLD):
        change = lock.change(measure)
        if change is not None and (used := change.after or change.before):
            figures.append(f"{_LABELS[measure]} {value(change, used)}")
    return f"{lock_line(lock)}: {', '.join(figures)}" if figures else lock_line(lock)


def side_line(letter: str, side: Side) -> str:
    """Return what one side is: ``A  before.rec: store (pid 4711), 10.0 s in 20 pieces``."""
    pieces = f" in {len(side.pieces)} pieces" if len(side.pieces) > 1 else ""
    how = ", sampled" if side.is_sampled else ""
    return (
        f"{letter}  {clean(side.title)}: {clean(side.comm)} (pid {side.pid}),"
        f" {units.duration(side.duration_s)}{pieces}{how}"
    )


def transaction_name(comparison: SideComparison) -> str:
    """Return the text of the marks that are transactions."""
    return clean(comparison.transaction or "", _LONGEST_MARK)


def notes(comparison: SideComparison) -> Iterator[str]:
    """Yield what limits the comparison."""
    sides = comparison.before, comparison.after
    by_chance = sum(change.is_large and change.may_be_chance for change in _changes(comparison))
    if by_chance:
        differences = units.counted(by_chance, "difference")
        yield f"{differences} left out: the interval has 1, which is no change"
    if any(change.is_worth_a_line and change.interval is None for change in _changes(comparison)):
        yield (
            f"a line without an interval has fewer than {MIN_PIECES} independent pieces on a side,"
            " or a rate of 0"
        )
    if comparison.before.is_sampled != comparison.after.is_sampled:
        yield "one side was sampled without the library: waits alone can be compared"
    for letter, side in zip("AB", sides, strict=True):
        if side.marks_lost:
            yield f"{letter}: marks were lost, so there are no figures per transaction"
        for note in side.notes:
            yield f"{letter}: {clean(note)}"


def _changes(comparison: SideComparison) -> Iterable[FigureChange]:
    for lock in (comparison.totals, *comparison.locks):
        yield from lock.changes
