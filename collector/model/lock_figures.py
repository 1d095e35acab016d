"""The figures that locktop counts of a lock. Each is declared here, and nowhere else.

The name of the field tells the unit: seconds with ``_s``, else a number. The type tells whether a
source may lack the figure (``None``). The rest is the text of the documents, and a column of the
list if the figure has one. Classes, intervals, documents, their schema, columns and help are
derived. A figure adds up over the locks of a class, and grows from scan to scan. See
docs/internals/collector.md for how to add one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta, Struct

from locktop.collector.model.figures import grown, total

#: A number of events.
Count = Annotated[int, Meta(ge=0)]
#: Seconds, or a share of an interval, or a rate.
Number = float

_COLUMN = "column"


class FigureColumn(NamedTuple):
    """The column of a figure in the list of locks."""

    title: str
    width: int  # cells
    help: str  # for the help of the screen
    from_width: int  # the narrowest terminal with the column, in cells


def figure(meaning: str, column: FigureColumn | None = None) -> Meta:
    """Return the traits of a figure.

    Args:
        meaning: what the documents say of the figure.
        column: its column in the list of locks; None: it has none, or one of its own making.
    """
    return Meta(description=meaning, extra={_COLUMN: column})


class LockFigures(Struct, kw_only=True, frozen=True, gc=False):
    """The figures of a lock, of a class of locks, or of an interval of one of both.

    A figure that a source does not measure is None. Samples show waits alone.
    """

    acquisitions: Annotated[Count | None, figure("How often threads took the lock.")] = None
    contended: Annotated[Count, figure("How often threads took the lock after a wait.")] = 0
    trylock_failed: Annotated[
        Count | None,
        figure(
            "How often a trylock failed.",
            FigureColumn("TRYFAIL", 7, "trylocks that failed, since the start", 236),
        ),
    ] = None
    signals: Annotated[
        Count | None, figure("Signals, broadcasts or posts by threads of this process.")
    ] = None
    #: a lower bound
    unheard: Annotated[
        Count | None, figure("Of the signals of a condition, those without a waiter.")
    ] = None
    wait_s: Annotated[Number, figure("Seconds waited by all threads; present waits included.")]
    idle_s: Annotated[Number, figure("Of wait_s, the seconds of idle waits.")] = 0.0
    hold_s: Annotated[
        Number | None, figure("Seconds held: exact if all holds were timed, else scaled up.")
    ] = None
    hold_timed: Annotated[Count, figure("How many holds were timed.")] = 0


#: The names of the figures, in their order.
LOCK_FIGURES: tuple[str, ...] = LockFigures.__struct_fields__


@cache  # each drawing asks, and the inspection of a type is slow
def figure_columns() -> tuple[tuple[str, FigureColumn, bool], ...]:
    """Return the name of each figure with a column, the column, and whether it is in seconds."""
    return tuple(_figure_columns())


def _figure_columns() -> Iterator[tuple[str, FigureColumn, bool]]:
    for field in msgspec.inspect.type_info(LockFigures).fields:  # type: ignore[attr-defined]
        column = getattr(field.type, "extra", None)
        if column is not None and column[_COLUMN] is not None:
            yield field.name, column[_COLUMN], field.name.endswith("_s")


def sums(parts: Sequence[LockFigures]) -> dict[str, Any]:
    """Return the sum of each figure, by name: None if a part does not have it."""
    return {name: total(getattr(part, name) for part in parts) for name in LOCK_FIGURES}


def growth(now: LockFigures, before: LockFigures | None) -> dict[str, Any]:
    """Return what was added to each figure after ``before``, by name.

    An address may have another lock by now, whose figures are smaller. Then nothing was added.

    Args:
        now: the figures of a scan.
        before: those of an earlier scan; None: the lock was not there.
    """
    return {
        name: grown(0 if before is None else getattr(before, name), getattr(now, name))
        for name in LOCK_FIGURES
    }
