"""Checks of one process. They scan the process once, as the screen would."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing

from locktop.collector.errors import LocktopError
from locktop.collector.linux.target import Target, find_process
from locktop.collector.model import Snapshot
from locktop.collector.model.diagnosis import WATCH, Check, Diagnosis, full, limited, none
from locktop.collector.sources import discover
from locktop.collector.sources.attach import attach
from locktop.collector.sources.doctor.machine_checks import machine_checks
from locktop.collector.sources.doctor.module_checks import module_checks
from locktop.collector.symbols.elf.file import ElfFile
from locktop.collector.symbols.mapped_file import NotMapped, open_mapped
from locktop.collector.symbols.memory_map import Mapping
from locktop.collector.symbols.python.version import modules_of, version_in_name, version_of
from locktop.collector.symbols.unwind.arch import architecture
from locktop.collector.symbols.unwind.perf_sample import RefusedError
from locktop.collector.symbols.unwind.perf_stream import open_stream, sampled_registers

_PERIOD_NS = 1_000_000_000
_OLDEST_PYTHON = (3, 8)
#: From here on threading.Lock is a PyMutex (github.com/python/cpython/pull/125116).
_FIRST_WITH_PYMUTEX = (3, 13, 1)


def diagnose(pid: int | None) -> Diagnosis:
    """Return the checks of a process and the machine; ``pid`` None: of the machine alone.

    Raises:
        LocktopError: there is no such process.
    """
    machine = tuple(machine_checks())
    if pid is None:
        return Diagnosis(machine)
    target = find_process(pid)
    checks = (*_process_checks(target), *machine)
    return Diagnosis(checks=checks, pid=pid, comm=target.comm)


def _process_checks(target: Target) -> Iterator[Check]:
    try:
        with closing(attach(target.pid)) as source:
            snapshot = source.scan(resolve=True)
    except LocktopError as error:
        yield none(WATCH, str(error))
        return
    yield _watch(target, snapshot)
    yield from _level(target, snapshot)
    # The note of a sampled process repeats the first check.
    notes = snapshot.notes[1:] if snapshot.is_sampled else snapshot.notes
    yield from (limited("note", note) for note in notes)
    yield _samples(target)
    try:
        yield from module_checks(target.pid)
        yield from _python_check(target.pid)
    except OSError as error:
        yield limited("program", f"its files are not visible: {os.strerror(error.errno or 0)}")


def _watch(target: Target, snapshot: Snapshot) -> Check:
    process = f"process {target}"
    if not snapshot.is_sampled:
        return full(WATCH, f"{process} runs with the library: counts and waits are exact")
    text = f"{process} is only sampled: waits are estimates, counts and hold times are missing"
    return limited(WATCH, text, discover.why_no_memory(target))


#: The records of the levels that miss nothing.
_RECORDS = {
    "contended": "each wait is recorded, with its stack",
    "blocks": "each wait is recorded, and each hold that a thread waited for",
    "all": "each wait and each hold is recorded",
}


def _level(target: Target, snapshot: Snapshot) -> Iterator[Check]:
    if snapshot.is_sampled:
        return
    text = f"the level is {snapshot.level}"
    if snapshot.level in ("dormant", "counting"):
        missing = "nothing is counted" if snapshot.level == "dormant" else "no stacks, no records"
        remedy = f"locktop ctl -p {target.pid} --level contended"
        yield limited("level", f"{text}: {missing}", remedy)
    else:
        records = _RECORDS.get(snapshot.level)
        yield full("level", f"{text}: {records}" if records else text)
    if snapshot.lost_events:
        yield limited(
            "records",
            f"{snapshot.lost_events:,} records were overwritten before locktop read them",
            "start the program with a larger LOCKTOP_RING (docs/environment.md)",
        )


def _samples(target: Target) -> Check:
    """Whether the threads of the process can be sampled while they run."""
    processor = architecture()
    try:
        registers = sampled_registers(processor) if processor is not None else 0
        fd = open_stream(target.pid, _PERIOD_NS, registers)
    except RefusedError as error:
        return limited(
            "running threads",
            f"the line that a running holder executes is unknown: {error}",
            "run locktop as root, or as the user of the process",
        )
    if fd >= 0:
        os.close(fd)
    return full("running threads", "the lines that running threads execute can be sampled")


def _python_check(pid: int) -> Iterator[Check]:
    """Yield how much of the Python code in a process is visible, if it has an interpreter."""
    for mapping in modules_of(pid):
        version = _python_version(pid, mapping)
        if version is not None:
            yield _python_sight(version)
            return


def _python_version(pid: int, mapping: Mapping) -> tuple[int, ...] | None:
    try:
        return version_of(ElfFile(open_mapped(pid, mapping)), mapping.path)
    except (NotMapped, OSError, ValueError):
        return version_in_name(mapping.path)


def _python_sight(version: tuple[int, ...]) -> Check:
    name = f"CPython {'.'.join(map(str, version))}"
    if version < _OLDEST_PYTHON:
        return limited("python", f"{name} is too old: Python functions are not shown")
    if version >= _FIRST_WITH_PYMUTEX:
        return limited(
            "python",
            f"{name}: Python functions are shown; who holds a threading.Lock is not certain",
            "docs/runtimes.md says how waits for it are judged",
        )
    return full("python", f"{name}: Python functions are shown")
