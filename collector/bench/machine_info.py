"""What the figures were measured on."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MachineInfo:
    """A machine and how busy it was."""

    processor: str
    cpus: int  # that this process may use
    system: str
    libc: str
    load: float  # runnable tasks, mean of the last minute


def this_machine() -> MachineInfo:
    """Return the machine that this runs on."""
    return MachineInfo(
        _processor(),
        len(os.sched_getaffinity(0)),
        f"Linux {platform.release()} {platform.machine()}",
        " ".join(platform.libc_ver()),
        os.getloadavg()[0],
    )


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            names = (line.partition(":")[2] for line in lines if line.startswith("model name"))
            return " ".join(next(names, "unknown processor").split())
    except OSError:
        return "unknown processor"
