"""Cores of running programs: by gcore, which the program survives, and by the kernel."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

from support import requirements
from support.targets import PATIENCE_S, Target

_PATTERN = Path("/proc/sys/kernel/core_pattern")


def core_of(pid: int, directory: Path) -> Path:
    """Return a core that gcore makes of a running process. The process goes on."""
    gcore = requirements.command("gcore", "gdb")
    prefix = directory / "core"
    command = [str(gcore), "-o", str(prefix), str(pid)]
    subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE_S)
    return Path(f"{prefix}.{pid}")


def kernel_writes_cores() -> bool:
    """Return whether the kernel writes a core into the directory of the program."""
    pattern = _PATTERN.read_text().strip()
    return bool(pattern) and pattern[0] not in "|/"


def kernel_core_of(target: Target, directory: Path) -> Path:
    """Return the core that the kernel writes when a program aborts.

    Args:
        target: started in ``directory``, with a limit that allows cores.
        directory: where the core will be, alone.
    """
    target.process.send_signal(signal.SIGABRT)
    target.process.wait(PATIENCE_S)
    (core,) = directory.glob("core*")
    return core
