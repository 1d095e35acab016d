"""Waits in cells of time, added up by plain Python: a reference for native/reader/cells.c."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from locktop.collector.extensions.report.incident import CellSeries, Heat
from locktop.collector.model import WaitRecord, Window

#: The lock, thread and stack of a series, and a cell.
CellKey = tuple[int, int, int, int]


def sums(records: Iterable[WaitRecord], window: Window) -> Counter[CellKey]:
    """Return the nanoseconds by lock, thread, stack and cell."""
    cells: Counter[CellKey] = Counter()
    for record in records:
        for cell, ns in window.parts(record.began_ns, record.got_ns):
            cells[record.lock, record.tid, record.stack, cell] += ns
    return cells


def unpacked(
    series: Sequence[CellSeries], steps: Iterator[int], values: Iterator[int], cell_us: int
) -> Counter[CellKey]:
    """Return the microseconds of the cells of some series, as the page reads them."""
    result: Counter[CellKey] = Counter()
    for entry in series:
        cell = 0
        for _ in range(entry.count):
            step, value = next(steps), next(values)
            cell += step >> 1
            count, us = (value, cell_us) if step & 1 else (1, value)
            for number in range(cell, cell + count):
                result[entry.lock, entry.tid, entry.stack, number] += us
    return result


def unpacked_heat(heat: Heat) -> Counter[CellKey]:
    """Return the microseconds of the cells of a heat map."""
    total = sum(entry.count for entry in heat.series)
    assert len(heat.cells) == (heat.step_size + heat.value_size) * total
    planes = [heat.cells[begin : begin + total] for begin in range(0, len(heat.cells), total)]
    steps, values = numbers(planes[: heat.step_size]), numbers(planes[heat.step_size :])
    return unpacked(heat.series, steps, values, heat.cell_ns // 1000)


def numbers(planes: Sequence[bytes]) -> Iterator[int]:
    """Yield numbers from their lowest bytes, their next bytes, and so on."""
    for parts in zip(*planes, strict=True):
        yield int.from_bytes(bytes(parts), "little")
