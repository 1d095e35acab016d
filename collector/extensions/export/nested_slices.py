"""Rows of slices that nest, for viewers whose tracks take no others."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from msgspec import Struct

T = TypeVar("T")


class Slice(Struct, Generic[T], frozen=True, gc=False):
    """A span of time with what it stands for. Times are nanoseconds."""

    from_ns: int
    to_ns: int
    content: T


def rows(slices: Iterable[Slice[T]]) -> Iterator[tuple[int, Slice[T]]]:
    """Yield each slice with the number of its row, in order of the begin, the longer one first.

    In a row two slices lie side by side, or one lies within the other. A slice that would cut the
    end of another goes to the next row.
    """
    open_ends: list[list[int]] = []
    for entry in sorted(slices, key=lambda entry: (entry.from_ns, -entry.to_ns)):
        number = 0
        while True:
            if number == len(open_ends):
                open_ends.append([])
            ends = open_ends[number]
            while ends and ends[-1] <= entry.from_ns:
                ends.pop()
            if not ends or ends[-1] >= entry.to_ns:
                break
            number += 1
        ends.append(entry.to_ns)
        yield number, entry


class Edge(Struct, Generic[T], frozen=True, gc=False):
    """The begin or the end of a slice."""

    time_ns: int
    is_end: bool
    content: T


def edges(slices: Iterable[Slice[T]]) -> Iterator[Edge[T]]:
    """Yield the begins and ends of one row of slices in an order in which they nest."""
    open_slices: list[Slice[T]] = []
    for entry in sorted(slices, key=lambda entry: (entry.from_ns, -entry.to_ns)):
        while open_slices and open_slices[-1].to_ns <= entry.from_ns:
            last = open_slices.pop()
            yield Edge(last.to_ns, True, last.content)
        yield Edge(entry.from_ns, False, entry.content)
        open_slices.append(entry)
    while open_slices:
        last = open_slices.pop()
        yield Edge(last.to_ns, True, last.content)


def open_counts(
    spans: Iterable[tuple[int, int]], from_ns: int, to_ns: int
) -> Iterator[tuple[int, int]]:
    """Yield how many spans are open, and since when, at each change within a window.

    Args:
        spans: begins and ends, in any order.
        from_ns: the begin of the window; changes before count there.
        to_ns: its end, exclusive.
    """
    changes: list[tuple[int, int]] = []
    for begin_ns, end_ns in spans:
        changes += ((max(begin_ns, from_ns), 1), (max(end_ns, from_ns), -1))
    heapq.heapify(changes)
    count, before = 0, -1
    while changes and changes[0][0] < to_ns:
        time_ns = changes[0][0]
        while changes and changes[0][0] == time_ns:
            count += heapq.heappop(changes)[1]
        if count != before:
            yield time_ns, count
        before = count
