"""The shares of the holders in the wait time of a lock."""

from __future__ import annotations

import pytest
from unit.builders.charges import Charge, charged
from unit.builders.raw_threads import lock_row

from locktop.collector.native import lib
from locktop.collector.sources.preload import blame
from locktop.collector.sources.preload.blame import Holder

NOBODY: Holder = (0, 0, 0)
ADDRESSES = {1: [0x10], 2: [0x20, 5], 3: []}


def charge(holder: int, stack: int, ticks: int) -> Charge:
    return holder, stack, ticks


def shares(
    waited: int, *charges: Charge, pending: int = 0, holders: tuple[Holder, ...] = ()
) -> list[tuple[Holder, int]]:
    made = blame.shares(waited, charged(charges), pending, holders, lambda at: ADDRESSES[at])
    rows = blame.ChargedBlame([made], hz=1.0)
    found = [(one.holder, int(one.wait_s)) for one in rows]
    assert sum(ticks for _, ticks in found) == waited
    return found


def test_time_without_a_charge_has_no_holder() -> None:
    assert shares(100) == [(NOBODY, 100)]
    assert shares(0) == []


def test_charges_of_one_call_add_up_and_the_most_comes_first() -> None:
    found = shares(100, charge(7, 1, 10), charge(8, 2, 40), charge(7, 1, 20), charge(9, 3, 5))
    assert found == [((8, 0x20, 5), 40), ((7, 0x10, 0), 30), (NOBODY, 25), ((9, 0, 0), 5)]


def test_a_charge_without_a_stack_has_no_call_site() -> None:
    assert shares(10, charge(7, 0, 10)) == [((7, 0, 0), 10)]


def test_equal_shares_are_in_the_order_of_their_holders() -> None:
    found = shares(20, charge(8, 1, 10), charge(7, 2, 10))
    assert found == [((7, 0x20, 5), 10), ((8, 0x10, 0), 10)]


def test_charges_above_the_waits_are_reduced_in_proportion() -> None:
    found = shares(50, charge(7, 1, 75), charge(8, 1, 25))
    assert found == [((7, 0x10, 0), 37), ((8, 0x10, 0), 12), (NOBODY, 1)]


def test_the_present_holders_share_what_is_pending() -> None:
    holders = ((7, 0x10, 0), (8, 0x20, 0))
    found = shares(100, charge(7, 1, 20), pending=40, holders=holders)
    assert dict(found) == {(7, 0x10, 0): 40, (8, 0x20, 0): 20, NOBODY: 40}


def test_the_present_holders_get_no_more_than_the_rest() -> None:
    found = shares(100, charge(7, 1, 70), pending=1000, holders=((8, 0x20, 0),))
    assert dict(found) == {(7, 0x10, 0): 70, (8, 0x20, 0): 30}


def test_a_damaged_pending_time_charges_nobody() -> None:
    assert shares(100, pending=-1, holders=((8, 0x20, 0),)) == [(NOBODY, 100)]


@pytest.mark.parametrize("shift", [0, 4])
def test_pending_is_the_time_of_all_waiters_since_they_began(shift: int) -> None:
    began = 100 + 150
    row = lock_row(waits=began << lib.LT_WAITS_BITS | 2)
    assert blame.pending(row, 200 << shift, shift) == (100 + 50) << shift


def test_the_mark_of_a_new_wait_is_no_waiter() -> None:
    row = lock_row(waits=100 << lib.LT_WAITS_BITS | lib.LT_WAITS_NEW | 1)
    assert blame.pending(row, 130, 0) == 30


def test_the_sum_of_beginnings_may_overflow() -> None:
    bits = 64 - lib.LT_WAITS_BITS
    began = (1 << bits) - 10
    row = lock_row(waits=began << lib.LT_WAITS_BITS | 1)
    assert blame.pending(row, 20, 0) == 30


def test_nothing_is_pending_where_more_was_charged_than_waited() -> None:
    row = lock_row(waits=101 << lib.LT_WAITS_BITS | 1)
    assert blame.pending(row, 100, 0) == 0
    half = 1 << (63 - lib.LT_WAITS_BITS)
    row = lock_row(waits=1)
    assert blame.pending(row, half - 1, 0) == half - 1
    assert blame.pending(row, half, 0) == 0


def test_a_damaged_shift_is_no_error() -> None:
    row = lock_row(waits=0)
    assert blame.pending(row, 1 << 50, 64 + 3) == 0
