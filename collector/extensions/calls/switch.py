"""Whether a process counts its function calls: a word of its control page."""

from __future__ import annotations

from locktop.collector.errors import LocktopError
from locktop.collector.linux import procfs
from locktop.collector.native import lib
from locktop.collector.sanitize import clean
from locktop.collector.shm.control import ControlPage, write_refusal
from locktop.collector.shm.segment import SharedMemory
from locktop.collector.sources.levels import opened_memory


def counts(control: int) -> bool:
    """Tell from lt_control.calls whether the hooks count function calls."""
    return bool(control & lib.LT_CALLS_ON)


def counts_calls(pid: int) -> bool:
    """Return whether a process counts its function calls. Raises LocktopError."""
    with opened_memory(pid) as (_, memory):
        return counts(memory.control().calls)


def calls_match(pid: int) -> str:
    """Return the value of LOCKTOP_CALLS_MATCH with which a process began, sanitized; "" if none."""
    try:
        return clean(procfs.environment(pid, "LOCKTOP_CALLS_MATCH") or "")
    except (LocktopError, OSError):
        return ""


def switch(pid: int, wanted: bool) -> str:
    """Let a process count its function calls, or not; return what it did before, as a line.

    Raises:
        LocktopError: the process cannot be changed.
    """
    with opened_memory(pid) as (target, memory):
        former, now = ("on" if counted else "off" for counted in (_set(memory, wanted), wanted))
        return f"{target}: function calls {former} -> {now}"


def _set(memory: SharedMemory, wanted: bool) -> bool:
    """Let the hooks count function calls, or not; return whether they did before."""
    try:
        page = ControlPage(memory)
    except OSError as error:
        raise LocktopError(f"cannot set the calls: {write_refusal(memory, error)}") from error
    try:
        before = page.read().calls
        if counts(before) is not wanted:
            page.put("calls", (((before >> 8) + 1) & 0xFFFFFF) << 8 | wanted)
    except OSError as error:
        raise LocktopError(f"cannot set the calls: {memory.path}: {error.strerror}") from error
    finally:
        page.close()
    return counts(before)
