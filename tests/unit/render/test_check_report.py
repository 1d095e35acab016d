"""The first line of ``locktop check --potential`` says what it cannot know."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace
from support.pages import page
from unit.builders import full_report, hangs, records, scenarios

from locktop.collector.model import Frame, Hang, Kind, Snapshot, ThreadState
from locktop.collector.render import check_report
from locktop.collector.render.words import verdict
from locktop.tui.commands import check

ORDERS = "lock orders"


def first_line(snapshot: Snapshot, potential: bool = True) -> str:
    return check_report.lines(snapshot, potential)[0]


def test_nothing_is_added_if_all_orders_are_known() -> None:
    assert ORDERS not in first_line(scenarios.normal())
    assert check.exit_status(scenarios.normal(), potential=True) == 0


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("lock_orders_left_out", "some lock orders found no room"),
        ("lock_order_search_cut", "the search ended at its limit"),
    ],
)
def test_what_may_be_missing_is_said(key: str, text: str) -> None:
    snapshot = replace(scenarios.normal(), **{key: True})
    assert text in first_line(snapshot)
    assert check_report.document(snapshot, potential=True)[key] is True
    assert check.exit_status(snapshot, potential=True) == check.DOUBTFUL
    assert check.exit_status(snapshot) == 0
    assert text not in first_line(snapshot, potential=False)
    assert key not in check_report.document(snapshot)


def test_a_process_without_recorded_orders_has_no_clean_answer() -> None:
    sampled = replace(scenarios.normal(), source="proc", level="sampled")
    assert "lock orders are not known without the library" in first_line(sampled)
    counting = replace(scenarios.normal(), level="counting")
    assert "lock orders are not recorded at level counting" in first_line(counting)
    assert check.exit_status(counting, potential=True) == check.DOUBTFUL


def sampled_wait(duration_s: float, is_lower_bound: bool = False) -> Snapshot:
    """A thread waits for a lock whose holder is not known."""
    calm = scenarios.normal()
    thread = next(one for one in calm.threads if one.waiting_for is not None)
    assert thread.waiting_for is not None
    frame = Frame(0x1000, "takes", "/srv/app.py", 23, "python", 0)
    wait = replace(
        thread.waiting_for, kind=Kind.SEM, duration_s=duration_s, holders=(), idle=False,
        stack=77, is_lower_bound=is_lower_bound,
    )  # fmt: skip
    threads = tuple(
        replace(one, waiting_for=wait if one is thread else None) for one in calm.threads
    )
    return replace(calm, threads=threads, stacks={**calm.stacks, 77: (frame,)})


def test_a_long_wait_of_an_unknown_holder_has_its_stack() -> None:
    long = sampled_wait(12.5)
    lines = check_report.lines(long)
    assert lines[0].startswith("cannot tell whether there is a deadlock")
    assert lines[2].endswith("for 12.5 s")
    assert lines[3] == "    0 takes at /srv/app.py:23"
    document = check_report.document(long)
    (thread,) = document["threads"]
    assert document["stacks"]["77"][0]["function"] == "takes"
    assert [lock["id"] for lock in document["locks"]] == [thread["waiting_for"]["lock"]]
    assert len(check_report.lines(sampled_wait(9.9))) == 1


def test_only_a_wait_from_before_the_first_scan_may_be_longer_than_known() -> None:
    assert verdict.may_be_long(sampled_wait(0.3, is_lower_bound=True))
    assert not verdict.may_be_long(sampled_wait(0.3))
    assert not verdict.may_be_long(sampled_wait(10.0, is_lower_bound=True))
    assert not verdict.may_be_long(scenarios.normal())


def many_waits(count: int, frames: int) -> Snapshot:
    """Threads wait long for locks without a known holder; one of the locks has no name."""
    stack = tuple(records.frame("descend", "tree.c", 1 + n) for n in range(frames))
    threads = tuple(
        records.thread(
            10 + n,
            f"w{n}",
            ThreadState.WAITING,
            waiting_for=replace(
                records.wait(n + 1, Kind.MUTEX, 10.0 + n, stack=9), is_lower_bound=n == 0
            ),
        )
        for n in range(count)
    )
    made = records.snapshot(threads, (records.lock(1, ""), records.lock(2, "g_second")))
    return replace(
        made, stacks={9: (replace(stack[0], inlined=True), *stack[1:])} if frames else {}
    )


SLOTS = [lock for lock in full_report.everything().locks if lock.taken_units is not None]
STUCK = scenarios.orders(scenarios.deadlock())
BOTH = replace(STUCK, locks=(*STUCK.locks, *SLOTS), stacks={})
HUNG = hangs.hung()
BRIEF = Hang(certain=False, since_s=9.9, tids=(10, 11), doubt="who knows")


@pytest.mark.parametrize(
    ("name", "snapshot", "potential"),
    [
        ("check-deadlock", replace(scenarios.deadlock(), stacks={}), False),
        ("check-units-and-orders", BOTH, True),
        ("check-orders", scenarios.orders(), True),
        ("check-waits", many_waits(2, 31), False),
        ("check-hang", replace(HUNG, stacks={}), False),
    ],
)
def test_the_pages_of_a_check(name: str, snapshot: Snapshot, potential: bool) -> None:
    text = check_report.render_text(snapshot, potential, 100).decode()
    assert text == page(name)
    assert (
        check_report.render_line(snapshot, potential, 100).decode() == f"{text.splitlines()[0]}\n"
    )


@pytest.mark.parametrize(("count", "last"), [(20, "  w0 (10)"), (21, "  and 1 thread more")])
def test_a_check_lists_twenty_waits(count: int, last: str) -> None:
    assert check_report.lines(many_waits(count, 0))[-1].startswith(last)


@pytest.mark.parametrize(
    ("snapshot", "potential", "tids", "locks", "stacks"),
    [
        (scenarios.normal(), False, [], [], []),
        (scenarios.deadlock(), False, [4730, 4731, 4732], [10, 11, 12], ["4"]),
        (scenarios.orders(), False, [], [], []),
        (scenarios.orders(), True, [], [1, 2, 3], ["1", "2", "4"]),
        (many_waits(2, 3), False, [10, 11], [1, 2], ["9"]),
        (HUNG, False, list(range(10, 29)), [1, 3, 4], ["1", "2", "3", "4"]),
        (replace(many_waits(0, 0), hang=BRIEF), False, [], [], []),
    ],
)
def test_the_document_has_what_the_finding_refers_to(
    snapshot: Snapshot, potential: bool, tids: list[int], locks: list[int], stacks: list[str]
) -> None:
    document = json.loads(check_report.render_json(snapshot, potential))
    assert [thread["tid"] for thread in document["threads"]] == tids
    assert sorted(lock["id"] for lock in document["locks"]) == locks
    assert sorted(document["stacks"]) == stacks
    assert ("lock_order" in document) is potential
    assert (document["hang"] is not None) is (snapshot is HUNG)
    assert len(document["reports"]) == len(document["deadlocks"]) == len(snapshot.deadlocks)
    assert document["finding"] == check_report.lines(snapshot, potential)[0]
    assert document["deadlocked"] is verdict.is_deadlocked(snapshot)
    assert document["complete"] is True
