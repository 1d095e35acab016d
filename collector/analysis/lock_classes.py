"""Lock classes: locks of one kind and one name, such as the locks in the cells of an array.

The locks of Python's interpreter are one class of mutexes, whatever their kinds. A Python
programmer cannot tell the mutex of the GIL from its condition variables.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from operator import attrgetter

from locktop.collector.model import (
    Blame,
    Kind,
    LazyBlame,
    Lock,
    LockClass,
    PythonShare,
    WaitStack,
)

_Key = tuple[Kind, str]

_INDEX = re.compile(r"\[\d+\]")
#: The name of a lock without a name of its own: its kind or type, and its address.
_ADDRESS = re.compile(r"[^\[\]]+ 0x[0-9a-f]+")
#: The beginning of a name that is made from a source location.
_LOCATION = re.compile(r"[\w: +']+ (made )?in ")
_OTHERS = "other locks"
#: A lock in the data of the interpreter: "pylifecycle.c: _PyRuntime.ceval.gil.mutex".
_PYTHON_RUNTIME = re.compile(r"(?:\S+: )?_PyRuntime\b")
_RUNTIME_KEY = Kind.MUTEX, "Python runtime"
_name, _kind = attrgetter("name"), attrgetter("kind")


def find(locks: Sequence[Lock]) -> tuple[LockClass, ...]:
    """Return the classes among ``locks``, in the order of their first locks."""
    # Each scan does this, and most locks may be in no class.
    keys = list(map(_key, map(_name, locks), map(_kind, locks)))
    counts = Counter(keys)
    members: dict[_Key, list[Lock]] = {}
    if len(counts) < len(keys):
        for lock, key in zip(locks, keys, strict=True):
            if key is not None and counts[key] > 1:
                members.setdefault(key, []).append(lock)
    return tuple(
        LockClass(
            name=name, kind=kind, locks=tuple([lock.id for lock in alike]), members=tuple(alike)
        )
        for (kind, name), alike in members.items()
    )


def classes_by_lock(classes: Iterable[LockClass]) -> dict[int, LockClass]:
    """Return the classes by the ids of their locks."""
    return {lock: lock_class for lock_class in classes for lock in lock_class.locks}


def single_name(lock: Lock, lock_class: LockClass | None) -> str:
    """Return the name of a lock, with its address if its class has other locks of that name."""
    return (
        f"{lock.name} at {lock.address:#x}"
        if lock_class and lock.name == lock_class.name
        else lock.name
    )


def is_unnamed(lock: Lock) -> bool:
    """Return whether the address is the only name of a lock."""
    return _key(lock.name, lock.kind) is None


def class_name(lock: Lock) -> str | None:
    """Return the name that locks of its class have in every run; None without such a name."""
    key = _key(lock.name, lock.kind)
    return None if key is None else key[1]


def name_in_class(lock: Lock, lock_class: LockClass) -> str:
    """Return the name of a lock within its class: its own name, or its address."""
    return f"at {lock.address:#x}" if lock.name == lock_class.name else lock.name


def wait_stacks(locks: Iterable[Lock]) -> tuple[WaitStack, ...]:
    """Return the sums of the wait stacks of ``locks``, the longest wait first."""
    sums: dict[tuple[int, bool], tuple[int, float]] = {}
    python: dict[tuple[int, bool], list[PythonShare]] = {}
    for lock in locks:
        for entry in lock.wait_stacks:
            key = entry.stack, entry.idle
            count, wait_s = sums.get(key, (0, 0.0))
            sums[key] = (count + entry.count, wait_s + entry.wait_s)
            if entry.python:
                python.setdefault(key, []).extend(entry.python)
    entries = [
        WaitStack(
            stack=key[0],
            count=count,
            wait_s=wait_s,
            idle=key[1],
            python=_sum_samples(python.get(key, ())),
        )
        for key, (count, wait_s) in sums.items()
    ]
    return tuple(sorted(entries, key=lambda entry: (-entry.wait_s, -entry.count, entry.stack)))


def _sum_samples(shares: Iterable[PythonShare]) -> tuple[PythonShare, ...]:
    sums: dict[int, PythonShare] = {}
    for share in shares:
        former = sums.get(share.stack, PythonShare(stack=share.stack, samples=0, waits=0))
        samples, waits = former.samples + share.samples, former.waits + share.waits
        sums[share.stack] = PythonShare(stack=share.stack, samples=samples, waits=waits)
    return tuple(sorted(sums.values(), key=lambda share: (-share.samples, share.stack)))


def blame(locks: Iterable[Lock]) -> Sequence[Blame]:
    """Return the sums of the blame of ``locks``, the longest wait first."""
    blamed = [lock.blame for lock in locks if lock.blame]
    lazy = [charges for charges in blamed if isinstance(charges, LazyBlame)]
    if blamed and len(lazy) == len(blamed):
        return lazy[0].sum_with(lazy[1:])
    return _sum_blame(blamed)


def _sum_blame(blamed: Iterable[Sequence[Blame]]) -> tuple[Blame, ...]:
    sums: dict[tuple[int, int, int], float] = {}
    for blame_of_lock in blamed:
        for charge in blame_of_lock:
            sums[charge.holder] = sums.get(charge.holder, 0.0) + charge.wait_s
    charges = [
        Blame(tid=tid, site=site, wait_s=wait_s, through=through)
        for (tid, site, through), wait_s in sums.items()
    ]
    return tuple(sorted(charges, key=lambda charge: (-charge.wait_s, charge.holder)))


@lru_cache(1 << 17)
def _key(name: str, kind: Kind) -> _Key | None:
    if name == _OTHERS or _ADDRESS.fullmatch(name):
        return None
    if _PYTHON_RUNTIME.match(name):
        return _RUNTIME_KEY
    # Brackets in the name of a function are not indexes.
    if "[" not in name or _LOCATION.match(name):
        return kind, name
    # Brackets in the arguments of a template are not indexes.
    arguments = name.rfind(">") + 1
    return kind, name[:arguments] + _INDEX.sub("[]", name[arguments:])
