"""Counters of a thread: compared with /proc and the thread itself, or a reason without a count."""

from __future__ import annotations

import errno
import os
import resource
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
from support.rights import as_nobody

from locktop.collector.linux import perf_counters, procfs
from locktop.collector.linux.perf_counters import EVENTS, ThreadCounters
from locktop.collector.model import PerfCounter, PerfCounters

KERNEL = ("task-clock", "page-faults", "context-switches", "cpu-migrations")
PROCESSOR = ("cycles", "instructions", "cache-misses", "branch-misses")
PAGE = resource.getpagesize()


def named(found: PerfCounters) -> dict[str, PerfCounter]:
    return {one.name: one for one in found.counters}


def of_own_thread() -> ThreadCounters:
    """The counters of this thread; skip if the kernel lets this user count nothing."""
    made = ThreadCounters(threading.get_native_id())
    why = named(made.read())["task-clock"].why
    if why.startswith(("no right", "this kernel")):
        made.close()
        pytest.skip(f"nothing can be counted here: {why}")
    return made


def touch(pages: int) -> None:
    """Touch that many new pages."""
    import mmap

    with mmap.mmap(-1, pages * PAGE) as memory:
        if hasattr(mmap, "MADV_NOHUGEPAGE"):
            memory.madvise(mmap.MADV_NOHUGEPAGE)
        for page in range(pages):
            memory[page * PAGE] = 1


def burn(cpu_s: float) -> None:
    end = time.thread_time() + cpu_s
    while time.thread_time() < end:
        pass


def test_every_event_has_a_figure_or_a_reason() -> None:
    with closing(ThreadCounters(threading.get_native_id())) as made:
        found = made.read()
    assert tuple(one.name for one in found.counters) == KERNEL + PROCESSOR
    for one in found.counters:
        assert one.total is not None or one.why, one


def test_the_clock_of_a_thread_is_its_processor_time() -> None:
    """The clock stands still while the thread is off its CPU.

    The clock may include the switches of a busy machine, which count for no thread.
    """
    with closing(of_own_thread()) as made:
        earliest = time.monotonic()
        first = named(made.read())["task-clock"].total
        burn(0.2)
        second = named(made.read())["task-clock"].total
        most = time.monotonic() - earliest
    assert first is not None
    assert second is not None
    assert 0.18 <= second - first <= most + 0.001


def test_the_clock_stands_still_while_the_thread_sleeps() -> None:
    go_on, ended, tids = threading.Event(), threading.Event(), list[int]()

    def sleep() -> None:
        tids.append(threading.get_native_id())
        ended.set()
        go_on.wait()

    sleeper = threading.Thread(target=sleep)
    sleeper.start()
    ended.wait()
    with closing(ThreadCounters(tids[0])) as made:
        first = named(made.read())["task-clock"].total
        burn(0.3)
        second = named(made.read())["task-clock"].total
    go_on.set()
    sleeper.join()
    if first is not None:
        assert second is not None
        assert second - first < 0.15


def test_page_faults_agree_with_getrusage() -> None:
    def faults() -> int:
        used = resource.getrusage(resource.RUSAGE_THREAD)
        return used.ru_minflt + used.ru_majflt

    with closing(of_own_thread()) as made:
        before, first = faults(), named(made.read())["page-faults"].total
        began = faults()
        touch(500)
        ended, second, after = faults(), named(made.read())["page-faults"].total, faults()
    assert first is not None
    assert second is not None
    assert ended - began >= 500
    assert ended - began <= second - first <= after - before


def test_context_switches_agree_with_the_status_file() -> None:
    def switches() -> int:
        return sum(procfs.thread_switches(os.getpid(), threading.get_native_id()))

    with closing(of_own_thread()) as made:
        first = named(made.read())["context-switches"]
        if first.total is None:
            pytest.skip(f"not counted here: {first.why}")
        began = ended = switches()
        while ended - began < 50:  # an interval without time has no rate
            time.sleep(0.0001)
            ended = switches()
        second = named(made.read())["context-switches"].total
    assert second is not None
    assert second - first.total >= ended - began


def test_rates_begin_with_the_second_reading() -> None:
    of_own_thread().close()  # counters are available
    with closing(ThreadCounters(threading.get_native_id())) as made:
        assert all(one.per_s == 0.0 for one in made.read().counters)
        burn(0.1)
        clock = named(made.read())["task-clock"]
    assert clock.per_s > 0.0


def gives_hardware_counters() -> bool:
    """The kernel lists the counters of the processor."""
    devices = Path("/sys/bus/event_source/devices")
    return any(path.name.startswith(("cpu", "armv")) for path in devices.glob("*"))


def test_events_of_the_processor_have_a_count_or_a_reason() -> None:
    with closing(of_own_thread()) as made:
        made.read()
        burn(0.05)
        found = named(made.read())
    if gives_hardware_counters():
        assert any(found[name].total for name in PROCESSOR) or found["cycles"].why
    else:
        for name in PROCESSOR:
            assert found[name].total is None
            why = found[name].why
            # The kernel checks the rights of an ordinary user first.
            assert why.startswith("no right") or why in (
                "this virtual machine gives none", "this processor gives none",
            )  # fmt: skip


def test_an_ended_thread_has_a_reason_and_no_count() -> None:
    with closing(ThreadCounters(1 << 22)) as made:  # no thread has such a large id
        found = named(made.read())
    assert all(one.total is None for one in found.values())
    if not found["task-clock"].why.startswith("no right"):
        assert found["task-clock"].why == "the thread has ended"


def test_too_many_open_files_are_a_reason() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, before[1]))
    try:
        made = ThreadCounters(threading.get_native_id())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    with closing(made):
        found = named(made.read())
    assert found["task-clock"].total is None
    assert found["task-clock"].why in ("too many open files", found["cycles"].why)


def test_missing_rights_are_a_reason() -> None:
    """A user without the right to trace a process reads reasons."""
    if os.geteuid() != 0:
        pytest.skip("takes a process of another user: run as root")
    tid = os.getpid()

    def ask() -> list[tuple[str, float | None, str]]:
        with closing(ThreadCounters(tid)) as made:
            return [(one.name, one.total, one.why) for one in made.read().counters]

    for name, total, why in as_nobody(ask):
        assert total is None, name
        assert why
        if name in KERNEL:
            assert why.startswith("no right")


def test_close_releases_every_descriptor() -> None:
    before = len(os.listdir("/proc/self/fd"))
    made = ThreadCounters(threading.get_native_id())
    made.read()
    made.close()
    made.close()
    assert len(os.listdir("/proc/self/fd")) == before
    assert all(one.total is None for one in made.read().counters)


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """The answers of the kernel: for "all" with its own work, for "user" without."""
    answers: dict[str, int] = {}

    def opened(tid: int, event: perf_counters.PerfEvent, user_only: bool) -> int:
        return answers["user" if user_only else "all"]

    monkeypatch.setattr(perf_counters, "open_counter", opened)
    return answers


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (errno.EACCES, "no right"),
        (errno.EPERM, "no right"),
        (errno.ESRCH, "the thread has ended"),
        (errno.EMFILE, "too many open files"),
        (errno.ENOSYS, "this kernel counts nothing"),
        (errno.ENOENT, "gives none"),
        (errno.EOPNOTSUPP, "gives none"),
        (errno.EBUSY, "another tool has the counters"),
        (errno.EIO, os.strerror(errno.EIO)),
    ],
)
def test_each_refusal_of_the_kernel_has_a_reason(
    refused: dict[str, int], error: int, said: str
) -> None:
    refused |= {"all": -error, "user": -error}
    cycles = next(event for event in EVENTS if event.name == "cycles")
    with closing(ThreadCounters(1, (cycles,))) as made:
        (found,) = made.read().counters
    assert found.total is None
    assert said in found.why


def test_a_user_without_kernel_rights_counts_user_code(refused: dict[str, int]) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"".join(n.to_bytes(8, "little") for n in (1000, 80, 20)))
    refused |= {"all": -errno.EACCES, "user": reading}
    cycles = next(event for event in EVENTS if event.name == "cycles")
    switches = next(event for event in EVENTS if event.name == "context-switches")
    with closing(ThreadCounters(1, (switches, cycles))) as made:
        by_kernel, by_user = made.read().counters
    os.close(writing)
    assert by_kernel.total is None, "the event happens in the kernel alone"
    assert by_kernel.why.startswith("no right")
    assert by_user.total == 4000, "scaled up: the counter had a quarter of the time"
    assert by_user.why == "not in the kernel, estimated: counters take turns"
