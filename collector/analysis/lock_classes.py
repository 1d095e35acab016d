"""Locks of one kind and one name as one class: those made at one place, the cells of an array."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter

from locktop.collector.model import Blame, Kind, Lock, LockRates, WaitStack

_Key = tuple[Kind, str]

_INDEX = re.compile(r"\[\d+\]")
#: What a lock without a name is called: by its kind or its type.
_ADDRESS = re.compile(r"[^\[\]]+ 0x[0-9a-f]+")
#: How a name that is made of a place in the code begins.
_PLACE = re.compile(r"[\w: +']+ (made )?in ")
_OTHERS = "other locks"
_name, _kind = attrgetter("name"), attrgetter("kind")


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
    unheard: int
    wait_s: float
    wait_max_s: float  # the longest there was at any of them
    hold_s: float
    hold_timed: int
    hold_max_s: float
    holders: tuple[int, ...]  # tids, each once
    waiters: tuple[int, ...]  # tids, those at the first lock first
    rates: LockRates
    idle: bool  # all of them are
    idle_s: float


def find(locks: Sequence[Lock]) -> tuple[LockClass, ...]:
    """Return the classes among ``locks``, in the order of their first locks."""
    # Done in every look, and most locks may be in no class.
    keys = list(map(_key, map(_name, locks), map(_kind, locks)))
    counts = Counter(keys)
    found: dict[_Key, list[Lock]] = {}
    if len(counts) < len(keys):
        for lock, key in zip(locks, keys, strict=True):
            if key is not None and counts[key] > 1:
                found.setdefault(key, []).append(lock)
    return tuple(_class(name, kind, alike) for (kind, name), alike in found.items())


def by_lock(classes: Iterable[LockClass]) -> dict[int, LockClass]:
    """Return the class of each lock that is in one, by the lock's id."""
    return {lock: found for found in classes for lock in found.locks}


def single_name(lock: Lock, of: LockClass | None) -> str:
    """Return the lock's name; with its address if the others of its class have the same."""
    return f"{lock.name} at {lock.address:#x}" if of and lock.name == of.name else lock.name


def is_unnamed(lock: Lock) -> bool:
    """Return whether the lock is called by its address."""
    return _key(lock.name, lock.kind) is None


def within(lock: Lock, of: LockClass) -> str:
    """Return what tells the lock from the others of its class: its name, or its address."""
    return f"at {lock.address:#x}" if lock.name == of.name else lock.name


def wait_stacks(locks: Iterable[Lock]) -> tuple[WaitStack, ...]:
    """Return where all the waits for ``locks`` came from, most wait first."""
    sums: dict[tuple[int, bool], tuple[int, float]] = {}
    for lock in locks:
        for one in lock.wait_stacks:
            count, wait_s = sums.get((one.stack, one.idle), (0, 0.0))
            sums[one.stack, one.idle] = (count + one.count, wait_s + one.wait_s)
    found = [WaitStack(stack, *summed, idle) for (stack, idle), summed in sums.items()]
    return tuple(sorted(found, key=lambda one: (-one.wait_s, -one.count, one.stack)))


def blame(locks: Iterable[Lock]) -> tuple[Blame, ...]:
    """Return because of whom ``locks`` were waited for, most wait first."""
    sums: dict[tuple[int, int, int], float] = {}
    for lock in locks:
        for one in lock.blame:
            sums[one.holder] = sums.get(one.holder, 0.0) + one.wait_s
    found = [Blame(tid, site, wait_s, through) for (tid, site, through), wait_s in sums.items()]
    return tuple(sorted(found, key=lambda one: (-one.wait_s, one.holder)))


@lru_cache(1 << 17)
def _key(name: str, kind: Kind) -> _Key | None:
    if name == _OTHERS or _ADDRESS.fullmatch(name):
        return None
    # Brackets in the name of a function are no indexes.
    if "[" not in name or _PLACE.match(name):
        return kind, name
    # Nor are those in the arguments of a template.
    arguments = name.rfind(">") + 1
    return kind, name[:arguments] + _INDEX.sub("[]", name[arguments:])


def _class(name: str, kind: Kind, locks: Sequence[Lock]) -> LockClass:
    # One pass over plain variables: with a few locks in each of many classes the quickest.
    destroyed = acquisitions = contended = trylock_failed = signals = unheard = hold_timed = 0
    wait_s = wait_max_s = hold_s = hold_max_s = idle_s = 0.0
    idle = True
    acquisition_rate = contended_rate = wait_rate = hold_rate = signal_rate = 0.0
    holders: list[int] = []
    waiters: list[int] = []
    for lock in locks:
        destroyed += lock.destroyed
        acquisitions += lock.acquisitions
        contended += lock.contended
        trylock_failed += lock.trylock_failed
        signals += lock.signals
        unheard += lock.unheard
        hold_timed += lock.hold_timed
        wait_s += lock.wait_s
        idle_s += lock.idle_s
        idle = idle and lock.idle
        hold_s += lock.hold_s
        wait_max_s = max(wait_max_s, lock.wait_max_s)
        hold_max_s = max(hold_max_s, lock.hold_max_s)
        holders += lock.holders
        waiters += lock.waiters
        rates = lock.rates
        acquisition_rate += rates.acquisitions
        contended_rate += rates.contended
        wait_rate += rates.wait
        hold_rate += rates.hold
        signal_rate += rates.signals
    return LockClass(
        name=name,
        kind=kind,
        locks=tuple([lock.id for lock in locks]),
        destroyed=destroyed,
        acquisitions=acquisitions,
        contended=contended,
        trylock_failed=trylock_failed,
        signals=signals,
        unheard=unheard,
        wait_s=wait_s,
        wait_max_s=wait_max_s,
        hold_s=hold_s,
        hold_timed=hold_timed,
        hold_max_s=hold_max_s,
        holders=tuple(dict.fromkeys(holders)),
        waiters=tuple(dict.fromkeys(waiters)),
        rates=LockRates(acquisition_rate, contended_rate, wait_rate, hold_rate, signal_rate),
        idle=idle,
        idle_s=idle_s,
    )
