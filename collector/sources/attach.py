"""Attaching to a running process."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from locktop.collector.sources.base import Source

if TYPE_CHECKING:
    from locktop.collector.analysis.idle.rules import Rules

__all__ = ["Source", "attach"]

#: A process that has just begun may not have come to load the library yet.
_YOUNG_S, _AGAIN_S = 0.5, 0.02


def attach(
    pid: int, rules: Rules | None = None, *, only_exact: bool = False, stop_threads: bool = False
) -> Source:
    """Return the source for a process. ``rules`` tell its waits apart, without them those that come
    with locktop.

    A process that runs with the library is watched exactly, any other one is sampled from outside,
    but for where ``only_exact`` asks for the library. With ``stop_threads`` a thread is stopped for
    a moment where its call stack cannot be known otherwise.
    Raises LocktopError when there is no such process, it may not be looked at, or its shared memory
    is damaged.
    """
    from locktop.collector.sources.discover import NotPreloadedError
    from locktop.collector.sources.preload.source import PreloadSource

    until = time.monotonic() + _YOUNG_S
    while True:
        try:
            return PreloadSource(pid, rules, stop_threads)
        except NotPreloadedError as error:
            if only_exact:
                raise
            why = error.why
            if not (error.is_young and time.monotonic() < until):
                break
            time.sleep(_AGAIN_S)
    from locktop.collector.sources.sampling.source import SamplingSource

    return SamplingSource(pid, rules, why, stop_threads)
