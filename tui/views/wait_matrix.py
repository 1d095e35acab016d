"""The latest recorded waits for one lock, by waiter and holder."""

from __future__ import annotations

from collections.abc import Iterator

from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.tui.views.cells import counted, duration, fit, fit_right
from locktop.tui.views.detail_parts import blank, heading
from locktop.tui.views.styled_line import Line, Span, make_line

_MAX_WAITERS, _MAX_HOLDERS = 8, 5
_NAME_WIDTH, _CELL_WIDTH = 16, 11


def wait_matrix(index: SnapshotIndex, lock_id: int) -> Iterator[Line]:
    """The lines of the matrix; none with fewer than two pairs of a waiter and a holder."""
    waited: dict[tuple[int, int], float] = {}
    count = 0
    for event in index.snapshot.events:
        if event.lock == lock_id and event.holder and event.wait_s > 0:
            pair = event.tid, event.holder
            waited[pair] = waited.get(pair, 0.0) + event.wait_s
            count += 1
    if len(waited) < 2:
        return
    waiters = _most({pair[0] for pair in waited}, waited, 0)
    holders = _most({pair[1] for pair in waited}, waited, 1)
    yield blank()
    yield heading("Who waited for whom", f", in the latest {counted(count, 'recorded wait')}")
    names = " ".join(
        fit_right(fit(index.thread_name(tid), _CELL_WIDTH).strip(), _CELL_WIDTH)
        for tid in holders[:_MAX_HOLDERS]
    )
    yield make_line(("  " + fit("waiter, holder:", _NAME_WIDTH), "label"), (f" {names}", "holder"))
    for waiter in waiters[:_MAX_WAITERS]:
        spans: list[Span | str] = [("  " + fit(index.thread_name(waiter), _NAME_WIDTH), "strong")]
        cells = (waited.get((waiter, holder)) for holder in holders[:_MAX_HOLDERS])
        texts = (duration(seconds) if seconds is not None else "-" for seconds in cells)
        spans.append("".join(f" {fit_right(text, _CELL_WIDTH)}" for text in texts))
        yield make_line(*spans)
    left = max(0, len(waiters) - _MAX_WAITERS), max(0, len(holders) - _MAX_HOLDERS)
    if any(left):
        more = [
            f"{n} more {what}" for n, what in zip(left, ("waiters", "holders"), strict=True) if n
        ]
        yield make_line((f"  and {' and '.join(more)}", "dim"))


def _most(tids: set[int], waited: dict[tuple[int, int], float], side: int) -> list[int]:
    """The threads on one side of the pairs, the most waiting first."""
    sums = {tid: sum(s for pair, s in waited.items() if pair[side] == tid) for tid in tids}
    return sorted(tids, key=lambda tid: (-sums[tid], tid))
