"""Reports of deadlocks, made by hand."""

from __future__ import annotations

from msgspec.structs import replace
from unit.builders import records

from locktop.collector.model import (
    ActivityState,
    Avoidance,
    BlockReason,
    DeadlockReport,
    Follower,
    Frame,
    Kind,
    LockingStep,
    LockName,
    Member,
    Remedy,
    Taken,
    ThreadActivity,
)

ALICE, BOB, CAROL, DAVE = 11, 12, 13, 14
ACCOUNTS = LockName(1, Kind.MUTEX, "g_accounts")
JOURNAL = LockName(2, Kind.RWLOCK, "g_journal")
SLOTS = LockName(3, Kind.SEM, "g_slots")
ROUTINE = LockName(4, Kind.ONCE, "g_routine")
NAMES = {ALICE: "alice", BOB: "bob", CAROL: "carol", DAVE: "dave"}


def site(function: str, line: int) -> Frame:
    return records.frame(function, "bank.c", line)


def member(
    tid: int, lock: LockName, held_by: int, duration_s: float = 5.0, **more: object
) -> Member:
    """A thread without a stack that waits for a lock."""
    made = Member(
        tid=tid, name=NAMES[tid], waits_for=lock, duration_s=duration_s, is_lower_bound=False,
        shared=False, at=None, stack_id=0, stack=(), held_by=held_by, reason=BlockReason.HELD,
        taken_at=None, now=None, has=(),
    )  # fmt: skip
    return replace(made, **more)


def follower(tid: int, name: str, lock: LockName | None, **more: object) -> Follower:
    """A thread that waits for the lock of ALICE."""
    made = Follower(
        tid=tid, name=name, waits_for=lock, holders=(ALICE,), duration_s=2.0,
        is_lower_bound=False, at=None,
    )  # fmt: skip
    return replace(made, **more)


def step(tid: int, has: int, wants: int, duration_s: float = 4.0) -> LockingStep:
    return LockingStep(tid, has, wants, site("credit", 10 + tid), site("debit", 30), duration_s)


def report(*circle: Member, avoidance: Avoidance, **more: object) -> DeadlockReport:
    made = DeadlockReport(
        process=records.snapshot((), ()).process, ended=False, certain=True, doubt="",
        since_s=4.0, is_lower_bound=False, since="2026-11-21T03:12:41Z", circle=circle,
        is_circle=circle[-1].held_by == circle[0].tid, behind=(), behind_in_part=False,
        avoidance=avoidance, locks={one.waits_for.id: one.waits_for for one in circle},
        names=NAMES,
    )  # fmt: skip
    return replace(made, **more)


def ring() -> DeadlockReport:
    """ALICE has the accounts and wants to read the journal; BOB has the journal the other way."""
    frames = (
        replace(site("read_entry", 9), inlined=True),
        *(site("debit", 30 + n) for n in range(31)),
    )
    accounts = Taken(ACCOUNTS, site("credit", 21), 9.0, False, (CAROL, DAVE, 21, 22, BOB))
    alice = member(
        ALICE, JOURNAL, BOB, shared=True, at=site("read_entry", 9), stack=frames,
        taken_at=site("write_entry", 44), has=(accounts, Taken(SLOTS, None, None, False, (ALICE,))),
        now=ThreadActivity(BOB, ActivityState.WAITING, duration_s=4.0),
    )  # fmt: skip
    bob = member(
        BOB, ACCOUNTS, ALICE, 4.0, is_lower_bound=True, taken_at=site("credit", 21),
        has=(Taken(JOURNAL, site("write_entry", 44), 8.0, True, (ALICE,)),),
    )  # fmt: skip
    behind = (
        follower(CAROL, "carol", ACCOUNTS, duration_s=3.0),
        *(follower(21 + n, f"pool-{n}", ACCOUNTS, at=site("serve", 71)) for n in range(9)),
        follower(DAVE, "dave", LockName(9, Kind.JOIN, "thread 11"), is_lower_bound=True),
        follower(41, "", None),
    )
    avoidance = Avoidance(Remedy.ORDER, (2, 1), step(ALICE, 1, 2), (BOB,))
    return report(alice, bob, avoidance=avoidance, behind=behind)


def to_itself(**more: object) -> DeadlockReport:
    """ALICE wants the accounts, which she has."""
    once_only = Avoidance(Remedy.ONCE_ONLY, (), step(ALICE, 1, 1))
    return report(member(ALICE, ACCOUNTS, ALICE), avoidance=once_only, **more)


def abandoned(lock: LockName = ACCOUNTS, held_by: int = DAVE, **more: object) -> DeadlockReport:
    """ALICE waits for what a thread has not given back; nobody waits for her."""
    alice = member(ALICE, lock, held_by, reason=BlockReason.ABANDONED)
    return report(replace(alice, **more), avoidance=Avoidance(Remedy.GIVE_BACK))
