"""Comparison of runs of a self-checking target with the library and without the library."""

from __future__ import annotations

from typing import Protocol

from support import tool
from support.targets import StartTarget

LEVELS = ("dormant", "contended", "all")


class CompareWithUnprepared(Protocol):
    """Runs the target ``name`` with ``arguments``, without the library and with it."""

    def __call__(
        self, name: str, *arguments: str, levels: tuple[str, ...] = LEVELS, scan: bool = False
    ) -> None: ...


def comparison_with(
    start_unprepared: StartTarget, start_target: StartTarget
) -> CompareWithUnprepared:
    """Return the check.

    With ``scan`` a snapshot at the end must show no lock that is held or waited for.
    """

    def check(
        name: str, *arguments: str, levels: tuple[str, ...] = LEVELS, scan: bool = False
    ) -> None:
        assert start_unprepared(name, *arguments).finish() == (0, ["ok"]), "without the library"
        for level in levels:
            target = start_target(name, *arguments, level=level)
            if scan and level == "contended":
                target.expect("ok")
                for lock in tool.snapshot(target.pid)["locks"]:
                    assert (lock["holders"], lock["waiters"]) == ([], []), (level, lock)
                assert target.finish() == (0, []), level
            else:
                assert target.finish() == (0, ["ok"]), level

    return check
