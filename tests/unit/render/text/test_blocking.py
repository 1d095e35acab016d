"""The section of the text report about the roots of the present waits, and its key in JSON."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from unit.builders import blocking, records, scenarios

from locktop.collector.model import (
    Deadlock,
    DeadlockEdge,
    Kind,
    Snapshot,
    TakenUnits,
    Thread,
    ThreadState,
    UnitTaker,
)
from locktop.collector.render.documents import snapshot_codec
from locktop.collector.render.text import report


def section(snapshot: Snapshot, width: int = 200) -> list[str]:
    lines = report.render(snapshot, width=width).splitlines()
    begin = next((i for i, line in enumerate(lines) if line.startswith("BLOCKING NOW")), None)
    if begin is None:
        return []
    return lines[begin + 1 : lines.index("", begin)]


def test_the_root_comes_with_what_it_does_and_what_is_behind() -> None:
    assert section(blocking.pool_behind_index()) == [
        "  thread 100 (loader) holds mutex g_index_lock for 13.0 s, taken in journal_write at"
        " /src/store/journal.c:210",
        "    now in read(7 -> /var/lib/x/index) for 3.00 s",
        "    300 threads wait behind this, 300 s each second; the longest waits 12.0 s",
        "      thread 200 (user-200) for 12.0 s: mutex g_index_lock;"
        " 292 threads wait behind this, 292 s each second",
        "        292 threads (worker-#) for up to 11.0 s: sem g_pool,"
        " also held by thread 201 (user-201), thread 202 (user-202) and 5 more",
        "      7 threads (user-#) for up to 12.0 s: mutex g_index_lock",
    ]


def test_plain_waits_and_reported_deadlocks_have_no_section() -> None:
    assert section(scenarios.normal()) == []
    assert section(scenarios.deadlock()) == []
    assert section(scenarios.empty()) == []


def test_lines_are_no_wider_than_wanted() -> None:
    assert max(map(len, section(blocking.pool_behind_index(), 80))) <= 80


def test_json_has_the_roots() -> None:
    made = blocking.pool_behind_index()
    (root,) = snapshot_codec.document(made)["blocking"]
    assert root == {
        "kind": "holder", "tids": [blocking.HOLDER], "locks": [blocking.INDEX], "threads": 300,
        "waited_s": 8 * 12.0 + 292 * 11.0, "longest": blocking.FIRST_USER,
    }  # fmt: skip
    assert snapshot_codec.document(replace(made, threads=()))["blocking"] == []


def waiter(tid: int, lock: int, *holders: int, kind: Kind = Kind.MUTEX, s: float = 2.0) -> Thread:
    wait = replace(records.wait(lock, kind, s, *holders), idle=False)
    return records.thread(tid, f"t{tid}", ThreadState.WAITING, waiting_for=wait)


def queue(root: int, *tids: int, cycle: bool = False) -> tuple[Thread, ...]:
    """Threads that wait in a row: each for the one before, the first for the root."""
    chain = [root, *tids]
    found = [waiter(tid, 100 + holder, holder) for holder, tid in zip(chain, tids, strict=False)]
    last = waiter(root, 100 + tids[0], tids[0], s=3.0)
    return (last if cycle else records.thread(root, f"t{root}", ThreadState.RUNNING), *found)


def locks(*ids: int) -> Snapshot:
    return records.snapshot((), tuple(records.lock(id_, f"g_{id_}") for id_ in ids))


#: A semaphore whose units are all taken by a thread that is not known to wait.
SEMAPHORE = records.lock(
    7, "g_slots", Kind.SEM, waiters=(2,), first_value=1, used_as_lock=True,
    taken_units=TakenUnits(1, (UnitTaker(9, 1),)),
)  # fmt: skip
BEHIND_SEMAPHORE = (
    waiter(2, 7, kind=Kind.SEM),
    *(waiter(tid, 102, 2) for tid in (3, 4)),
)


@pytest.mark.parametrize(
    ("snapshot", "lines"),
    [
        (
            replace(locks(101, 102), threads=queue(1, 2, 3)),
            ["  thread 1 (t1) holds mutex g_101",
             "    2 threads wait behind this, 2.00 s each second; the longest waits 2.00 s",
             ("      thread 2 (t2) for 2.00 s: mutex g_101; 1 thread"
              " waits behind this, 1.00 s each second"),
             "        thread 3 (t3) for 2.00 s: mutex g_102"],
        ),
        (
            replace(locks(101, 102), threads=queue(1, 2, 3, cycle=True)),
            ["  thread 1 (t1), thread 2 (t2) wait for each other",
             "    3 threads wait behind this, 3.00 s each second; the longest waits 3.00 s",
             ("      thread 2 (t2) for 2.00 s: mutex g_101; 1 thread"
              " waits behind this, 1.00 s each second"),
             "        thread 3 (t3) for 2.00 s: mutex g_102",
             "      thread 1 (t1) for 3.00 s: mutex g_102"],
        ),
        (
            replace(locks(102), threads=BEHIND_SEMAPHORE, locks=(*locks(102).locks, SEMAPHORE)),
            ["  sem g_slots: the only unit taken, not given back: 9",
             "    3 threads wait behind this, 3.00 s each second; the longest waits 2.00 s",
             ("      thread 2 (t2) for 2.00 s: sem g_slots; 2 threads"
              " wait behind this, 2.00 s each second"),
             "        thread 3 (t3) for 2.00 s: mutex g_102",
             "        thread 4 (t4) for 2.00 s: mutex g_102"],
        ),
    ],
)  # fmt: skip
def test_each_kind_of_root_has_its_words(snapshot: Snapshot, lines: list[str]) -> None:
    assert section(snapshot) == lines


def test_a_semaphore_whose_takers_are_not_known_is_a_root() -> None:
    slots = replace(SEMAPHORE, taken_units=None)
    found = section(replace(locks(102), threads=BEHIND_SEMAPHORE, locks=(slots,)))
    assert found[0] == "  sem g_slots, whose holder is not known"


@pytest.mark.parametrize(("count", "more"), [(12, []), (13, ["      and 1 more"])])
def test_twelve_rows_of_a_root_are_listed(count: int, more: list[str]) -> None:
    found = section(replace(locks(), threads=queue(1, *range(2, 2 + count))))
    assert found[2 + 12 :] == more
    assert found[13].startswith(f"{' ' * 16}thread 13 (t13)"), "no deeper indentation"


@pytest.mark.parametrize(("count", "more"), [(5, []), (6, ["  and 1 more"])])
def test_five_roots_are_listed(count: int, more: list[str]) -> None:
    queues = [queue(10 * n, 10 * n + 1, 10 * n + 2) for n in range(1, 1 + count)]
    found = section(replace(locks(), threads=tuple(thread for one in queues for thread in one)))
    assert found[4 * 5 :] == more


def test_a_root_in_a_deadlock_is_left_to_the_deadlock() -> None:
    edges = (DeadlockEdge(1, 102, 2, 0, 0), DeadlockEdge(2, 101, 1, 0, 0))
    snapshot = replace(locks(101, 102), threads=queue(1, 2, 3, cycle=True))
    assert section(replace(snapshot, deadlocks=(Deadlock(True, 2.0, edges),))) == []
