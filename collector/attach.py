"""Attaching to a running process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from locktop.collector.source import Source

if TYPE_CHECKING:
    from locktop.collector.analysis.idle_rules import Rules


def attach(pid: int, rules: Rules | None = None) -> Source:
    """Return the source for a process. ``rules`` tell its waits apart, without them those that come
    with locktop.

    Raises LocktopError when there is no such process, it is not ours, it was not preloaded (the
    message says how to), or its shared memory is missing or damaged.
    """
    from locktop.collector.preload import PreloadSource

    return PreloadSource(pid, rules)
