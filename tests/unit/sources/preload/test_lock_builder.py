"""The locks of a snapshot from the counters of one reading."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from support.shared_file import monotonic_clock
from unit.builders.charges import Charge, charged
from unit.builders.raw_threads import NOW, SECOND, lock_row, reading

from locktop.collector.model import Blame, Frame, Kind, Lock, LockRates
from locktop.collector.native import lib
from locktop.collector.shm.layout import LockRow, SiteSum
from locktop.collector.shm.lock_names import ProgramLockNames
from locktop.collector.sources.preload.lock_builder import LockBuilder
from locktop.collector.sources.preload.lock_state import LockState
from locktop.collector.sources.preload.stack_table import StackFrames
from locktop.collector.symbols.resolver import Resolver

MUTEX, RWLOCK, SEM = lib.LT_KIND_MUTEX, lib.LT_KIND_RWLOCK, lib.LT_KIND_SEM
FUTEX = lib.LT_KIND_FUTEX
LOCK = 3


class NoNames(Resolver):
    """Knows the variables of a program, by address."""

    def __init__(self, **variables: int) -> None:
        self.by_address = {address: name for name, address in variables.items()}
        self.changes = 0

    @property
    def version(self) -> int:
        return self.changes

    def data(self, address: int) -> str | None:
        return self.by_address.get(address, "")

    def frames(self, address: int) -> tuple[Frame, ...]:
        return (Frame(address, "", None, None, "app", address),)

    def is_final(self, frame: Frame) -> bool:
        return True


class Given(ProgramLockNames):
    """Names that the program gave, by key."""

    def __init__(self) -> None:
        self.by_key: dict[int, str] = {}
        self.version = 0

    def name(self, key: int) -> str:
        return self.by_key.get(key, "")


class Frames(StackFrames):
    """Each stack has one address: its id."""

    def __init__(self) -> None:
        pass

    def frames(self, stack: int) -> tuple[Frame, ...]:
        return (Frame(stack, "", None, None, "app", stack),) if stack else ()

    def addresses(self, stack: int) -> tuple[int, ...]:
        return (stack,) if stack else ()


class Locks:
    """A builder, and the rows and states of its next scan."""

    def __init__(self) -> None:
        self.resolver, self.given, self.frames = NoNames(), Given(), Frames()
        self.builder = LockBuilder(
            monotonic_clock(), self.resolver, self.given, lambda tid: self.frames.frames(tid)
        )
        self.now = NOW
        self.sites: list[SiteSum] = []
        self.charges: list[Charge] = []

    def all(self, rows: Sequence[LockRow], **states: LockState) -> tuple[Lock, ...]:
        one = reading(rows=rows)
        one.now = one.locks_now = self.now
        one.sites[LOCK], one.charges[LOCK] = self.sites, charged(self.charges)
        by_id = {int(name[1:]): state for name, state in states.items()}
        found = self.builder.build(one, by_id, self.frames)
        self.now += SECOND
        return found

    def one(self, row: LockRow, state: LockState | None = None) -> Lock:
        (lock,) = self.all([row], **({f"_{row.lock}": state} if state else {}))
        return lock


@pytest.fixture
def locks() -> Locks:
    return Locks()


def row(kind: int = MUTEX, **fields: int) -> LockRow:
    return lock_row(**{"lock": LOCK, "kind": kind, "address": 0x1000} | fields)


def site(stack: int, count: int, ticks: int) -> SiteSum:
    return SiteSum(LOCK, stack, 0, 0, count, ticks, 0)


def waiting(*ticks: int, stack: int = 0, **fields: Any) -> LockState:
    waiters = [(each, 11 + number, stack) for number, each in enumerate(ticks)]
    return LockState(waiters=waiters, **fields)


def test_the_counters_of_a_row_are_those_of_the_lock(locks: Locks) -> None:
    lock = locks.one(
        row(acquisitions=9, contended=4, trylock_failed=2, signals=5, unheard=1, hold_timed=6,
            wait_ticks=3 * SECOND, wait_max=2 * SECOND, hold_ticks=8 * SECOND,
            hold_max=7 * SECOND, generation=2, foreign_releases=1, destroyed=1)
    )  # fmt: skip
    assert (lock.id, lock.address, lock.kind) == (LOCK, 0x1000, Kind.MUTEX)
    assert (lock.acquisitions, lock.contended, lock.trylock_failed) == (9, 4, 2)
    assert (lock.signals, lock.unheard, lock.hold_timed, lock.generation) == (5, 1, 6, 2)
    assert (lock.wait_s, lock.wait_max_s, lock.hold_s, lock.hold_max_s) == (3, 2, 8, 7)
    assert (lock.foreign_releases, lock.destroyed) == (True, True)
    quiet = locks.one(row())
    assert (quiet.foreign_releases, quiet.destroyed) == (False, False)


def test_a_lock_that_threads_wait_for_or_hold_is_not_destroyed(locks: Locks) -> None:
    """Another lock lies at the address: no call of the program told the library."""
    assert not locks.one(row(destroyed=1), waiting(SECOND)).destroyed
    assert not locks.one(row(destroyed=1), LockState(holders=[11])).destroyed


def test_rows_of_unknown_kinds_and_unused_other_locks_are_no_locks(locks: Locks) -> None:
    assert locks.all([row(kind=99), lock_row()]) == ()
    (other,) = locks.all([lock_row(acquisitions=1)])
    assert (other.id, other.kind, other.name) == (0, Kind.MUTEX, "other locks")


def test_locks_with_most_wait_come_first(locks: Locks) -> None:
    rows = [lock_row(lock=n, kind=MUTEX, wait_ticks=n * SECOND) for n in (1, 3, 2)]
    assert [lock.id for lock in locks.all(rows)] == [3, 2, 1]


def test_waits_that_go_on_count(locks: Locks) -> None:
    state = waiting(SECOND, 3 * SECOND, stack=5)
    lock = locks.one(row(wait_ticks=2 * SECOND, wait_max=SECOND), state)
    assert (lock.wait_s, lock.wait_max_s) == (6.0, 3.0)
    assert lock.waiters == (12, 11)
    assert [(one.stack, one.count, one.wait_s) for one in lock.wait_stacks] == [(5, 0, 4.0)]


def test_a_wait_without_a_stack_is_in_no_stack(locks: Locks) -> None:
    assert locks.one(row(), waiting(SECOND)).wait_stacks == ()


def test_the_stack_with_the_longest_wait_comes_first(locks: Locks) -> None:
    locks.sites = [site(5, 1, SECOND), site(6, 2, 3 * SECOND), site(8, 1, 0), site(7, 2, 0)]
    lock = locks.one(row(), waiting(3 * SECOND, stack=5))
    assert [(one.stack, one.count, one.wait_s) for one in lock.wait_stacks] == [
        (5, 1, 4.0), (6, 2, 3.0), (7, 2, 0.0), (8, 1, 0.0),
    ]  # fmt: skip


def test_a_lock_shows_a_limited_number_of_stacks(locks: Locks) -> None:
    locks.sites = [site(n, 1, SECOND) for n in range(1, 100)]
    assert len(locks.one(row()).wait_stacks) == 64


def test_the_longest_wait_is_no_shorter_than_the_mean_of_a_stack(locks: Locks) -> None:
    locks.sites = [site(5, 2, 4 * SECOND), site(6, 1, SECOND), site(7, 0, 9 * SECOND)]
    assert locks.one(row(wait_max=SECOND)).wait_max_s == 2.0


def test_waits_for_work_are_idle(locks: Locks) -> None:
    locks.sites = [site(5, 1, SECOND)]
    idle = locks.one(row(lib.LT_KIND_COND, wait_ticks=2 * SECOND))
    assert (idle.idle, idle.idle_s, idle.wait_stacks[0].idle) == (True, 2.0, True)
    contended = locks.one(row(wait_ticks=2 * SECOND))
    assert (contended.idle, contended.idle_s, contended.wait_stacks[0].idle) == (False, 0.0, False)


def test_a_hold_that_goes_on_counts_as_long_as_it_is(locks: Locks) -> None:
    state = LockState(holders=[11], held=[(11, 0, 0)], hold_ticks=5 * SECOND, hold_max=4 * SECOND,
                      holds_timed=2)  # fmt: skip
    counted = {"hold_ticks": 10 * SECOND, "hold_mean": SECOND, "hold_max": 2 * SECOND}
    lock = locks.one(row(**counted), state)
    # The counters estimate both holds as ended, with the mean of 1 s each.
    assert (lock.hold_s, lock.hold_max_s, lock.holders) == (10 + 5 - 2, 4.0, (11,))
    short = LockState(holders=[11], hold_ticks=SECOND, holds_timed=2)
    assert locks.one(row(**counted), short).hold_s == 10


def test_a_lock_that_waiters_saw_held_has_a_presumed_holder(locks: Locks) -> None:
    assert locks.one(row(), waiting(SECOND, published=[20])).holders == (20,)
    assert locks.one(row(), waiting(1, published=[20])).holders == ()
    assert locks.one(row(), waiting(SECOND, published=[20], holders=[21])).holders == (21,)


@pytest.mark.parametrize(
    ("kind", "type_", "recursive", "writers_first", "first_value", "freed_at_exit"),
    [
        (MUTEX, 0, False, False, None, False),
        (MUTEX, 1, True, False, None, False),
        (MUTEX, 2, False, False, None, False),
        (MUTEX, 3, False, False, None, False),
        (MUTEX, 1 | 16, True, False, None, True),
        (MUTEX, 32, False, False, None, True),
        (RWLOCK, 2, False, True, None, False),
        (RWLOCK, 1, False, False, None, False),
        (SEM, 1, False, False, 0, False),
        (SEM, 6, False, False, 5, False),
        (SEM, 0, False, False, None, False),
        (SEM, 17, False, False, 16, False),
    ],
)
def test_the_type_of_a_lock_says_how_it_works(
    locks: Locks,
    kind: int,
    type_: int,
    recursive: bool,
    writers_first: bool,
    first_value: int | None,
    freed_at_exit: bool,
) -> None:
    lock = locks.one(row(kind, type=type_))
    assert (lock.recursive, lock.writers_first) == (recursive, writers_first)
    assert (lock.first_value, lock.freed_at_exit) == (first_value, freed_at_exit)


def test_the_first_scan_has_no_rates(locks: Locks) -> None:
    assert locks.one(row(changed_acquisitions=5)).rates == LockRates()


def test_rates_are_changes_in_a_second_of_the_interval(locks: Locks) -> None:
    locks.one(row())
    locks.now += SECOND  # two seconds after the first scan
    rates = locks.one(
        row(acquisitions=6, changed_acquisitions=6, changed_contended=4, changed_signals=2,
            changed_wait_ticks=SECOND, changed_hold_ticks=SECOND)
    ).rates  # fmt: skip
    assert (rates.acquisitions, rates.contended, rates.signals) == (3.0, 2.0, 1.0)
    assert (rates.wait, rates.hold) == (0.5, 0.5)


def test_waits_and_holds_that_go_on_add_their_growth_to_the_rates(locks: Locks) -> None:
    first = waiting(SECOND, hold_ticks=SECOND, holds_timed=1)
    locks.one(row(RWLOCK, changed_acquisitions=1), first)
    grown = waiting(3 * SECOND, hold_ticks=4 * SECOND, holds_timed=1)
    rates = locks.one(row(RWLOCK, changed_acquisitions=1), grown).rates
    assert (rates.wait, rates.hold) == (2.0, 3.0)
    rates = locks.one(row(RWLOCK, acquisitions=1, changed_acquisitions=1)).rates  # both are over
    assert (rates.wait, rates.hold) == (0.0, 0.0)


def test_a_holder_that_took_nothing_held_the_lock_all_the_while(locks: Locks) -> None:
    held = LockState(holders=[11, 12], held=[(11, 0, 0), (12, 0, 0)])
    locks.one(row(RWLOCK), held)
    assert locks.one(row(RWLOCK), held).rates.hold == 2.0
    assert locks.one(row(RWLOCK, changed_acquisitions=1), held).rates.hold == 0.0
    assert locks.one(row(RWLOCK, foreign_releases=1), held).rates.hold == 0.0


def test_no_mutex_is_held_for_longer_than_the_interval(locks: Locks) -> None:
    """The estimate takes each nested acquisition of a recursive mutex as a hold of its own."""
    changed = {"changed_acquisitions": 2, "changed_hold_ticks": 3 * SECOND}
    locks.all([])
    assert locks.one(row(**changed)).rates.hold == 1.0
    others = Locks()
    others.all([])
    assert others.one(row(RWLOCK, **changed)).rates.hold == 3.0


def test_holders_are_blamed_for_the_waits(locks: Locks) -> None:
    locks.charges = [(20, 5, 2 * SECOND)]
    lock = locks.one(row(wait_ticks=3 * SECOND))
    assert lock.blame == (Blame(20, 5, 2.0), Blame(0, 0, 1.0))
    locks.charges = []
    assert locks.one(row(SEM, wait_ticks=3 * SECOND)).blame == ()
    assert locks.one(row(wait_ticks=0)).blame == ()
    assert locks.one(lock_row(acquisitions=1, wait_ticks=SECOND)).blame == ()


def test_present_holders_share_the_time_that_is_waited_for_them(locks: Locks) -> None:
    began = (NOW - SECOND) << lib.LT_WAITS_BITS
    state = waiting(SECOND, holders=[20], held=[(20, 5, 0)])
    lock = locks.one(row(waits=began & (1 << 64) - 1 | 1), state)
    assert lock.blame == (Blame(20, 5, 1.0),)
    other = Locks()
    presumed = waiting(SECOND, published=[21])
    assert other.one(row(waits=began & (1 << 64) - 1 | 1), presumed).blame == (Blame(21, 0, 1.0),)


def test_unheld_time_has_a_rate(locks: Locks) -> None:
    locks.one(row(wait_ticks=SECOND))
    locks.charges = [(20, 0, SECOND // 2),
                     (0, 5, SECOND // 2)]  # fmt: skip
    found = locks.one(row(wait_ticks=4 * SECOND, changed_wait_ticks=3 * SECOND))
    assert found.rates.unheld == 2.0


def test_a_new_lock_has_rates_from_nothing(locks: Locks) -> None:
    locks.all([])
    assert locks.one(row(wait_ticks=3 * SECOND)).rates.unheld == 3.0


def test_an_unchanged_lock_is_the_same_object(locks: Locks) -> None:
    first = locks.one(row(acquisitions=1))
    assert locks.one(row(acquisitions=1)) is first
    assert locks.one(row(acquisitions=2)) is not first


def test_a_lock_that_waits_and_holds_concern_is_made_anew(locks: Locks) -> None:
    first = locks.one(row())
    waited = locks.one(row(), waiting(SECOND))
    assert waited is not first
    after = locks.one(row())
    assert after.waiters == ()
    assert locks.one(row()) is after


def test_a_lock_gets_its_name_as_soon_as_the_name_is_known(locks: Locks) -> None:
    assert locks.one(row()).name == "mutex 0x1000"
    locks.resolver.by_address[0x1000] = "cache_lock"
    locks.resolver.changes += 1
    assert locks.one(row()).name == "cache_lock"
    locks.given.by_key[MUTEX << lib.LT_KIND_SHIFT | 0x1000] = "the cache"
    locks.given.version += 1
    assert locks.one(row()).name == "the cache"


def test_locks_are_renamed_in_a_finished_scan(locks: Locks) -> None:
    from unit.builders import records

    found = locks.one(row())
    foreign = records.lock(LOCK + 1, "foreign")
    draft = records.snapshot((), (found, foreign)).draft()
    locks.resolver.by_address[0x1000] = "cache_lock"
    locks.builder.rename(draft, locks.frames)
    assert [lock.name for lock in draft.locks] == ["cache_lock", "foreign"]


def test_a_lock_without_a_variable_has_the_name_of_its_first_stack(locks: Locks) -> None:
    locks.sites = [site(5, 1, SECOND)]
    assert locks.one(row()).name == "mutex in app+0x5"
    made = Locks()
    made.sites = [site(5, 1, SECOND)]
    assert made.one(row(made_at=7)).name == "mutex made in app+0x7"


@pytest.mark.parametrize("times_holds", [False, True])
def test_a_futex_has_holders_only_once_it_is_known_as_a_lock(
    locks: Locks, times_holds: bool
) -> None:
    locks.charges = [(7, 21, 3 * SECOND), (8, 22, 2 * SECOND)]  # stacks of wakes
    futex_row = row(FUTEX, wait_ticks=6 * SECOND, contended=3,
                    hold_ticks=SECOND, hold_timed=2, hold_max=SECOND)  # fmt: skip
    futex = locks.one(futex_row)
    assert (futex.blame, futex.unheld_wait_s) == ((), None)
    assert (futex.hold_s, futex.hold_timed, futex.hold_max_s) == (0.0, 0, 0.0)
    one = reading(rows=[futex_row])
    one.charges[LOCK] = charged(locks.charges)
    known = locks.builder.add_wakers(futex, one, lambda stack: 0x100 + stack, times_holds)
    assert [tuple(entry.holder) for entry in known.blame] == [
        (7, 0x100 + 21, 0), (8, 0x100 + 22, 0), (0, 0, 0),
    ]  # fmt: skip
    assert [entry.wait_s for entry in known.blame] == [3.0, 2.0, 1.0]
    assert known.unheld_wait_s == 1.0
    assert known.hold_timed == (2 if times_holds else 0)
    assert known.hold_s == (1.0 if times_holds else 0.0)
