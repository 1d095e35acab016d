"""Rows of slices that nest, and counts of what is open."""

from __future__ import annotations

import random

from support.seeds import seeds

from locktop.collector.extensions.export.nested_slices import Slice, edges, open_counts, rows


def test_a_slice_that_cuts_another_goes_to_the_next_row() -> None:
    slices = [Slice(0, 10, "a"), Slice(2, 5, "b"), Slice(4, 8, "c"), Slice(10, 12, "d")]
    assert [(row, entry.content) for row, entry in rows(slices)] == [
        (0, "a"), (0, "b"), (1, "c"), (0, "d"),
    ]  # fmt: skip


def test_begins_and_ends_nest() -> None:
    slices = [Slice(0, 10, "a"), Slice(0, 4, "b"), Slice(4, 10, "c"), Slice(10, 10, "d")]
    assert [(edge.time_ns, edge.is_end, edge.content) for edge in edges(slices)] == [
        (0, False, "a"), (0, False, "b"), (4, True, "b"), (4, False, "c"), (10, True, "c"),
        (10, True, "a"), (10, False, "d"), (10, True, "d"),
    ]  # fmt: skip


def test_any_slices_nest_in_their_rows() -> None:
    for seed in seeds(50):
        chosen = random.Random(seed)
        begins = [chosen.randint(0, 60) for _ in range(40)]
        slices = [Slice(begin, begin + chosen.randint(0, 20), begin) for begin in begins]
        by_row: dict[int, list[Slice[int]]] = {}
        for row, entry in rows(slices):
            by_row.setdefault(row, []).append(entry)
        assert sum(map(len, by_row.values())) == len(slices)
        for entries in by_row.values():
            times, depth = [], 0
            for edge in edges(entries):
                times.append(edge.time_ns)
                depth += -1 if edge.is_end else 1
                assert depth >= 0
            assert depth == 0
            assert times == sorted(times)


def test_counts_are_those_of_each_moment() -> None:
    for seed in seeds(20):
        chosen = random.Random(seed)
        begins = [chosen.randint(0, 50) for _ in range(12)]
        spans = [(begin, begin + chosen.randint(1, 20)) for begin in begins]
        changes = dict(open_counts(spans, 10, 40))
        count = None
        for time in range(10, 40):
            count = changes.get(time, count)
            # Before the first change nothing is open.
            assert (count or 0) == sum(begin <= time < end for begin, end in spans)
