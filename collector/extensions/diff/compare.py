"""Compares two sides: matches their locks, and finds the changes that a reader would care about."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from locktop.collector.extensions.diff.intervals import RatePart, interval_of_ratio, rate
from locktop.collector.extensions.diff.model import (
    FigureChange,
    Figures,
    LockChanges,
    LockGroup,
    LockMeasure,
    MatchKey,
    Piece,
    Side,
    SideComparison,
)
from locktop.collector.sanitize import clean

#: A change of less than this factor is not worth a line.
_MIN_FACTOR = 1.1
#: The fewest marks of each side that are transactions.
_MIN_MARKS = 2
_NO_LOCKS = LockGroup(0, ())
_UNUSED = Figures()
_LONGEST_NAME = 200


class _Rule(NamedTuple):
    """How a measure is made of the figures of a piece."""

    amount: Callable[[Figures], float | None]
    #: The divisor. None: the duration of the piece, or its transactions.
    base: Callable[[Figures], float | None] | None
    #: The least difference of the rates per second, or of the means, that is worth a line.
    min_difference: float
    #: The same per transaction.
    min_per_transaction: float = 0.0


_WAIT_S, _HOLD_S, _COUNT = 1e-3, 1e-3, 1.0
_RULES = {
    LockMeasure.WAIT: _Rule(lambda f: f.wait_s, None, _WAIT_S, 1e-6),
    LockMeasure.CONTENDED: _Rule(lambda f: f.contended, None, _COUNT, 0.1),
    LockMeasure.MEAN_WAIT: _Rule(lambda f: f.wait_s, lambda f: f.contended, 1e-6),
    LockMeasure.ACQUISITIONS: _Rule(lambda f: f.acquisitions, None, _COUNT, 0.1),
    LockMeasure.HOLD: _Rule(lambda f: f.hold_s, None, _HOLD_S, 1e-6),
    LockMeasure.MEAN_HOLD: _Rule(lambda f: f.hold_s, lambda f: f.acquisitions, 1e-6),
}
#: A mean says little of a lock without much of the whole.
_WHOLE_OF_MEAN = {
    LockMeasure.MEAN_WAIT: (LockMeasure.WAIT, _WAIT_S),
    LockMeasure.MEAN_HOLD: (LockMeasure.HOLD, _HOLD_S),
}


def compare(before: Side, after: Side) -> SideComparison:
    """Return everything that differs between two sides."""
    transaction = _transaction(before, after)
    changes = [
        _lock_changes(key, before, after, transaction)
        for key in dict.fromkeys([*before.locks, *after.locks])
    ]
    both = [lock for lock in changes if all(lock.counts)]
    new = [lock for lock in changes if not lock.counts[0] and _is_used(after, lock.key)]
    gone = [lock for lock in changes if not lock.counts[1] and _is_used(before, lock.key)]
    return SideComparison(
        before=before,
        after=after,
        transaction=transaction,
        totals=_lock_changes(None, before, after, transaction),
        locks=tuple(sorted(both, key=_order)),
        new=tuple(sorted(new, key=_order)),
        gone=tuple(sorted(gone, key=_order)),
    )


def _order(lock: LockChanges) -> tuple[object, ...]:
    """Sort the largest change of waiting first, then of holding, then of acquisitions."""
    sizes = []
    for measure in (LockMeasure.WAIT, LockMeasure.HOLD, LockMeasure.ACQUISITIONS):
        change = lock.change(measure)
        sizes.append(-abs(change.after - change.before) if change is not None else 0.0)
    return *sizes, lock.name


def _is_used(side: Side, key: MatchKey | None) -> bool:
    return any(figures.is_used for figures in _figures(side, key))


def _transaction(before: Side, after: Side) -> str | None:
    """Return the text of the marks that both sides have most often."""
    if before.marks_lost or after.marks_lost:
        return None
    counts = [_marks(side) for side in (before, after)]
    fewer = {text: min(count, counts[1].get(text, 0)) for text, count in counts[0].items()}
    text = max(sorted(fewer), key=lambda text: fewer[text], default="")
    return text if fewer.get(text, 0) >= _MIN_MARKS else None


def _marks(side: Side) -> dict[str, int]:
    sums: dict[str, int] = {}
    for piece in side.pieces:
        for text, count in piece.marks.items():
            sums[text] = sums.get(text, 0) + count
    return sums


def _lock_changes(
    key: MatchKey | None, before: Side, after: Side, transaction: str | None
) -> LockChanges:
    """Return the changes of the locks of a key; None: of all locks."""
    groups = [
        side.locks.get(key, _NO_LOCKS) if key else _all_locks(side) for side in (before, after)
    ]
    figures = [_figures(side, key) for side in (before, after)]
    # Samples show waits alone, and count them in another way.
    rules = _RULES if before.is_sampled == after.is_sampled else (LockMeasure.WAIT,)
    changes = [
        change
        for measure in rules
        if (change := _per_second(measure, figures, (before, after))) is not None
    ]
    if transaction is not None:
        if key is None:
            changes.insert(0, _transactions(transaction, before, after))
        changes += [
            change
            for measure in rules
            if (change := _per_transaction(measure, figures, (before, after), transaction))
        ]
    whole = {change.measure: change for change in changes if not change.is_per_transaction}
    return LockChanges(
        key=key,
        name=_name(key, groups) if key else "all locks",
        counts=(groups[0].count, groups[1].count),
        changes=tuple(change for change in changes if _has_enough(change, whole)),
    )


def _has_enough(change: FigureChange, whole: Mapping[LockMeasure, FigureChange]) -> bool:
    """Return whether a change is no mean of next to nothing."""
    of_what, least = _WHOLE_OF_MEAN.get(change.measure, (change.measure, 0.0))
    sums = whole.get(of_what)
    return sums is None or max(sums.before, sums.after) >= least


def _name(key: MatchKey, groups: Iterable[LockGroup]) -> str:
    names = {name for group in groups for name in group.names}
    return clean(names.pop() if len(names) == 1 else key.name, _LONGEST_NAME)


def _all_locks(side: Side) -> LockGroup:
    return LockGroup(sum(group.count for group in side.locks.values()), ())


def _figures(side: Side, key: MatchKey | None) -> Sequence[Figures]:
    """Return the figures of each piece."""
    if key is not None:
        return [piece.locks.get(key, _UNUSED) for piece in side.pieces]
    return [_sum(piece.locks.values()) for piece in side.pieces]


def _sum(locks: Iterable[Figures]) -> Figures:
    """Return the figures of all locks. Some kinds have no holds, and idle waits do not count."""
    figures = Figures()
    for of_lock in locks:
        figures.add(
            Figures(
                wait_s=of_lock.wait_s,
                contended=of_lock.contended or 0.0,
                acquisitions=of_lock.acquisitions,
                hold_s=(of_lock.hold_s or 0.0) if of_lock.acquisitions is not None else None,
            )
        )
    return figures


def _per_second(
    measure: LockMeasure, figures: Sequence[Sequence[Figures]], sides: Sequence[Side]
) -> FigureChange | None:
    rule = _RULES[measure]
    parts = []
    for of_side, side in zip(figures, sides, strict=True):
        bases = (
            [piece.duration_s for piece in side.pieces]
            if rule.base is None
            else [rule.base(of_piece) for of_piece in of_side]
        )
        parts.append(_parts([rule.amount(of_piece) for of_piece in of_side], bases))
    return _change(measure, parts, rule.min_difference)


def _per_transaction(
    measure: LockMeasure, figures: Sequence[Sequence[Figures]], sides: Sequence[Side], text: str
) -> FigureChange | None:
    rule = _RULES[measure]
    if rule.base is not None:  # a mean is one in any case
        return None
    parts = [
        _parts(
            [rule.amount(of_piece) for of_piece in of_side],
            [float(piece.marks.get(text, 0)) for piece in side.pieces],
        )
        for of_side, side in zip(figures, sides, strict=True)
    ]
    return _change(measure, parts, rule.min_per_transaction, is_per_transaction=True)


def _transactions(text: str, before: Side, after: Side) -> FigureChange:
    def parts(pieces: Iterable[Piece]) -> Sequence[RatePart]:
        return [RatePart(float(piece.marks.get(text, 0)), piece.duration_s) for piece in pieces]

    change = _change(
        LockMeasure.TRANSACTIONS, [parts(before.pieces), parts(after.pieces)], min_difference=0.0
    )
    assert change is not None  # each piece has a duration
    return change


def _parts(
    amounts: Iterable[float | None], bases: Iterable[float | None]
) -> Sequence[RatePart] | None:
    """Return the pieces; None if a figure of one was not measured."""
    parts = []
    for amount, base in zip(amounts, bases, strict=True):
        if amount is None or base is None:
            return None
        parts.append(RatePart(amount, base))
    return parts


def _change(
    measure: LockMeasure,
    parts: Sequence[Sequence[RatePart] | None],
    min_difference: float,
    is_per_transaction: bool = False,
) -> FigureChange | None:
    before, after = parts
    if before is None or after is None:
        return None
    first, second = rate(before), rate(after)
    if first is None or second is None:
        return None
    return FigureChange(
        measure=measure,
        before=first,
        after=second,
        is_per_transaction=is_per_transaction,
        interval=interval_of_ratio(before, after),
        is_large=abs(second - first) >= min_difference
        and max(first, second) > _MIN_FACTOR * min(first, second),
    )
