"""An answer of the doctor: how much is visible in one respect, and how the user can change that."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from msgspec import Struct


class Sight(Enum):
    """How much is visible."""

    FULL = "ok"
    LIMITED = "limited"
    NONE = "no"


class Check(Struct, frozen=True):
    """The answer in one respect."""

    name: str  # a short word, such as "rights"
    sight: Sight
    fact: str
    remedy: str = ""  # what the user can do; "" if nothing is missing or nothing helps


class Diagnosis(Struct, frozen=True):
    """All checks of a process, or of the machine alone."""

    checks: tuple[Check, ...]
    pid: int | None = None
    comm: str = ""

    @property
    def sight(self) -> Sight:
        """The sight of the whole: NONE only if the process cannot be watched."""
        return worst(self.checks)


def worst(checks: Iterable[Check]) -> Sight:
    """Return NONE if the check ``watch`` has it, else LIMITED if any check is not full."""
    all_checks = tuple(checks)
    if any(check.name == WATCH and check.sight is Sight.NONE for check in all_checks):
        return Sight.NONE
    full = all(check.sight is Sight.FULL for check in all_checks)
    return Sight.FULL if full else Sight.LIMITED


#: The name of the check whether the process can be watched at all.
WATCH = "watch"


def full(name: str, fact: str) -> Check:
    """Return a check without anything missing."""
    return Check(name=name, sight=Sight.FULL, fact=fact)


def limited(name: str, fact: str, remedy: str = "") -> Check:
    """Return a check with something missing."""
    return Check(name=name, sight=Sight.LIMITED, fact=fact, remedy=remedy)


def none(name: str, fact: str, remedy: str = "") -> Check:
    """Return a check with everything missing."""
    return Check(name=name, sight=Sight.NONE, fact=fact, remedy=remedy)
