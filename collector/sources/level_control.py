"""Reads and sets the recording level of a process with the preloaded library."""

from __future__ import annotations

from typing import NamedTuple

from locktop.collector.linux.target import find_process
from locktop.collector.shm import control
from locktop.collector.sources import discover


class Level(NamedTuple):
    """The level of a process; ``before`` is the level that the process had."""

    process: str
    before: str
    now: str


def read_or_set(pid: int, level: str | None = None) -> Level:
    """Return the level of a process, and set it first if ``level`` is given.

    Raises:
        LocktopError: There is no such process, it has no library, or the level cannot be set.
    """
    target = find_process(pid)
    memory = discover.open_memory(target)
    try:
        if level is None:
            now = control.level_name(memory.control())
            return Level(str(target), now, now)
        return Level(str(target), control.set_level(memory, level), level)
    finally:
        memory.close()
