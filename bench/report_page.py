"""Measures a report of an hour with 3.6 million waits (docs/report.md).

    PYTHONPATH=tests .venv/bin/python bench/report_page.py [WAITS_A_SECOND]

The recording is made for the purpose: 64 threads wait for 12 locks from 40 stacks, most often for
some tenths of a millisecond, in bursts. Every minute some waits last for seconds. The figures are
the time and the memory of `locktop report`, and the bytes of the file. Of chromium they are the
time until the text and the whole page are there, and the CPU time of the page.
"""

from __future__ import annotations

import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace
from support.chromium import browser
from support.shared_file import record
from support.tool import COMMAND
from unit.builders.records import lock, snapshot, thread

from locktop.collector.model import Frame, Snapshot, ThreadState, WaitStack
from locktop.collector.recording.recording_info import RecordingInfo
from locktop.collector.recording.recording_writer import RecordingWriter
from locktop.collector.shm.slot_batch import SlotBatch

SECONDS, RATE = 3600, 1000
THREADS, LOCKS, STACKS = 64, 12, 40
FIRST_TID, NS = 5000, 1_000_000_000
BEGIN_NS = 1_795_230_765 * NS
SNAPSHOT_S = 10
PAGES = 5


def scan() -> Snapshot:
    """Return a snapshot with the names of the locks, the threads and the functions."""
    stacks = {
        number: tuple(
            Frame(number, f"step_{depth}_{number // (depth + 1)}", "app.c", depth, "app", 1)
            for depth in range(12)
        )
        for number in range(1, STACKS + 1)
    }
    waits = tuple(WaitStack(stack=number, count=9, wait_s=1.0) for number in stacks)
    locks = tuple(
        replace(lock(number, f"g_lock_{number}"), wait_stacks=waits)
        for number in range(1, LOCKS + 1)
    )
    threads = tuple(
        thread(FIRST_TID + number, f"worker-{number}", ThreadState.RUNNING)
        for number in range(THREADS)
    )
    return replace(snapshot(threads=threads, locks=locks), stacks=stacks)


def second_of_waits(chosen: random.Random, second: int, rate: int) -> bytes:
    """Return the records of one second."""
    records = []
    for _ in range(rate):
        wait_ns = int(chosen.expovariate(1 / 300_000)) + 1000
        if chosen.random() < 0.0002 and second % 60 > 50:
            wait_ns = chosen.randrange(1, 5) * NS
        number = min(int(chosen.expovariate(0.5)), LOCKS - 1)
        tid = FIRST_TID + chosen.randrange(THREADS)
        start = second * NS + int(NS * chosen.random() ** 2)
        stack = 1 + (number * 7 + chosen.randrange(4)) % STACKS
        records.append(
            record(tid=tid, lock=number + 1, stack=stack, start=start, wait=wait_ns, hold=50_000)
        )
    return b"".join(records)


def batches(rate: int) -> Iterator[SlotBatch]:
    """Yield one batch a second, by a clock of nanoseconds."""
    chosen = random.Random(1)
    for second in range(SECONDS):
        ticks = (second + 6) * NS
        yield SlotBatch(
            ticks=ticks, time_ns=BEGIN_NS + ticks, hz=1e9, lost=0,
            records=second_of_waits(chosen, second, rate),
        )  # fmt: skip


def write_recording(path: Path, rate: int) -> None:
    """Write an hour."""
    first = scan()
    writer = RecordingWriter(path, RecordingInfo.from_snapshot(first, "bench"), BEGIN_NS)
    for number, batch in enumerate(batches(rate)):
        if number % SNAPSHOT_S == 0:
            writer.add_snapshot(replace(first, duration_s=1000.0 + number), BEGIN_NS + number * NS)
        writer.add_slots(batch)
    end_ns = BEGIN_NS + SECONDS * NS
    writer.add_snapshot(replace(first, duration_s=1000.0 + SECONDS), end_ns)
    writer.finish("made by a bench", end_ns)
    writer.close()


def open_page(page: Path) -> tuple[float, float, float]:
    """Return the milliseconds until the text and all is there, and those of CPU time."""
    with browser() as chromium:
        chromium.resize(1280)
        chromium.send("Performance.enable", timeDomain="threadTicks")
        chromium.open(page)
        metrics = chromium.send("Performance.getMetrics")["metrics"]
        cpu_s = next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")
        begun, ready = (
            float(chromium.evaluate(f"document.documentElement.dataset.{mark}"))
            for mark in ("begun", "ready")
        )
        return begun, ready, cpu_s * 1000


def main(rate: int) -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as folder:
        recording, page = Path(folder, "hour.locktop"), Path(folder, "hour.html")
        write_recording(recording, rate)
        began = time.monotonic()
        subprocess.run([COMMAND, "report", str(recording), "-o", str(page)], check=True)
        seconds = time.monotonic() - began
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        print(f"recording {recording.stat().st_size / 1e6:.1f} MB, {rate * SECONDS:,} waits")
        print(f"report {page.stat().st_size / 1e6:.1f} MB in {seconds:.1f} s, {memory:.0f} MiB")
        opened = [open_page(page) for _ in range(PAGES)]
        for name, values in zip(("text", "all", "CPU"), zip(*opened, strict=True), strict=True):
            print(f"{name} after {statistics.median(values):.0f} ms, median of {PAGES}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else RATE)
