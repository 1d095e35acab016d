"""Contention without end, while threads and children come and go, without leaks or losses.

The test takes some seconds; `make soak MINUTES=10` takes longer.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import psutil
import pytest
from support import watched
from support.targets import Compiler, Target

from locktop.collector.linux.target import find_process
from locktop.collector.native import ffi
from locktop.collector.render.documents.snapshot_codec import document
from locktop.collector.shm import layout
from locktop.collector.shm.segment import GrowingArray, SharedMemory
from locktop.collector.sources import discover
from locktop.collector.sources.attach import attach
from locktop.collector.sources.base import Source
from locktop.collector.sources.launch import preload_environment

SECONDS = 60 * float(os.environ.get("LOCKTOP_SOAK_MINUTES", "0.15"))
EVERY_S = 0.5
#: Some 33 threads live at a time, and some 35,000 end in a short run. Ended threads keep a block
#: until another thread collects them: some 125 blocks on an idle machine.
RINGS_MAX = 1000


@dataclass(frozen=True)
class Sample:
    """The resources of the process at one moment."""

    used: int  # bytes of the shared file
    rings: int  # blocks of threads that have a ring
    rss: int  # bytes
    descriptors: int
    mappings: int


@pytest.fixture
def directory() -> Iterator[Path]:
    """Makes a directory for the shared files of this test."""
    path = tempfile.mkdtemp(prefix="soak-", dir="/dev/shm")
    yield Path(path)
    shutil.rmtree(path)


def count_rings(memory: SharedMemory) -> int:
    blocks = GrowingArray(memory, layout.THREADS_AT, layout.THREAD.size)
    blocks.refresh()
    read = (memory.read(at, layout.THREAD.size) for at in blocks.offsets())
    return sum(bool(ffi.from_buffer("struct lt_thread *", block).ring) for block in read)


def sample(pid: int) -> Sample:
    memory = discover.open_memory(find_process(pid))
    try:
        used, rings = memory.header().used, count_rings(memory)
    finally:
        memory.close()
    process = psutil.Process(pid)
    mappings = len(Path(f"/proc/{pid}/maps").read_bytes().splitlines())
    return Sample(used, rings, process.memory_info().rss, process.num_fds(), mappings)


def scan(source: Source) -> dict[str, Any]:
    return watched.checked(document(source.scan()))


def assert_steady(samples: list[Sample]) -> None:
    """Check that resources do not grow after the first third, in which tables reach their size.

    A leak would grow all the time: 64 bytes of each ended thread are a third of the file. More
    rings mean a moment with more threads than ever before, and each of them has tables. So the
    file may grow by its bytes for each ring. On a busy machine tables reach their size late.
    """
    third, last = len(samples) // 3, samples[-1]
    assert last.rings <= RINGS_MAX, "blocks of dead threads are not used again"
    print(f"{len(samples)} samples: first {samples[0]}, third {samples[third]}, last {last}")
    middle, end = samples[third : 2 * third], samples[2 * third :]
    used, used_before = (median(one.used / one.rings for one in part) for part in (end, middle))
    rss, rss_before = (median(one.rss for one in part) for part in (end, middle))
    assert used <= used_before * 1.2, "the shared file, for each ring"
    assert rss <= rss_before * 1.1 + (4 << 20), "memory"
    assert last.mappings <= max(one.mappings for one in samples[:-1]) + 8
    assert last.descriptors == samples[0].descriptors


def test_nothing_leaks_and_nothing_is_lost(compiler: Compiler, directory: Path) -> None:
    environment = preload_environment() | {"LOCKTOP_DIR": str(directory)}
    with Target([compiler.program("soak_load")], environment) as target:
        target.expect("ready")
        source = attach(target.pid, only_exact=True)
        samples, own = [sample(target.pid)], psutil.Process().num_fds()
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            scan(source)
            time.sleep(EVERY_S)
            samples.append(sample(target.pid))
        target.go_on()
        truth = target.truth()
        found = scan(source)
        print({name: truth[name] for name in ("threads", "children")}, sum(truth["locks"].values()))
        assert truth["threads"] > 10 * len(samples)
        assert truth["children"] > len(samples)
        assert truth["bad_children"] == 0
        seen = {lock["address"]: lock["acquisitions"] for lock in found["locks"]}
        assert {address: seen.get(address) for address in truth["locks"]} == truth["locks"]
        assert_steady(samples)
        assert psutil.Process().num_fds() <= own + 16, (
            "the tool keeps the files of some threads open"
        )
        assert [path.name.split("-")[1] for path in directory.iterdir()] == [str(target.pid)]
        source.close()
        assert target.finish() == (0, [])
    assert list(directory.iterdir()) == []
