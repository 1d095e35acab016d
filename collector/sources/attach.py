"""Attaching to a running process."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, BinaryIO

from locktop.collector.sources.base import Source

if TYPE_CHECKING:
    from locktop.collector.analysis.idle.rules import Rules

__all__ = ["Source", "attach", "begins_as_core", "open_core"]

#: Seconds: a process younger than the first may still load the library; the pause between tries.
_YOUNG_S, _AGAIN_S = 0.5, 0.02
#: How compressed files begin: zstd, xz, lz4. To unpack their first bytes takes an import.
_COMPRESSED = (b"\x28\xb5\x2f\xfd", b"\xfd7zX", b"\x04\x22\x4d\x18")


def attach(
    pid: int,
    rules: Rules | None = None,
    *,
    only_exact: bool = False,
    stop_threads: bool = False,
    of_classes: bool = False,
) -> Source:
    """Return the source for a process.

    A process with the library is watched exactly. Any other process is sampled.

    Args:
        pid: the process.
        rules: classify its waits; None: the rules that come with locktop.
        only_exact: fail for a process without the library.
        stop_threads: stop a thread for a moment, if its call stack cannot be known otherwise.
        of_classes: report potential deadlocks of lock classes too.

    Raises:
        LocktopError: there is no such process, locktop may not see the process, or its shared
            memory is damaged.
    """
    from locktop.collector.sources.discover import NotPreloadedError
    from locktop.collector.sources.preload.source import PreloadSource

    until = time.monotonic() + _YOUNG_S
    while True:
        try:
            return PreloadSource(pid, rules, stop_threads, of_classes)
        except NotPreloadedError as error:
            if only_exact:
                raise
            why = error.why
            if not (error.is_young and time.monotonic() < until):
                break
            time.sleep(_AGAIN_S)
    from locktop.collector.sources.sampling.source import SamplingSource

    return SamplingSource(pid, rules, why, stop_threads)


def begins_as_core(file: BinaryIO) -> bool:
    """Return whether a file begins as a core does, perhaps a compressed one."""
    head = file.read(4)
    if head == b"\x7fELF":
        return True
    if head not in _COMPRESSED:
        return False
    from locktop.collector.sources.core import compressed_core

    file.seek(0)
    return compressed_core.begins_as_core(file)


def open_core(path: str, rules: Rules | None = None) -> Source:
    """Return the source for a core dump.

    Args:
        path: of the core.
        rules: see attach().

    Raises:
        LocktopError: the file is no core that locktop understands.
    """
    from locktop.collector.sources.core.source import CoreSource

    return CoreSource(path, rules)
