"""The figures of one run of a program: each hold is recorded, from the start to the end."""

from __future__ import annotations

import re
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from msgspec import Struct

from locktop.collector.analysis import lock_classes
from locktop.collector.analysis.blame_chains import BlameChains
from locktop.collector.errors import LocktopError
from locktop.collector.extensions.gate import hold_median
from locktop.collector.extensions.gate.model import GateSide, Quantity
from locktop.collector.model import Kind, Snapshot
from locktop.collector.model.kinds import HELD_KINDS
from locktop.collector.shm import event_ring, slot_batch
from locktop.collector.shm.ring_drain import RingDrain
from locktop.collector.shm.slot_batch import SlotBatch
from locktop.collector.sources import launch
from locktop.collector.sources.base import Source
from locktop.collector.sources.launched_program import EndedEarlyError, LaunchedProgram

#: Records that each thread keeps until they are copied; a ring takes 1 MB.
_RING = "16384"
#: Seconds of one batch, and the longest pause between two copies of the rings.
_BATCH_S, _PAUSE_S = 0.02, 0.005
#: Records that are kept of a run, about. More would add seconds to each run, and no accuracy.
_MAX_RECORDS = 100_000
#: The most calls that empty the rings at the end.
_LAST_CALLS = 1000
#: Seconds between two checks for the end, and between two scans, which learn of new libraries.
_POLL_S, _SCAN_EVERY_S = 0.01, 0.5
#: The line in a name that is made from a source location. Another build has other lines.
_LINE = re.compile(r":\d+\)$")

#: A lock class: the kind and the name.
ClassKey = tuple[Kind, str]


class ClassFigures(Struct, frozen=True):
    """One lock class in one run."""

    values: Mapping[Quantity, float] = {}  # seconds, above 0; without a hold or a wait no entry
    wait_s: float = 0.0  # of all threads
    blame_s: float = 0.0  # wait time that its holders caused, at the ends of the blame chains


class ProgramRun(Struct, frozen=True):
    """All lock classes in one run."""

    classes: Mapping[ClassKey, ClassFigures]
    records: int = 0
    lost: int = 0  # records that were overwritten before they could be copied
    nameless: int = 0  # locks with holds that only have an address


def check(side: GateSide) -> str:
    """Return the path of the program. Raises LocktopError if it cannot run with the library."""
    return launch.check_program(list(side.command))


def measure(side: GateSide, output: Path) -> ProgramRun:
    """Run a program to its end, and return its figures.

    Args:
        side: the program.
        output: a new file for its output.

    Raises:
        EndedEarlyError: the program ends before locktop can attach.
        LocktopError: the program cannot start or fails, or its shared memory cannot be read.
    """
    environment = {"LOCKTOP_RING": _RING} | dict(
        variable.split("=", 1) for variable in side.environment
    )
    program = check(side)
    with LaunchedProgram(
        program, list(side.command), "all", str(output), environment=environment
    ) as started:
        with closing(started.source()) as source:
            figures = _follow(source, started)
        if started.status:
            raise LocktopError(started.ending())
    return figures


def _follow(source: Source, started: LaunchedProgram) -> ProgramRun:
    drain = source.drain()
    assert drain is not None  # the process runs with the library
    with closing(HoldRecords(drain)) as records:
        # Each scan may turn out to be the last one, which needs all names.
        if source.scan(resolve=True).ended and started.has_ended():
            raise EndedEarlyError(started.ending("before the first scan"))
        scan_at = time.monotonic() + _SCAN_EVERY_S
        while not started.has_ended():
            if time.monotonic() >= scan_at:
                source.scan(resolve=True)
                scan_at = time.monotonic() + _SCAN_EVERY_S
            time.sleep(_POLL_S)
    return summarise(source.scan(resolve=True), records)


class HoldRecords:
    """The records of one process, as a thread of its own copies them until ``close()``."""

    def __init__(self, drain: RingDrain, max_records: int = _MAX_RECORDS) -> None:
        """Args:
        drain: is closed with this object.
        max_records: about so many records are kept, or all up to the double.
        """
        self._drain = drain
        self._max_records = max_records
        self._batches: list[SlotBatch] = []
        self._kept = self._batch_count = 0
        self._step = 1  # each batch whose number this divides is kept
        self._is_stopped = False
        self._fault: LocktopError | None = None
        self.arrived = self.lost = 0  # records
        self._thread = threading.Thread(target=self._run, name="lock records", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Take the records that are left, and end."""
        self._is_stopped = True
        while self._thread.is_alive():
            self._drain.hurry()
            self._thread.join(_POLL_S)
        self._drain.close()

    def count(self) -> tuple[Counter[tuple[int, int]], float]:
        """Return how often each lock was held for how long, by id and ticks; and ticks a second.

        Raises:
            LocktopError: the shared memory is damaged.
        """
        if self._fault is not None:
            raise self._fault
        counts = Counter[tuple[int, int]]()
        for batch in self._batches:
            counts.update(event_ring.count_holds(slot_batch.slots(batch)))
        # The clock is calibrated again at each copy.
        return counts, self._batches[-1].hz if self._batches else 1.0

    def _run(self) -> None:
        try:
            while not self._is_stopped:
                self._add(self._drain.take(_BATCH_S, _PAUSE_S).slots)
            for _ in range(_LAST_CALLS):
                self._add(self._drain.take(0.0).slots)
                if not self._drain.has_more:
                    break
        except LocktopError as error:
            self._fault = error

    def _add(self, batch: SlotBatch) -> None:
        self.lost += batch.lost
        if not batch.packed:
            return
        if self._batch_count % self._step == 0:
            self._batches.append(batch)
            self._kept += batch.packed
        self._batch_count += 1
        self.arrived += batch.packed
        while self._kept > 2 * self._max_records and len(self._batches) > 1:
            self._batches = self._batches[::2]
            self._kept = sum(kept.packed for kept in self._batches)
            self._step *= 2


def summarise(snapshot: Snapshot, records: HoldRecords) -> ProgramRun:
    """Return the figures of a run.

    Args:
        snapshot: the last one, with all names.
        records: those of the whole run, closed.
    """
    counts, hz = records.count()
    holds: dict[ClassKey, Counter[int]] = {}
    keys = _class_keys(snapshot)
    nameless = set[int]()
    for (lock, ticks), count in counts.items():
        if lock in keys:
            holds.setdefault(keys[lock], Counter())[ticks] += count
        else:
            nameless.add(lock)
    waits, acquisitions, blame = _sums(snapshot, keys)
    classes = {}
    for key in dict.fromkeys(keys.values()):
        values = {}
        if key in holds:
            values[Quantity.HOLD] = hold_median.median(holds[key]) / hz
        if waits[key] and acquisitions[key]:
            values[Quantity.WAIT] = waits[key] / acquisitions[key]
        classes[key] = ClassFigures(values=values, wait_s=waits[key], blame_s=blame[key])
    return ProgramRun(classes, records.arrived, records.lost, len(nameless))


def _class_keys(snapshot: Snapshot) -> dict[int, ClassKey]:
    """Return the classes by lock. Locks without names are left out."""
    keys = {}
    for lock in snapshot.locks:
        name = lock_classes.class_name(lock) if lock.kind in HELD_KINDS else None
        if name is not None:
            keys[lock.id] = lock.kind, _LINE.sub(")", name)
    return keys


def _sums(
    snapshot: Snapshot, keys: Mapping[int, ClassKey]
) -> tuple[Mapping[ClassKey, float], Mapping[ClassKey, int], Mapping[ClassKey, float]]:
    """Return the waits, the acquisitions and the blame of each class."""
    waits, blame = defaultdict[ClassKey, float](float), defaultdict[ClassKey, float](float)
    acquisitions = Counter[ClassKey]()
    chains = BlameChains({lock.id: lock for lock in snapshot.locks})
    for lock in snapshot.locks:
        key = keys.get(lock.id)
        if key is None:
            continue
        waits[key] += lock.counted_wait_s
        acquisitions[key] += lock.acquisitions or 0
        for root in chains.roots(lock) if lock.blame else ():
            if root.lock in keys:
                blame[keys[root.lock]] += root.wait_s
    return waits, acquisitions, blame
