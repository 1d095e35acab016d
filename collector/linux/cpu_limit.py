"""Reads the limit of CPU time that the control groups of a process set."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

_PROC = Path("/proc")


def cpu_limit(pid: int, proc: Path = _PROC) -> float | None:
    """Return how many CPUs a process may use at most; None: no limit is known.

    Args:
        pid: the process.
        proc: where procfs is mounted.

    The least limit of the process's group and of the groups above it counts
    (Documentation/admin-guide/cgroup-v2.rst, cpu.max; scheduler/sched-bwc.rst, cpu.cfs_quota_us).
    """
    limits = []
    with contextlib.suppress(OSError, ValueError):
        groups = (proc / str(pid) / "cgroup").read_text()
        for directory in _directories(groups, (proc / "self/mountinfo").read_text()):
            limit = _limit(directory)
            if limit is not None:
                limits.append(limit)
    return min(limits, default=None)


def _directories(groups: str, mounts: str) -> Iterator[Path]:
    """Yield the directories of the groups of a process, from its own one to the root."""
    for line in groups.splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        mounted = _mount(mounts, is_unified=not controllers)
        if mounted is None:
            continue
        root, point = mounted
        # In a container the mounted part of the tree may begin at the group of the container.
        inner = path.removeprefix(root).strip("/") if root != "/" else path.strip("/")
        directory = point / inner
        while directory != point:
            yield directory
            directory = directory.parent
        yield point


def _mount(mounts: str, is_unified: bool) -> tuple[str, Path] | None:
    """Return the root and the mount point of the tree of CPU time (proc(5), mountinfo)."""
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        fields = before.split()
        is_cpu = kind == "cgroup" and "cpu" in options.split(",")
        if kind == "cgroup2" if is_unified else is_cpu:
            return fields[3], Path(fields[4])
    return None


def _limit(directory: Path) -> float | None:
    """Return the limit of one group, CPUs."""
    with contextlib.suppress(OSError):
        quota, period = (directory / "cpu.max").read_text().split()
        return None if quota == "max" else int(quota) / int(period)
    with contextlib.suppress(OSError):
        quota_us = int((directory / "cpu.cfs_quota_us").read_text())
        period_us = int((directory / "cpu.cfs_period_us").read_text())
        return None if quota_us < 0 else quota_us / period_us
    return None
