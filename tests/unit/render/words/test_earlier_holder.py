"""The holder that an earlier scan named, in a scan that names none."""

from __future__ import annotations

from msgspec.structs import replace
from unit.builders import blocking, records

from locktop.collector.model import Snapshot, ThreadState
from locktop.collector.render.words.earlier_holder import recall
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.tui.views import lock_details
from locktop.tui.views.blocking import now_span
from locktop.tui.views.headline import headline
from locktop.tui.views.styled_line import line_text, unfolded


def later(after_s: float) -> Snapshot:
    """Return a later scan: another thread runs, too, so no holder is likely."""
    before = blocking.writers(3)
    threads = (*before.threads, records.thread(900, "other", ThreadState.RUNNING))
    return replace(before, threads=threads, duration_s=before.duration_s + after_s)


def first_line(index: SnapshotIndex) -> str:
    return line_text(headline(index, 80))


def test_a_holder_of_the_last_seconds_stays_with_its_age() -> None:
    last = recall(SnapshotIndex(blocking.writers(3)), None)
    assert "ago" not in first_line(last)
    index = recall(SnapshotIndex(later(0.4)), last)
    assert "; 400 ms ago likely leader" in first_line(index)
    lines = unfolded(lock_details.lock_details(index, index.snapshot.locks[0]))
    assert "waits 1.00s; 400 ms ago likely leader" in "\n".join(map(line_text, lines))
    again = recall(SnapshotIndex(later(0.9)), index)
    assert "; 900 ms ago likely leader" in first_line(again)


def test_the_blocking_tree_names_the_holder_of_the_last_seconds() -> None:
    last = recall(SnapshotIndex(blocking.writers(3)), None)
    index = recall(SnapshotIndex(later(0.4)), last)
    roots = index.blocking.roots
    assert [now_span(index, root)[0] for root in roots] == [
        "its holder is not known; 400 ms ago likely leader"
    ] * 3


def test_an_old_holder_is_forgotten() -> None:
    last = recall(SnapshotIndex(blocking.writers(3)), None)
    assert "not known" in first_line(recall(SnapshotIndex(later(4.0)), last))


def test_a_holder_of_another_process_is_no_holder() -> None:
    last = recall(SnapshotIndex(blocking.writers(3)), None)
    snapshot = later(0.4)
    process = replace(snapshot.process, pid=snapshot.process.pid + 1)
    index = recall(SnapshotIndex(replace(snapshot, process=process)), last)
    assert "not known" in first_line(index)
