"""The sentences of a deadlock, where a figure or a circumstance changes their words."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from unit.builders.deadlock_reports import (
    ACCOUNTS,
    ALICE,
    BOB,
    CAROL,
    DAVE,
    JOURNAL,
    ROUTINE,
    SLOTS,
    abandoned,
    follower,
    member,
    report,
    ring,
    site,
    step,
    to_itself,
)

from locktop.collector.model import (
    ActivityState,
    Avoidance,
    BlockReason,
    Deadlock,
    DeadlockEdge,
    DeadlockReport,
    Kind,
    LockName,
    Remedy,
    ThreadActivity,
)
from locktop.collector.render.words import deadlock

PLAIN = replace(ring(), behind=(), since="")
BEHIND = (follower(CAROL, "carol", ACCOUNTS), follower(DAVE, "dave", ACCOUNTS))
FOR_UNITS = report(
    member(ALICE, SLOTS, BOB), avoidance=Avoidance(Remedy.NONE), waiters=(ALICE, CAROL), since=""
)
RING = "DEADLOCK: 2 threads wait for each other, for 4.00 s already"


@pytest.mark.parametrize(
    ("found", "line"),
    [
        (PLAIN, RING),
        (replace(PLAIN, behind=BEHIND), f"{RING}; 2 threads more are stuck behind them"),
        (
            replace(PLAIN, ended=True, behind=BEHIND),
            "DEADLOCK: 2 threads waited for each other, for 4.00 s; 2 threads more were stuck"
            " behind them",
        ),
        (
            replace(PLAIN, is_lower_bound=True, behind=BEHIND[:1], behind_in_part=True),
            "DEADLOCK: 2 threads wait for each other, for at least 4.00 s; at least 1 thread more"
            " is stuck behind them",
        ),
        (
            replace(PLAIN, behind_in_part=True),
            f"{RING}; threads behind an earlier deadlock are stuck behind them",
        ),
        (
            to_itself(ended=True, behind=BEHIND[:1], since=""),
            "DEADLOCK: 1 thread waited for itself, for 4.00 s; 1 thread more was stuck behind it",
        ),
        (
            replace(FOR_UNITS, behind=BEHIND),
            "DEADLOCK: 2 threads wait for sem g_slots, whose units are"
            " all taken and not given back,"
            " for 4.00 s already; 1 thread more is stuck behind them",
        ),
        (
            replace(FOR_UNITS, waiters=(CAROL,), behind=BEHIND),
            "DEADLOCK: 1 thread waits for sem g_slots, whose units are"
            " all taken and not given back,"
            " for 4.00 s already; 1 thread more is stuck behind it",
        ),
    ],
)
def test_the_headline_says_how_many_wait_for_whom(found: DeadlockReport, line: str) -> None:
    assert deadlock.headline(found) == line


def named(*names: str) -> DeadlockReport:
    """Return a ring of threads with these names."""
    circle = [replace(one, name=name) for one, name in zip(ring().circle, names, strict=True)]
    return replace(ring(), circle=tuple(circle))


@pytest.mark.parametrize(
    ("found", "line"),
    [
        (named("a", "b"), "a > b > a"),
        (named("a", "a"), "a:11 > a:12 > a:11"),
        (named("a", ""), "a > 12 > a"),
        (named("", ""), "11 > 12 > 11"),
        (abandoned(), "alice > dave (14), which is gone"),
        (abandoned(taken_at=site("credit", 21)), "alice > dave (14), which has ended"),
        (abandoned(reason=BlockReason.RUNS), "alice > dave (14)"),
        (abandoned(held_by=99), "alice > thread 99, which is gone"),
    ],
)
def test_the_circle_tells_threads_of_one_name_apart(found: DeadlockReport, line: str) -> None:
    assert deadlock.circle(found, " > ") == line


ORDER = "Take rwlock g_journal, then mutex g_accounts."
REORDER = (
    "{} takes mutex g_accounts first (in credit at /src/store/bank.c:21) and then wants rwlock"
    " g_journal (in debit at /src/store/bank.c:30). This thread would have to take rwlock g_journal"
    " before mutex g_accounts, or release mutex g_accounts before it wants rwlock g_journal."
)
UNKNOWN = "The intended order is not known."
REVERSED = "The order of another thread of the cycle could be reversed instead."


def advised(remedy: Remedy, *order: int, **more: object) -> DeadlockReport:
    change = more.pop("change", step(ALICE, 1, 2))
    made = Avoidance(remedy, order, change, **{"others": (BOB,), **more})  # type: ignore[arg-type]
    return replace(PLAIN, avoidance=made)


@pytest.mark.parametrize(
    ("found", "sentences"),
    [
        (
            advised(Remedy.ORDER, 2, 1, others=(BOB, CAROL), change=step(ALICE, 1, 2, 4.1)),
            [ORDER, f"bob (12) and carol (13) do. {REORDER.format('alice (11)')}",
             f"{UNKNOWN} {REVERSED}"],
        ),
        (
            replace(advised(Remedy.ORDER, 2, 1), is_lower_bound=True),
            [ORDER, f"bob (12) does. {REORDER.format('alice (11)')}", f"{UNKNOWN} {REVERSED}"],
        ),
        (
            advised(Remedy.ORDER, 2, 1, elsewhere=2),
            [ORDER, f"bob (12) does. {REORDER.format('alice (11)')}",
             "2 threads outside the cycle take these two in that order as well."],
        ),
        (
            advised(Remedy.ORDER, 2, 7, elsewhere=1, change=None),
            ["Take rwlock g_journal, then lock 7.",
             "1 thread outside the cycle takes these two in that order as well."],
        ),
        (
            advised(Remedy.ONE_LOCATION, 1, 2),
            ["One source location takes all of these locks. Let every thread take them in one"
             " order, for example by address. That is: mutex g_accounts, then rwlock g_journal.",
             "Each thread holds its first lock (in credit at /src/store/bank.c:21) and wants the"
             " second (in debit at /src/store/bank.c:30)."],
        ),
        (
            advised(Remedy.RELEASE),
            ["alice (11) took mutex g_accounts (in credit at /src/store/bank.c:21) and holds it"
             " while it waits (in debit at /src/store/bank.c:30). Release mutex g_accounts before"
             " that wait."],
        ),
        (
            advised(Remedy.RELEASE, change=replace(step(ALICE, 5, 2), has_at=None)),
            ["alice (11) took lock 5 and holds it while it waits (in debit at"
             " /src/store/bank.c:30). Release lock 5 before that wait."],
        ),
        (
            replace(advised(Remedy.RELEASE, change=step(ALICE, 4, 1)), locks={4: ROUTINE}),
            ["alice (11) took once g_routine (in credit at /src/store/bank.c:21) and holds it while"
             " it waits (in debit at /src/store/bank.c:30). A once routine should not wait for a"
             " thread that may call the routine."],
        ),
        (
            advised(Remedy.ORDER, change=None),
            ["No order of locks would avoid it: these threads do not wait for locks alone."],
        ),
        (
            abandoned(JOURNAL, taken_at=site("credit", 21)),
            ["dave (14) took rwlock g_journal (in credit at /src/store/bank.c:21) and ended. A"
             " thread should release its locks before it ends, also if it is cancelled."],
        ),
        (
            abandoned(),
            ["dave (14) held mutex g_accounts and is gone. A thread should release its locks before"
             " it ends. No other thread should hold a lock when a process forks"
             " (pthread_atfork)."],
        ),
    ],
)  # fmt: skip
def test_the_advice_depends_on_the_remedy(found: DeadlockReport, sentences: list[str]) -> None:
    assert list(deadlock.avoiding(found)) == sentences


FIRST_STEP = "Look first at alice (11). Its code would have to change."


@pytest.mark.parametrize(
    ("found", "first", "count"),
    [
        (PLAIN, FIRST_STEP, 4),
        (abandoned(), "Look first at alice (11).", 4),
        (FOR_UNITS, "Look first at the code that took the units.", 4),
        (
            advised(Remedy.ONE_LOCATION, 1, 2, change=step(BOB, 1, 2)),
            "Look first at bob (12); the others are at the same location.",
            4,
        ),
        (replace(PLAIN, certain=False), FIRST_STEP, 2),
        (replace(PLAIN, ended=True), FIRST_STEP, 1),
    ],
)  # fmt: skip
def test_the_first_step_names_the_thread_to_start_with(
    found: DeadlockReport, first: str, count: int
) -> None:
    steps = list(deadlock.to_do(found))
    assert (steps[0], len(steps)) == (first, count)


JOINED = LockName(6, Kind.JOIN, "thread 12")
RUNNING = ThreadActivity(BOB, ActivityState.RUNNING, cpu=0.97)
WAITS = ThreadActivity(BOB, ActivityState.WAITING)


@pytest.mark.parametrize(
    ("changes", "request_", "holder", "now"),
    [
        ({}, "rwlock g_journal (to write)", "held by bob (12)", "now running (97% of a CPU)"),
        ({"shared": True}, "rwlock g_journal (to read)", "held by bob (12)",
         "now running (97% of a CPU)"),
        ({"now": replace(RUNNING, doing=ActivityState.ENDED)}, "rwlock g_journal (to write)",
         "held by bob (12)", ""),
        ({"held_by": ALICE}, "rwlock g_journal (to write)", "held by itself", ""),
        ({"held_by": CAROL, "now": replace(WAITS, tid=CAROL)}, "rwlock g_journal (to write)",
         "held by carol (13)", ""),
        ({"now": WAITS}, "rwlock g_journal (to write)", "held by bob (12)",
         "now waiting for mutex g_accounts"),
        ({"waits_for": JOINED, "reason": BlockReason.LIVES, "now": None}, "the end of bob (12)",
         "", ""),
        ({"waits_for": JOINED, "reason": BlockReason.LIVES, "held_by": ALICE},
         "the end of itself", "", ""),
        ({"waits_for": JOINED, "reason": BlockReason.LIVES, "held_by": 0, "now": None},
         "join thread 12", "and no thread is left that could end that wait", ""),
    ],
)  # fmt: skip
def test_a_request_has_its_holder_and_what_the_holder_does(
    changes: dict[str, object], request_: str, holder: str, now: str
) -> None:
    alice = replace(member(ALICE, JOURNAL, BOB, now=RUNNING), **changes)
    found = replace(PLAIN, circle=(alice, PLAIN.circle[1]))
    assert deadlock.waits_for(found, alice) == request_
    assert deadlock.whose(found, alice) == holder
    assert deadlock.holder_activity(found, alice) == now


@pytest.mark.parametrize(
    ("tids", "names"),
    [
        ((11,), "alice (11)"),
        ((11, 12), "alice (11) and bob (12)"),
        ((11, 12, 99), "alice (11), bob (12) and thread 99"),
        ((11, 12, 13, 14), "alice (11), bob (12), carol (13) and 1 more"),
    ],
)
def test_at_most_three_threads_are_named(tids: tuple[int, ...], names: str) -> None:
    assert deadlock.threads(PLAIN, tids) == names


def wait_in(*tids: int, for_: int) -> Deadlock:
    """Each thread waits for the next one, the last for ``for_``."""
    holders = (*tids[1:], for_)
    edges = [
        DeadlockEdge(tid, tid, held_by, 0, 0) for tid, held_by in zip(tids, holders, strict=True)
    ]
    return Deadlock(True, 1.0, tuple(edges))


@pytest.mark.parametrize(
    ("deadlocks", "count", "whom"),
    [
        ((wait_in(11, 12, for_=11),), 2, "each other"),
        ((wait_in(11, for_=11),), 1, "itself"),
        ((wait_in(11, for_=11), wait_in(12, for_=12)), 2, "themselves"),
        ((wait_in(11, for_=0),), 1, "what no thread is left to give"),
        ((wait_in(11, 12, for_=11), wait_in(11, 13, for_=11)), 3, "each other"),
        (
            (wait_in(11, for_=0), wait_in(12, for_=12), wait_in(13, 14, for_=13)),
            4,
            "each other or themselves or what no thread is left to give",
        ),
    ],
)
def test_the_threads_of_several_deadlocks_are_counted_once(
    deadlocks: tuple[Deadlock, ...], count: int, whom: str
) -> None:
    assert deadlock.who_for_whom(deadlocks) == (count, whom)
