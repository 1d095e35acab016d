"""What /proc says about threads: read many at a time, whatever it may say."""

from __future__ import annotations

import os
import random
import resource
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from locktop.collector import procfs
from locktop.collector.abi import Record, ffi, lib
from locktop.collector.task_files import RawTask, TaskFiles
from locktop.collector.tasks import Tasks

RAW = Record(RawTask, "struct lt_task")
REST = " ".join(str(number) for number in range(3, 53))


def stat(name: str = "worker", state: str = "S", rest: str = REST) -> bytes:
    return f"7 ({name}) {state} {rest}\n".encode()


def read(directory: Path, stat: bytes, sched: bytes | None = b"10 20 30\n") -> RawTask:
    """What is made of these two files; without a second one where there is none."""
    (directory / "stat").write_bytes(stat)
    fds = [os.open(directory / "stat", os.O_RDONLY), -1]
    if sched is not None:
        (directory / "sched").write_bytes(sched)
        fds[1] = os.open(directory / "sched", os.O_RDONLY)
    tasks = ffi.new("struct lt_task[]", 1)
    try:
        lib.lt_read_tasks(ffi.new("int32_t[]", fds), 1, tasks)
    finally:
        for fd in fds:
            if fd >= 0:
                os.close(fd)
    return RAW.at(ffi.buffer(tasks))


@pytest.fixture
def threads() -> Iterator[list[int]]:
    """Ids of living threads of this process."""
    release, tids = threading.Event(), []
    started = threading.Barrier(9)

    def wait() -> None:
        tids.append(threading.get_native_id())
        started.wait()
        release.wait()

    running = [threading.Thread(target=wait) for _ in range(8)]
    for thread in running:
        thread.start()
    started.wait()
    yield tids
    release.set()
    for thread in running:
        thread.join()


def test_the_fields(tmp_path: Path) -> None:
    raw = read(tmp_path, stat())
    # The state is the third field of the line, which is counted from 1; user time is the 14th.
    assert (raw.state, raw.cpu_ticks, raw.disk_ticks) == (ord("S"), 13 + 14, 41)
    assert (raw.ran_ns, raw.queued_ns, raw.runs) == (10, 20, 30)
    assert raw.name[: raw.name_size] == b"worker"
    assert raw.known == lib.LT_TASK_THERE | lib.LT_TASK_SCHED | lib.LT_TASK_DISK
    assert raw.at_ns > 0


@pytest.mark.parametrize("name", ["", " ", ") S 1 2 3", "a) R (b", "(((", "x" * 15, "\n"])
def test_a_name_may_be_anything(name: str, tmp_path: Path) -> None:
    raw = read(tmp_path, stat(name))
    assert raw.name[: raw.name_size] == name.encode()
    assert (raw.state, raw.cpu_ticks) == (ord("S"), 27)


def test_a_name_longer_than_there_is_room(tmp_path: Path) -> None:
    raw = read(tmp_path, stat("y" * 200))
    assert raw.name[: raw.name_size] == b"y" * len(raw.name)
    assert raw.cpu_ticks == 27


@pytest.mark.parametrize(
    "line",
    [b"", b"\n", b"7", b"7 (x", b"7 x)", b"7 )x( S 1", b"7 (x)", b"7 (x) S", b"7 (x) S 1 2 3",
     b"\0" * 500, b"(" * 1024, b")" * 1024, stat(rest=REST.replace("13 14", "x 14"))],
)  # fmt: skip
def test_what_is_no_stat_line_is_no_thread(line: bytes, tmp_path: Path) -> None:
    assert not read(tmp_path, line).known & lib.LT_TASK_THERE


def test_a_short_line_has_no_disk_figure(tmp_path: Path) -> None:
    raw = read(tmp_path, stat(rest=" ".join(REST.split()[:20])))
    assert raw.known == lib.LT_TASK_THERE | lib.LT_TASK_SCHED


@pytest.mark.parametrize("sched", [b"", b"\n", b"10", b"10 20", b"a b c", b"10 -2 3", None])
def test_a_schedstat_that_is_none(sched: bytes | None, tmp_path: Path) -> None:
    raw = read(tmp_path, stat(), sched)
    assert raw.known & lib.LT_TASK_THERE
    assert not raw.known & lib.LT_TASK_SCHED


def test_garbage(tmp_path: Path) -> None:
    dice = random.Random(3)
    sound = stat()
    for _ in range(500):
        line = bytearray(sound)
        for _ in range(dice.randrange(1, 12)):
            line[dice.randrange(len(line))] = dice.randrange(256)
        raw = read(tmp_path, bytes(line[: dice.randrange(len(line) + 1)]), dice.randbytes(20))
        assert raw.name_size <= len(raw.name)


def own_view(tid: int) -> tuple[str, str, tuple[int, ...]]:
    """A thread's name, state and schedstat, by other means."""
    own = procfs.thread_stat(os.getpid(), tid)
    sched = procfs.read(f"/proc/self/task/{tid}/schedstat").split()
    return own.comm, own.state, tuple(map(int, sched))


def test_living_threads_are_as_their_own_files_say(threads: list[int]) -> None:
    files = TaskFiles(os.getpid())
    unread = list(threads)
    while unread:  # a thread may have moved between two looks at it
        tid = unread[0]
        before = own_view(tid)
        (raw,) = files.read([tid])
        if before != own_view(tid):
            continue
        unread.pop(0)
        assert raw is not None
        seen = raw.name[: raw.name_size].decode(), chr(raw.state)
        assert (*seen, (raw.ran_ns, raw.queued_ns, raw.runs)) == before
    assert next(iter(files.read([1 << 22, threads[0]]))) is None, "no id is as large as that"
    files.close()


def test_few_descriptors_are_enough(threads: list[int]) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = len(os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (8, before[1]))
    try:
        files = TaskFiles(os.getpid())  # it keeps three at most
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    for _ in range(3):
        assert all(raw is not None for raw in files.read(threads))
        assert len(os.listdir("/proc/self/fd")) <= used + 6
    files.close()
    assert len(os.listdir("/proc/self/fd")) == used


def test_where_no_file_can_be_opened_no_thread_is_seen(threads: list[int]) -> None:
    files = TaskFiles(os.getpid())
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, before[1]))
    try:
        found = list(files.read(threads))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert found == [None] * len(threads)
    assert all(raw is not None for raw in files.read(threads)), "later there is room again"
    files.close()


def test_one_that_waits_on_is_not_read_again(threads: list[int]) -> None:
    tasks = Tasks(os.getpid(), os.getpid())
    waits = dict.fromkeys(threads, "the same")
    first, second = tasks.read(waits), tasks.read(waits)
    tasks.close()
    same = [first[tid] is second[tid] for tid in threads]
    assert same.count(True) >= len(threads) - 1, "now and then one is read all the same"
    own = threading.get_native_id()
    assert first[own] is not second[own]
    assert second[own].ran_ns >= first[own].ran_ns > 0


def told(tid: int) -> list[int]:
    """A thread's switches, by its status: voluntary, then not."""
    status = Path(f"/proc/self/task/{tid}/status").read_text()
    return [int(line.split()[1]) for line in status.splitlines() if "ctxt_switches" in line]


def test_switches_of_a_thread(threads: list[int]) -> None:
    tasks = Tasks(os.getpid(), os.getpid())
    tasks.read({})
    before, found, after = told(threads[0]), tasks.switches(threads[0]), told(threads[0])
    tasks.close()
    assert found is not None
    assert before[0] <= found.voluntary <= after[0]
    assert before[1] <= found.involuntary <= after[1]
    with pytest.raises(OSError, match="No such file"):
        tasks.switches(1 << 22)
