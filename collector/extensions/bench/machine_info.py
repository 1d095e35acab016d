"""Describes the machine on which the bench runs."""

from __future__ import annotations

import os
import platform

from msgspec import Struct


class MachineInfo(Struct, frozen=True):
    """A machine and its load."""

    processor: str
    cpus: int  # CPUs that this process may use
    system: str
    libc: str
    load: float  # runnable tasks, mean of the last minute


def this_machine() -> MachineInfo:
    """Return the facts about this machine."""
    return MachineInfo(
        processor=_processor(),
        cpus=len(os.sched_getaffinity(0)),
        system=f"Linux {platform.release()} {platform.machine()}",
        libc=" ".join(platform.libc_ver()),
        load=os.getloadavg()[0],
    )


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            names = (line.partition(":")[2] for line in lines if line.startswith("model name"))
            return " ".join(next(names, "unknown processor").split())
    except OSError:
        return "unknown processor"
