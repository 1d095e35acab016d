"""The blame of locks: the sums in C against plain sums in Python."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction

import pytest
from support.seeds import seeds
from unit.builders.charges import Charge, charged

from locktop.collector.model import (
    Blame,
    Kind,
    Lock,
    behind_s,
    blamed_sites,
    further_locks,
    unheld_s,
)
from locktop.collector.sources.preload.blame import ChargedBlame, Holder, LockShares, shares

HZ = 1000.0
#: Stacks 5 and 6 are one origin; the holder of 7 waited for lock 3 meanwhile; 8 has no address.
ADDRESSES = {4: (0x40,), 5: (0x50,), 6: (0x50,), 7: (0x70, 3), 8: ()}
ORIGINS = {4: (0x40, 0), 5: (0x50, 0), 6: (0x50, 0), 7: (0x70, 3), 8: (0, 0), 0: (0, 0)}


def shares_of(
    waited: int, charges: Sequence[Charge], pending: int = 0, holders: Sequence[Holder] = ()
) -> LockShares:
    return shares(waited, charged(charges), pending, holders, lambda stack: ADDRESSES[stack])


def plain(
    waited: int, charges: Sequence[Charge], pending: int, holders: Sequence[Holder]
) -> dict[Holder, int]:
    """The same in the plain way: the ticks of each holder."""
    sums: dict[Holder, int] = {}
    known = sum(ticks for _, _, ticks in charges)
    for tid, stack, ticks in charges:
        holder = (tid, *ORIGINS[stack])
        part = ticks * waited // known if known > waited else ticks
        sums[holder] = sums.get(holder, 0) + part
    rest = waited - sum(sums.values())
    for holder in holders:
        part = min(rest, max(0, pending)) // len(holders)
        sums[holder] = sums.get(holder, 0) + part
    sums[0, 0, 0] = sums.get((0, 0, 0), 0) + waited - sum(sums.values())
    return {holder: ticks for holder, ticks in sums.items() if ticks}


def in_order(sums: dict[Holder, int]) -> list[Blame]:
    ordered = sorted(sums.items(), key=lambda share: (-share[1], share[0]))
    return [
        Blame(tid=tid, site=site, wait_s=ticks / HZ, through=through)
        for (tid, site, through), ticks in ordered
    ]


def some_charges(chance: random.Random) -> list[Charge]:
    """Charges of living threads, and one charge of ended threads for each stack, as in a file."""
    count = chance.choice((0, 1, 5, 40, 3000))
    living = [
        (chance.randrange(1, 60), chance.choice(list(ORIGINS)), chance.randrange(50))
        for _ in range(count)
    ]
    stacks = chance.sample(list(ORIGINS), chance.randrange(len(ORIGINS)))
    return living + [(0, stack, chance.randrange(500)) for stack in stacks]


def test_sums_are_those_of_plain_sums() -> None:
    for seed in seeds(60):
        chance = random.Random(seed)
        locks, sums = [], dict[Holder, int]()
        for _ in range(chance.choice((1, 1, 2, 5))):
            charges = some_charges(chance)
            known = sum(ticks for _, _, ticks in charges)
            waited = 1 + max(0, known + chance.randrange(-known - 1, 500))
            holders = [(chance.randrange(1, 60), 0x40, 0), (99, 0x99, 9)][: chance.randrange(3)]
            pending = chance.randrange(-5, 400)
            expected = plain(waited, charges, pending, holders)
            found = ChargedBlame([shares_of(waited, charges, pending, holders)], HZ)
            assert list(found) == in_order(expected)
            assert sum(Fraction(one.wait_s) for one in found) == pytest.approx(waited / HZ)
            of_nobody = sum(ticks for (tid, site, _), ticks in expected.items() if not tid | site)
            assert found.unheld_s == pytest.approx(of_nobody / HZ, abs=1e-12)
            assert found.behind_s == pytest.approx((waited - of_nobody) / HZ, abs=1e-12)
            assert found.sites >= {one.site for one in found}
            assert found.further_locks >= {one.through for one in found}
            locks.append(found)
            for holder, ticks in expected.items():
                sums[holder] = sums.get(holder, 0) + ticks
        assert list(locks[0].sum_with(locks[1:])) == in_order(sums)


def test_blame_is_used_like_a_tuple() -> None:
    blame = ChargedBlame([shares_of(100, [(7, 4, 10), (8, 7, 60)])], HZ)
    expected = (
        Blame(tid=8, site=0x70, wait_s=0.06, through=3),
        Blame(tid=0, site=0, wait_s=0.03),
        Blame(tid=7, site=0x40, wait_s=0.01),
    )
    assert (len(blame), blame[0], blame[-1], blame[1:]) == (
        3, expected[0], expected[2], expected[1:],
    )  # fmt: skip
    assert blame == expected
    assert hash(blame) == hash(expected)
    assert blame != expected[1:]
    with pytest.raises(IndexError):
        blame[3]
    assert blamed_sites(blame) - {0} == blamed_sites(expected) - {0} == {0x70, 0x40}
    assert further_locks(blame) == further_locks(expected) == {0, 3}
    assert unheld_s(blame) == unheld_s(expected) == 0.03
    assert behind_s(blame) == pytest.approx(behind_s(expected)) == 0.07


def test_forged_ticks_raise_nothing() -> None:
    large = (1 << 64) - 1
    for waited in (1, large, 3 * large):
        blame = ChargedBlame([shares_of(waited, [(7, 4, large), (8, 5, large), (9, 6, 1)])], HZ)
        assert all(one.wait_s >= 0 for one in blame)


def test_the_blame_of_a_lock_is_part_of_its_equality() -> None:
    found = ChargedBlame([shares_of(100, [(7, 4, 10)])], HZ)
    assert lock(found) == lock(tuple(found))
    assert lock(found) != lock(())


def lock(blame: ChargedBlame | tuple[Blame, ...]) -> Lock:
    return Lock(
        id=1, address=2, kind=Kind.MUTEX, name="", acquisitions=1, contended=1, trylock_failed=0,
        wait_s=0.1, wait_max_s=0.1, hold_s=0.1, hold_timed=1, hold_max_s=0.1, holders=(),
        waiters=(), wait_stacks=(), blame=blame,
    )  # fmt: skip
