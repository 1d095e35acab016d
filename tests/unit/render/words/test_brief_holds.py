"""The words on a sampled lock whose unknown holder changes all the time."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from unit.builders import records

from locktop.collector.model import Kind, Lock, Snapshot, ThreadState
from locktop.collector.render.text import report
from locktop.collector.render.words import brief_holds, present_waits, verdict
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.tui.views.headline import headline
from locktop.tui.views.holder_lines import holder_lines
from locktop.tui.views.styled_line import line_text

WORDS = "no thread keeps it long"


def hot(lock: dict[str, object] | None = None, wait: dict[str, object] | None = None) -> Snapshot:
    """Three threads wait for a Rust Mutex, as others did 357 times before, 0.13 s on average."""
    state: dict[str, object] = {"idle": False, **(wait or {})}
    waits = [replace(records.wait(1, Kind.FUTEX, 0.04 * n), **state) for n in (1, 2, 3)]
    threads = [
        records.thread(10 + n, f"pay-{n}", ThreadState.WAITING, waiting_for=wait_)
        for n, wait_ in enumerate(waits)
    ]
    running = [records.thread(20 + n, f"cfg-{n}", ThreadState.RUNNING) for n in (1, 2)]
    mutex = replace(
        records.lock(1, "journal", Kind.FUTEX, wait_s=47.5, waiters=(12, 11, 10)),
        **{
            "type": "Rust Mutex",
            "idle": False,
            "contended": 357,
            "wait_max_s": 0.12,
            **(lock or {}),
        },
    )
    made = records.sampled(records.snapshot((*running, *threads), (mutex,)))
    return replace(made, unobserved_waiters=(10, 11, 12))


def first_lock(snapshot: Snapshot) -> tuple[SnapshotIndex, Lock]:
    return SnapshotIndex(snapshot), snapshot.locks[0]


def test_a_lock_that_changes_hands_has_no_holder_to_name() -> None:
    index, lock = first_lock(hot())
    assert brief_holds.phrase(index, lock) == WORDS
    assert line_text(headline(index, 80)).endswith(f"; {WORDS}")
    assert line_text(headline(index, 200)).endswith(f"; {WORDS}")
    assert f"not known: {WORDS}" in "\n".join(map(line_text, holder_lines(index, lock)))
    said = list(present_waits.sentences(index.snapshot))
    assert said[0].endswith(f"; its holder is not known: {WORDS}")


@pytest.mark.parametrize(
    ("lock", "wait"),
    [
        ({"contended": 6}, {}),  # few waits have ended
        ({"contended": 14}, {}),  # three releases may have ended these, each of a thread that slept
        ({"wait_max_s": 0.4}, {}),  # a thread may have kept the lock all the while
        ({"wait_s": 7.0}, {}),  # the present waits are longer than those before
        ({"wait_s": 700.0}, {"duration_s": 1.0}),
        ({}, {"is_lower_bound": True}),
        ({}, {"timed": True}),
        ({"readers": 2}, {}),
        ({}, {"holders": (21,)}),
        ({"idle": True}, {}),
        ({"kind": Kind.COND}, {}),  # nobody keeps a condition
    ],
)
def test_other_locks_may_have_a_holder_that_keeps_them(
    lock: dict[str, object], wait: dict[str, object]
) -> None:
    assert not brief_holds.phrase(*first_lock(hot(lock, wait)))


def test_the_library_knows_the_holder() -> None:
    snapshot = replace(hot(), source="preload")
    assert not brief_holds.phrase(*first_lock(snapshot))


def test_the_verdict_counts_each_wait_once() -> None:
    line = verdict.line(hot())
    assert "3 waiting for a lock (3 for one whose holder is not known)" in line
    assert "something unknown" not in line
    assert "something unknown" not in report.render(hot())
    other = replace(hot(), unobserved_waiters=(10, 11, 12, 21))
    assert ", 1 waiting for something unknown" in verdict.line(other)
