"""Checks of the machine and the user, for any process."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator

from locktop.collector.errors import LocktopError
from locktop.collector.linux import procfs, ptrace_access
from locktop.collector.linux.target import check_proc
from locktop.collector.model.diagnosis import Check, full, limited, none
from locktop.collector.sources.launch import library
from locktop.collector.symbols.unwind.arch import architecture
from locktop.collector.symbols.unwind.perf_sample import RefusedError
from locktop.collector.symbols.unwind.perf_stream import open_stream, sampled_registers

_SHM = "/dev/shm"
#: The memory that a program of some hundred threads and locks takes.
_ENOUGH_BYTES = 64 << 20
#: Nanoseconds between samples: the stream is closed before the first one.
_PERIOD_NS = 1_000_000_000


def machine_checks() -> Iterator[Check]:
    """Yield the checks of this machine."""
    yield _library()
    yield _proc()
    yield _ptrace()
    yield _samples()
    yield _shared_memory()
    yield _stacks()


def _library() -> Check:
    try:
        path = library()
    except LocktopError as error:
        return limited("library file", f"{error}", "install locktop anew")
    return full("library file", f"{path}")


def _proc() -> Check:
    try:
        check_proc()
    except LocktopError as error:
        return none("proc", str(error))
    if procfs.hides_others():
        return limited(
            "proc",
            "/proc hides the processes of other users (hidepid)",
            "for these, run locktop as root",
        )
    return full("proc", "/proc shows the processes of all users")


def _ptrace() -> Check:
    scope = ptrace_access.yama_scope()
    if not scope:
        return full("tracing", "a user may trace his own processes")
    if os.geteuid() == 0 and scope < 3:
        return full("tracing", f"root may trace (kernel.yama.ptrace_scope is {scope})")
    return limited(
        "tracing",
        f"kernel.yama.ptrace_scope is {scope}: processes without the library stay unseen, and"
        " holders' activities are missing",
        "run locktop as root" if scope < 3 else "",
    )


def _samples() -> Check:
    """Whether threads can be sampled while they run: tried with a CPU and with ourselves."""
    processor = architecture()
    if processor is None:
        return limited("samples", f"running threads are not sampled on {platform.machine()}")
    registers = sampled_registers(processor)
    try:
        os.close(open_stream(-1, _PERIOD_NS, registers, cpu=min(os.sched_getaffinity(0))))
    except RefusedError:
        pass
    else:
        return full("samples", "running threads are sampled by events of the CPUs")
    try:
        fd = open_stream(os.getpid(), _PERIOD_NS, registers)
    except RefusedError as error:
        return limited(
            "samples",
            f"running threads are not sampled: {error}",
            "run locktop as root, or set kernel.perf_event_paranoid to 2; a container needs"
            " perf_event_open in its filter of system calls",
        )
    os.close(fd)
    return limited(
        "samples",
        "each thread is sampled by an event of its own, which slows down short holds",
        "run locktop as root, or with CAP_PERFMON",
    )


def _shared_memory() -> Check:
    directory = os.environ.get("LOCKTOP_DIR") or _SHM
    try:
        about = os.statvfs(directory)
    except OSError as error:
        return limited(
            "shared memory",
            f"{directory}: {os.strerror(error.errno or 0).lower()}",
            "set LOCKTOP_DIR to a directory that the program may write to",
        )
    free = about.f_bavail * about.f_frsize
    text = f"{directory} has {free >> 20} MB left"
    if free < _ENOUGH_BYTES:
        return limited("shared memory", text, "make room there, or set LOCKTOP_DIR")
    return full("shared memory", text)


def _stacks() -> Check:
    machine = platform.machine()
    if architecture() is None:
        return limited("stacks", f"stacks of sleeping threads cannot be followed on {machine}")
    return full("stacks", f"stacks can be followed on {machine}")
