"""Locks of one kind and one name as one class: those made at one place, the cells of an array."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter

from locktop.collector.model import Blame, Kind, Lock, LockRates, WaitStack

_INDEX = re.compile(r"\[\d+\]")
_figures = attrgetter(
    "acquisitions", "contended", "trylock_failed", "signals", "wait_s", "hold_s", "hold_timed",
    "destroyed", "wait_max_s", "hold_max_s",
)  # fmt: skip
_rates = attrgetter("acquisitions", "contended", "wait", "hold", "signals")
_NO_RATES = LockRates()


@dataclass(frozen=True, slots=True)
class LockClass:
    """At least two locks of one name. Figures are sums over them, named and measured as in Lock."""

    name: str  # indexes left empty: shards[].mu
    kind: Kind
    locks: tuple[int, ...]  # ids, in the order of Snapshot.locks: the most wait first
    destroyed: int  # how many of them are
    acquisitions: int
    contended: int
    trylock_failed: int
    signals: int
    wait_s: float
    wait_max_s: float  # the longest there was at any of them
    hold_s: float
    hold_timed: int
    hold_max_s: float
    holders: tuple[int, ...]  # tids, each once
    waiters: tuple[int, ...]  # tids, those at the first lock first
    rates: LockRates


def fold(locks: Iterable[Lock]) -> tuple[LockClass, ...]:
    """Return the classes among ``locks``, in the order of their first locks."""
    found: dict[tuple[Kind, str], list[Lock]] = {}
    for lock in locks:
        name = _without_indexes(lock.name, lock.kind)
        # Where no name is known, the address is in its place.
        if lock.id and not name.endswith(f"{lock.address:#x}"):
            found.setdefault((lock.kind, name), []).append(lock)
    return tuple(
        _class(name, kind, alike) for (kind, name), alike in found.items() if len(alike) > 1
    )


def by_lock(classes: Iterable[LockClass]) -> dict[int, LockClass]:
    """Return the class of each lock that is in one, by the lock's id."""
    return {lock: found for found in classes for lock in found.locks}


def single_name(lock: Lock, of: LockClass | None) -> str:
    """Return the lock's name; with its address if the others of its class have the same."""
    return f"{lock.name} at {lock.address:#x}" if of and lock.name == of.name else lock.name


def within(lock: Lock, of: LockClass) -> str:
    """Return what tells the lock from the others of its class: its name, or its address."""
    return f"at {lock.address:#x}" if lock.name == of.name else lock.name


def wait_stacks(locks: Iterable[Lock]) -> tuple[WaitStack, ...]:
    """Return where all the waits for ``locks`` came from, most wait first."""
    sums: dict[int, tuple[int, float]] = {}
    for lock in locks:
        for one in lock.wait_stacks:
            count, wait_s = sums.get(one.stack, (0, 0.0))
            sums[one.stack] = (count + one.count, wait_s + one.wait_s)
    found = [WaitStack(stack, count, wait_s) for stack, (count, wait_s) in sums.items()]
    return tuple(sorted(found, key=lambda one: (-one.wait_s, -one.count, one.stack)))


def blame(locks: Iterable[Lock]) -> tuple[Blame, ...]:
    """Return because of whom ``locks`` were waited for, most wait first."""
    sums: dict[tuple[int, int], float] = {}
    for lock in locks:
        for one in lock.blame:
            sums[one.tid, one.site] = sums.get((one.tid, one.site), 0.0) + one.wait_s
    found = [Blame(tid, site, wait_s) for (tid, site), wait_s in sums.items()]
    return tuple(sorted(found, key=lambda one: (-one.wait_s, one.tid, one.site)))


@lru_cache(1 << 17)
def _without_indexes(name: str, kind: Kind) -> str:
    # What is made of a place in the code begins with the kind: brackets in it are no indexes.
    if "[" not in name or name.startswith(f"{kind} "):
        return name
    # Nor are those in the arguments of a template.
    arguments = name.rfind(">") + 1
    return name[:arguments] + _INDEX.sub("[]", name[arguments:])


def _class(name: str, kind: Kind, locks: Sequence[Lock]) -> LockClass:
    figures = tuple(zip(*map(_figures, locks), strict=True))
    acquisitions, contended, failed, signals, wait_s, hold_s, timed, destroyed = map(
        sum, figures[:8]
    )
    moved = [lock.rates for lock in locks if lock.rates is not _NO_RATES]
    return LockClass(
        name=name,
        kind=kind,
        locks=tuple([lock.id for lock in locks]),
        destroyed=destroyed,
        acquisitions=acquisitions,
        contended=contended,
        trylock_failed=failed,
        signals=signals,
        wait_s=wait_s,
        wait_max_s=max(figures[8]),
        hold_s=hold_s,
        hold_timed=timed,
        hold_max_s=max(figures[9]),
        holders=tuple(dict.fromkeys(tid for lock in locks for tid in lock.holders)),
        waiters=tuple(dict.fromkeys(tid for lock in locks for tid in lock.waiters)),
        rates=LockRates(*map(sum, zip(*map(_rates, moved), strict=True))) if moved else _NO_RATES,
    )
