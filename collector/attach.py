"""Attaching to a running process."""

from __future__ import annotations

from locktop.collector.source import Source


def attach(pid: int) -> Source:
    """Return the source for a process.

    Raises LocktopError when there is no such process, it is not ours, it was not preloaded (the
    message says how to), or its shared memory is missing or damaged.
    """
    from locktop.collector.preload import PreloadSource

    return PreloadSource(pid)
