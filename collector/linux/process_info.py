"""Reads the figures of a process as a whole: command line, CPU share, memory."""

from __future__ import annotations

import contextlib
import os
import time
from datetime import UTC, datetime

import psutil

from locktop.collector.linux import procfs
from locktop.collector.linux.target import Target
from locktop.collector.model import Process


def iso(timestamp: float) -> str:
    """Return a time since the epoch as ISO 8601, UTC, milliseconds."""
    moment = datetime.fromtimestamp(timestamp, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class ProcessFigures:
    """The figures of one process, scan after scan."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._process: psutil.Process | None = None
        self._started_at = ""
        self.counted_since = ""  # of the program that runs now, see Process
        self._cmdline: tuple[str, ...] = ()
        self._exe = ""
        self._cpu: tuple[float, float] | None = (
            None  # (time of the last scan, CPU seconds until then)
        )
        with contextlib.suppress(psutil.Error):
            self._process = psutil.Process(target.pid)
            self._started_at = iso(self._process.create_time())
        self.identify()

    def identify(self) -> None:
        """Read the command line and the program's path. Both change only at an exec."""
        with contextlib.suppress(OSError):
            self._cmdline = procfs.cmdline(self._target.pid)
        with contextlib.suppress(OSError):  # not by psutil, which keeps its first answer
            self._exe = procfs.exe(self._target.pid)

    def scan(self, comm: str) -> Process:
        """Return the present figures. ``comm``: the name of the process."""
        cpu_share, rss = 0.0, 0
        if self._process is not None:
            with contextlib.suppress(psutil.Error), self._process.oneshot():
                times = self._process.cpu_times()
                cpu_share = self._share(time.monotonic(), times.user + times.system)
        with contextlib.suppress(OSError):  # not by psutil: the first thread may have ended
            rss = procfs.resident_bytes(self._target.pid)
        return Process(
            pid=self._target.pid,
            comm=comm,
            cmdline=self._cmdline,
            exe=self._exe,
            started_at=self._started_at,
            counted_since=self.counted_since,
            cpu_share=cpu_share,
            rss_bytes=rss,
            cpus=self._cpus(),
        )

    def _cpus(self) -> int:
        try:
            return len(os.sched_getaffinity(self._target.pid))
        except OSError:
            return 0

    def _share(self, now: float, used_s: float) -> float:
        before, self._cpu = self._cpu, (now, used_s)
        if before is None or now <= before[0]:
            return 0.0
        return max(0.0, (used_s - before[1]) / (now - before[0]))
