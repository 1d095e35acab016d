"""Finds the lock that a user names."""

from __future__ import annotations

from collections.abc import Sequence

from locktop.collector.errors import LocktopError
from locktop.collector.model import Lock

_MAX_NAMED = 8


def lock_named(locks: Sequence[Lock], name: str) -> Lock:
    """Return the lock with this id, address (``0x...``) or name, or the only one whose name has it.

    Raises:
        LocktopError: no lock matches, or more than one.
    """
    fitting = _fitting(locks, name)
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        count_text = f"{len(fitting)} locks are called like {name!r}"
        raise LocktopError(f"{count_text}: {_list_text(fitting)}; an id or an address names one")
    contended = [lock for lock in locks if lock.contended and not lock.idle]
    there_are = f"contended locks: {_list_text(contended)}" if contended else "no lock is contended"
    raise LocktopError(f"there is no lock {name!r}; {there_are}")


def _fitting(locks: Sequence[Lock], name: str) -> list[Lock]:
    if name.isdecimal():
        return [lock for lock in locks if lock.id == int(name)]
    if name.lower().startswith("0x"):
        try:
            address = int(name, 16)
        except ValueError:
            return []
        return [lock for lock in locks if lock.address == address and not lock.destroyed]
    exact = [lock for lock in locks if lock.name == name]
    return exact or [lock for lock in locks if name in lock.name]


def _list_text(locks: Sequence[Lock]) -> str:
    named = ", ".join(f"{lock.name} (id {lock.id})" for lock in locks[:_MAX_NAMED])
    more = len(locks) - _MAX_NAMED
    return f"{named} and {more} more" if more > 0 else named
