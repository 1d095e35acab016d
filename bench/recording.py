"""Measures recordings (docs/overhead.md).

    make record-bench                 # all parts
    PYTHONPATH=tests .venv/bin/python bench/recording.py speed|size|reach

"speed": a program of four threads makes 1,000,000 ring records a second at level all. The figures
are the CPU share of `locktop record`, the lost records, and the CPU share of the program.

"size": the same program takes a lock of its own 19 times of 20, else a shared one. The figures
compare the file with a trace of 64 bytes for each pair of lock and unlock.

"reach": a recording of 1 GB, made for the purpose from real snapshots and ring records. The figures
are the times to open the file, and to reach a random moment.
"""

from __future__ import annotations

import os
import random
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace
from support import recordings
from support.targets import Compiler, Target

from locktop.collector.model import Snapshot
from locktop.collector.recording.recording import Recording
from locktop.collector.recording.recording_info import RecordingInfo
from locktop.collector.recording.recording_writer import RecordingWriter
from locktop.collector.shm.slot_batch import SlotBatch
from locktop.collector.sources.attach import attach
from locktop.collector.sources.launch import preload_environment

SECONDS = 8
RATE = 1_000_000
#: A thread then waits for the shared lock nearly each time.
SHARED_US = 50
SLOT_BYTES = 64
GIGABYTE = 1_000_000_000
SECOND_NS = 1_000_000_000


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of all living threads of a process, seconds."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def started(compiler: Compiler, level: str, pace: int, shared_us: int) -> Target:
    """Start four threads that make ``pace`` pairs a second, for longer than the bench takes."""
    variables = preload_environment(level) | {"LOCKTOP_RING": "16384"}
    arguments = ["4", "1000000000", str(pace), "5", str(shared_us)]
    target = Target([compiler.program("paced_pairs"), *arguments], variables)
    target.expect("ready")
    target.go_on()
    return target


def share_over(pid: int, seconds: float) -> float:
    """Return the CPU share of a process over some seconds."""
    at, used = time.monotonic(), cpu_seconds(pid)
    time.sleep(seconds)
    return (cpu_seconds(pid) - used) / (time.monotonic() - at)


def speed(compiler: Compiler, directory: Path) -> None:
    """Measure the CPU shares of the tool and of the program."""
    with started(compiler, "all", RATE, 0) as target:
        alone = share_over(target.pid, SECONDS / 2)
        with recordings.recording(target.pid, directory / "speed") as recorder:
            time.sleep(1)
            own = cpu_seconds(target.pid)
            at = time.monotonic()
            share = share_over(recorder.pid, SECONDS)
            recorded = (cpu_seconds(target.pid) - own) / (time.monotonic() - at)
            recorder.process.send_signal(signal.SIGTERM)
            end = recordings.end_of(recorder)
    size = (directory / "speed").stat().st_size
    print(f"speed: {end.records / end.seconds:,.0f} records/s for {end.seconds:.1f} s,", end=" ")
    print(f"{end.lost:,} lost; tool {share:.1%} of a core (budget 20 %)")
    print(f"       {size / end.records:.2f} bytes a record; program {alone:.1%}", end=" ")
    print(f"of a core alone, {recorded:.1%} recorded")


def size(compiler: Compiler, directory: Path) -> None:
    """Measure the bytes of a recording beside those of an unfiltered trace."""
    with (
        started(compiler, "contended", 0, SHARED_US) as target,
        Acquisitions(target.pid) as pairs,
    ):
        before = pairs()
        with recordings.recording(target.pid, directory / "size") as recorder:
            time.sleep(SECONDS)
            recorder.process.send_signal(signal.SIGTERM)
            end = recordings.end_of(recorder)
        made = pairs() - before
    written = (directory / "size").stat().st_size
    print(
        f"size: {made:,} pairs, {end.records:,} of them waited ({end.records / made:.2%});", end=" "
    )
    print(f"{written:,} bytes, a trace {made * SLOT_BYTES:,}:", end=" ")
    print(f"{made * SLOT_BYTES / written:,.0f} times smaller (budget 20)")


class Acquisitions:
    """Counts the acquisitions of a process."""

    def __init__(self, pid: int) -> None:
        self._source = attach(pid)

    def __enter__(self) -> Callable[[], int]:
        return lambda: sum(lock.acquisitions or 0 for lock in self._source.scan().locks)

    def __exit__(self, *_: object) -> None:
        self._source.close()


def samples(compiler: Compiler) -> tuple[list[Snapshot], list[SlotBatch]]:
    """Return real snapshots of a busy crowd, and real batches of ring records."""
    command = [compiler.program("busy_crowd"), "300"]
    with Target(command, preload_environment("all") | {"LOCKTOP_RING": "16384"}) as target:
        target.expect("ready")
        source = attach(target.pid)
        source.scan(resolve=True)
        drain = source.drain()
        assert drain is not None
        snapshots, batches = [], []
        for _ in range(40):
            batches.append(drain.take(0.2).slots)
            snapshots.append(source.scan())
        drain.close()
        source.close()
    return snapshots, [batch for batch in batches if batch.packed]


def reach(compiler: Compiler, directory: Path) -> None:
    """Measure how long it takes to open a large recording and to reach a moment."""
    snapshots, batches = samples(compiler)
    path, begin = directory / "reach", time.time_ns()
    writer = RecordingWriter(path, RecordingInfo.from_snapshot(snapshots[0], "1"), begin)
    number = 0
    while writer.size < GIGABYTE:
        at = begin + number * SECOND_NS // 2
        writer.add_snapshot(snapshots[number % len(snapshots)], at)
        writer.add_slots(replace(batches[number % len(batches)], time_ns=at))
        number += 1
    writer.finish("over", begin + number * SECOND_NS // 2)
    before = time.monotonic()
    recording = Recording(path)
    opened_s = time.monotonic() - before
    times, chosen, took = recording.times_ns(), random.Random(19), []
    for _ in range(100):
        before = time.monotonic()
        recording.snapshot_at(chosen.choice(times))
        took.append(time.monotonic() - before)
    print(f"reach: {writer.size / 1e9:.2f} GB, {len(times):,} snapshots of", end=" ")
    print(f"{len(snapshots[0].threads)} threads; opened in {opened_s:.2f} s; a moment in", end=" ")
    print(f"{statistics.median(took):.3f} s, at most {max(took):.3f} s (budget 0.2 s)")
    spans = [(at, at + SECOND_NS) for at in chosen.sample(list(times), 20)]
    took = []
    for from_ns, to_ns in spans:
        before = time.monotonic()
        recording.records(from_ns, to_ns)
        took.append(time.monotonic() - before)
    recording.close()
    os.truncate(path, writer.size - 1)
    before = time.monotonic()
    Recording(path).close()
    print(f"       records of a second in {statistics.median(took):.3f} s;", end=" ")
    print(f"cut off, opened in {time.monotonic() - before:.2f} s")


PARTS = {"speed": speed, "size": size, "reach": reach}


def main(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "targets").mkdir()
        compiler = Compiler(Path(directory) / "targets")
        for name in names or list(PARTS):
            PARTS[name](compiler, Path(directory))


if __name__ == "__main__":
    main(sys.argv[1:])
