"""The files of threads in /proc: read many at a time, sound or malformed."""

from __future__ import annotations

import os
import random
import resource
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import system_calls

from locktop.collector.linux import procfs, syscalls
from locktop.collector.linux.thread_files import TaskRecord, ThreadFiles
from locktop.collector.linux.threads import KernelThreads
from locktop.collector.native import lib
from locktop.collector.sources.sampling.sampler import Sampler

REST = " ".join(str(number) for number in range(3, 53))
TID = 7
ASLEEP = b"202 0x10 0x80 0x2 0x0 0x0 0x0 0x7f 0x11\n"


def join(thread: threading.Thread) -> None:
    """Wait until the kernel has removed a thread: pthread_join() returns a moment earlier."""
    thread.join()
    while Path(f"/proc/self/task/{thread.native_id}").exists():
        pass


def stat(name: str = "worker", state: str = "S", rest: str = REST) -> bytes:
    return f"{TID} ({name}) {state} {rest}\n".encode()


class Made(ThreadFiles):
    """Files of threads that no process has, as a test writes them."""

    def __init__(self, directory: Path) -> None:
        super().__init__(0)
        self.path = directory
        self._table.directory = os.open(directory, os.O_RDONLY)

    def write(self, tid: int = TID, **files: bytes) -> None:
        (self.path / str(tid)).mkdir(exist_ok=True)
        for name, text in files.items():
            (self.path / str(tid) / name).write_bytes(text)


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Made]:
    files = Made(tmp_path)
    yield files
    files.close()


def read(made: Made, stat: bytes, sched: bytes | None = b"10 20 30\n") -> TaskRecord | None:
    """The sample made from these two files; without ``schedstat`` the second file is missing."""
    made.write(stat=stat)
    if sched is not None:
        made.write(schedstat=sched)
    (raw,) = made.read([TID])
    return raw


def read_whole(made: Made, stat: bytes, sched: bytes | None = b"10 20 30\n") -> TaskRecord:
    raw = read(made, stat, sched)
    assert raw is not None
    return raw


@pytest.fixture
def threads() -> Iterator[list[int]]:
    """The ids of living threads of this process."""
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
        join(thread)


def test_every_field_of_the_files_is_read(made: Made) -> None:
    raw = read_whole(made, stat())
    # The state is the third field of the line, counted from 1; user time is the 14th.
    assert (raw.state, raw.cpu_ticks, raw.disk_ticks) == (ord("S"), 13 + 14, 41)
    assert (raw.ran_ns, raw.queued_ns, raw.runs) == (10, 20, 30)
    assert raw.name[: raw.name_size] == b"worker"
    counted = lib.LT_TASK_SCHED | lib.LT_TASK_DISK
    assert raw.facts == lib.LT_TASK_THERE | lib.LT_TASK_ASLEEP | counted
    assert raw.at_ns > 0


@pytest.mark.parametrize("name", ["", " ", ") S 1 2 3", "a) R (b", "(((", "x" * 15, "\n"])
def test_a_thread_name_may_have_any_bytes(name: str, made: Made) -> None:
    raw = read_whole(made, stat(name))
    assert raw.name[: raw.name_size] == name.encode()
    assert (raw.state, raw.cpu_ticks) == (ord("S"), 27)


def test_a_too_long_name_is_cut(made: Made) -> None:
    raw = read_whole(made, stat("y" * 200))
    assert raw.name[: raw.name_size] == b"y" * len(raw.name)
    assert raw.cpu_ticks == 27


@pytest.mark.parametrize(
    "line",
    [b"", b"\n", b"7", b"7 (x", b"7 x)", b"7 )x( S 1", b"7 (x)", b"7 (x) S", b"7 (x) S 1 2 3",
     b"\0" * 500, b"(" * 1024, b")" * 1024, stat(rest=REST.replace("13 14", "x 14"))],
)  # fmt: skip
def test_a_malformed_stat_line_is_no_thread(line: bytes, made: Made) -> None:
    assert read(made, line) is None


def test_a_short_line_has_no_disk_figure(made: Made) -> None:
    raw = read_whole(made, stat(rest=" ".join(REST.split()[:20])))
    assert not raw.facts & lib.LT_TASK_DISK


@pytest.mark.parametrize("sched", [b"", b"\n", b"10", b"10 20", b"a b c", b"10 -2 3", None])
def test_a_malformed_schedstat_gives_no_counters(sched: bytes | None, made: Made) -> None:
    raw = read_whole(made, stat(), sched)
    assert raw.facts & lib.LT_TASK_THERE
    assert not raw.facts & lib.LT_TASK_SCHED


@pytest.mark.parametrize(
    ("state", "call", "asleep"),
    [("S", ASLEEP, True), ("S", b"running\n", False), ("R", b"", False)],
)
def test_the_system_call_is_read_on_request(
    state: str, call: bytes, asleep: bool, made: Made
) -> None:
    made.write(stat=stat(state=state), schedstat=b"10 20 30\n", syscall=call)
    (raw,) = made.read([TID], calls=bool(call))
    assert raw is not None
    assert raw.call[: raw.call_size] == call
    assert made.still_sleeps(TID) is asleep
    made.write(schedstat=b"10 20 31\n")
    assert not made.still_sleeps(TID)


def test_garbage_is_read_or_refused(made: Made) -> None:
    dice = random.Random(3)
    sound = stat()
    for _ in range(500):
        line = bytearray(sound)
        for _ in range(dice.randrange(1, 12)):
            line[dice.randrange(len(line))] = dice.randrange(256)
        raw = read(made, bytes(line[: dice.randrange(len(line) + 1)]), dice.randbytes(20))
        assert raw is None or raw.name_size <= len(raw.name)


def own_view(tid: int) -> tuple[str, str, tuple[int, ...]]:
    """The name, state and schedstat of a thread, read by other functions."""
    own = procfs.thread_stat(os.getpid(), tid)
    sched = procfs.read(f"/proc/self/task/{tid}/schedstat").split()
    return own.comm, own.state, tuple(map(int, sched))


def test_samples_agree_with_the_files_of_living_threads(threads: list[int]) -> None:
    files = ThreadFiles(os.getpid())
    unread = list(threads)
    while unread:  # a thread may have moved between both readings
        tid = unread[0]
        before = own_view(tid)
        (raw,) = files.read([tid])
        if before != own_view(tid):
            continue
        unread.pop(0)
        assert raw is not None
        seen = raw.name[: raw.name_size].decode(), chr(raw.state)
        assert (*seen, (raw.ran_ns, raw.queued_ns, raw.runs)) == before
    absent = files.read([1 << 22, threads[0], 0, -1, 1 << 31, 1 << 40])
    assert [raw is None for raw in absent] == [True, False, True, True, True, True]
    files.close()


def test_few_descriptors_are_enough(threads: list[int]) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = len(os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (8, before[1]))
    try:
        files = ThreadFiles(os.getpid())  # at most six files stay open
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    for _ in range(3):
        assert all(raw is not None for raw in files.read(threads))
        assert len(os.listdir("/proc/self/fd")) <= used + 6 + 1, "and its directory"
    files.close()
    assert len(os.listdir("/proc/self/fd")) == used


def test_kept_descriptors_are_closed_when_descriptors_run_out(threads: list[int]) -> None:
    files = ThreadFiles(os.getpid())
    assert None not in files.read(threads[:4]), "eight files stay open"
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(name) for name in os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest, before[1]))
    try:
        taken = list(all_descriptors())
        found = files.read(threads)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    for descriptor in taken:
        os.close(descriptor)
    assert None not in found
    files.close()


def test_no_thread_counts_as_ended_without_descriptors(threads: list[int]) -> None:
    files = ThreadFiles(os.getpid())
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, before[1]))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            files.read(threads)
        with pytest.raises(OSError, match="Too many open files"):
            files.sample(threads, 1)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert None not in files.read(threads), "later descriptors are free again"
    files.close()


def all_descriptors() -> Iterator[int]:
    """Open files up to the limit of descriptors."""
    while True:
        try:
            yield os.open("/dev/null", os.O_RDONLY)
        except OSError:
            return


# ---- samples ----


def test_a_sleeping_thread_is_not_read_again(made: Made) -> None:
    made.write(stat=stat(), schedstat=b"10 20 30\n", syscall=ASLEEP)
    ((tid, raw),) = made.sample([TID], 1)
    assert (tid, raw is not None and raw.call[: raw.call_size]) == (TID, ASLEEP)
    assert raw is not None
    assert raw.facts & (lib.LT_TASK_ASLEEP | lib.LT_TASK_SLEPT) == lib.LT_TASK_ASLEEP
    assert made.still_sleeps(TID)
    assert made.sample([TID], 2) == []
    made.write(schedstat=b"10 20 31\n")
    assert not made.still_sleeps(TID)
    assert [tid for tid, _ in made.sample([TID], 3)] == [TID]
    assert made.sample([TID], 4) == []


def test_many_sleeping_threads_keep_their_samples(made: Made) -> None:
    for tid in range(1, 101):
        made.write(tid, stat=stat(), schedstat=b"10 20 30\n", syscall=ASLEEP)
    made.sample(range(1, 101), 1)
    for tid in range(1, 101, 3):
        made.write(tid, schedstat=b"10 20 31\n")
    assert made.asleep([*range(1, 90), 500]) == {tid for tid in range(1, 90) if tid % 3 != 1}
    assert made.asleep([]) == set()


def test_a_new_name_of_a_sleeping_thread_is_read(made: Made) -> None:
    made.write(stat=stat("before"), schedstat=b"10 20 30\n", syscall=ASLEEP)
    made.sample([TID], 0)
    made.write(stat=stat("after"))
    (raw,) = (raw for number in range(1, 65) for _, raw in made.sample([TID], number))
    assert raw is not None
    assert raw.facts & lib.LT_TASK_SLEPT
    assert raw.name[: raw.name_size] == b"after"


@pytest.mark.parametrize(
    ("sched", "call"),
    [(b"10 20 30\n", b"running\n"), (b"0 0 0\n", ASLEEP), (b"", ASLEEP), (b"1 2\n", ASLEEP)],
)
def test_a_running_or_uncounted_thread_is_read_each_time(
    sched: bytes, call: bytes, made: Made
) -> None:
    made.write(stat=stat(), schedstat=sched, syscall=call)
    for number in range(3):
        ((_, raw),) = made.sample([TID], number)
        assert raw is not None
        assert not raw.facts & lib.LT_TASK_ASLEEP
    assert not made.still_sleeps(TID)


def call(name: str) -> bytes:
    """The system call of a sleeping thread, from the kernel."""
    return str(system_calls.syscalls().get(name)).encode() + ASLEEP[3:]


@pytest.mark.parametrize(
    ("name", "state"), [("futex", "S"), ("clock_nanosleep", "T"), ("ppoll", "T"), ("read", "T")]
)
def test_the_state_is_read_unless_the_thread_waits_for_a_futex(
    name: str, state: str, made: Made
) -> None:
    """A thread that was stopped in a call stays in the call."""
    made.write(stat=stat(), schedstat=b"10 20 30\n", syscall=b"running\n")
    made.sample([TID], 1)
    made.write(stat=stat(state="T"), schedstat=b"11 20 31\n", syscall=call(name))
    ((_, raw),) = made.sample([TID], 2)
    assert raw is not None
    assert (chr(raw.state), bool(raw.facts & lib.LT_TASK_ASLEEP)) == (state, True)


def test_an_ended_thread_is_reported_once_and_its_id_may_return(made: Made) -> None:
    made.write(stat=stat(), schedstat=b"10 20 30\n", syscall=ASLEEP)
    assert len(made.sample([TID], 1)) == 1
    made.write(schedstat=b"")
    assert made.sample([TID], 2) == [(TID, None)]
    made.write(stat=stat("another"), schedstat=b"1 2 3\n")
    ((_, raw),) = made.sample([TID], 3)
    assert raw is not None
    assert raw.name[: raw.name_size] == b"another"
    assert not raw.facts & lib.LT_TASK_SLEPT


def test_samples_follow_threads_that_come_and_go(made: Made) -> None:
    for tid in range(1, 301):
        made.write(tid, stat=stat(str(tid)), schedstat=b"10 20 30\n", syscall=ASLEEP)
    dice = random.Random(8)
    before: set[int] = set()
    for number in range(40):
        living = set(dice.sample(range(1, 301), dice.randrange(200)))
        read = dict(made.sample(sorted(living), number))
        new = {tid for tid, raw in read.items() if raw and not raw.facts & lib.LT_TASK_SLEPT}
        assert new == living - before
        assert read.keys() <= living
        for tid, raw in read.items():
            assert raw is not None
            assert raw.name[: raw.name_size] == str(tid).encode()
        before = living


def test_a_thread_without_a_readable_call_has_ended(made: Made) -> None:
    made.write(stat=stat(), schedstat=b"10 20 30\n")
    assert made.sample([TID], 1) == [(TID, None)]
    (made.path / str(TID) / "syscall").mkdir()
    assert made.sample([TID], 2) == [(TID, None)]


def test_a_waiting_thread_is_not_read_again(threads: list[int]) -> None:
    tasks = KernelThreads(os.getpid(), os.getpid())
    waits = dict.fromkeys(threads, "the same")
    first, second = tasks.read(waits), tasks.read(waits)
    tasks.close()
    same = [first[tid] is second[tid] for tid in threads]
    assert same.count(True) >= len(threads) - 1, (
        "now and then a sleeping thread is read all the same"
    )
    own = threading.get_native_id()
    assert first[own] is not second[own]
    assert second[own].ran_ns >= first[own].ran_ns > 0


def switches_in_status(tid: int) -> list[int]:
    """The voluntary and the involuntary switches of a thread, from its status file."""
    status = Path(f"/proc/self/task/{tid}/status").read_text()
    return [int(line.split()[1]) for line in status.splitlines() if "ctxt_switches" in line]


def test_thread_activity_names_state_and_call() -> None:
    """A waiting thread counts as asleep until the thread runs again, and as ended after its end."""
    tasks, me = KernelThreads(os.getpid(), os.getpid()), threading.get_native_id()
    its, ours = os.pipe()  # not a futex: waits for the interpreter's lock are futexes

    thread = threading.Thread(target=os.read, args=(its, 1), daemon=True)
    thread.start()
    tid = thread.native_id or 0

    def reads() -> bool:
        call = tasks.moments([tid])[tid].call
        return call is not None and syscalls.name(call.number) == "read"

    while not (reads() and tasks.still_sleeps(tid)):
        pass
    now = tasks.moments([tid, me])
    assert now[me].state == "R", "this thread runs"
    assert not tasks.still_sleeps(me)
    assert now[tid].state == "S"
    assert tasks.moments([tid])[tid] == now[tid]
    os.write(ours, b"!")
    while tasks.still_sleeps(tid):
        pass
    join(thread)
    assert tasks.moments([tid, me]).keys() == {me}
    tasks.close()
    os.close(its)
    os.close(ours)


def test_switches_agree_with_the_status_file(threads: list[int]) -> None:
    tasks = KernelThreads(os.getpid(), os.getpid())
    tasks.read({})
    before = switches_in_status(threads[0])
    found, after = tasks.switches(threads[0]), switches_in_status(threads[0])
    tasks.close()
    assert found is not None
    assert before[0] <= found.voluntary <= after[0]
    assert before[1] <= found.involuntary <= after[1]
    with pytest.raises(OSError, match="No such file"):
        tasks.switches(1 << 22)


def test_no_file_of_an_ended_thread_stays_open(threads: list[int]) -> None:
    pid = os.getpid()
    tasks = KernelThreads(pid, pid)
    tasks.keep_only(())
    before = len(os.listdir("/proc/self/fd"))
    assert all(tasks.states(threads).values())
    assert len(os.listdir("/proc/self/fd")) > before
    tasks.keep_only(threads[:1])
    few = len(os.listdir("/proc/self/fd"))
    tasks.keep_only(())
    assert len(os.listdir("/proc/self/fd")) < few
    tasks.close()


def test_an_equal_number_of_threads_means_the_same_threads_until_one_ends(
    threads: list[int],
) -> None:
    samples = Sampler(os.getpid(), os.getpid())
    count = len(samples.take())
    assert samples.take(count).keys() >= set(threads)
    release, begun = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        release.wait()

    first = threading.Thread(target=wait)
    first.start()
    begun.wait()
    assert first.native_id not in samples.take(count), "as the sample before said"
    assert first.native_id in samples.take(count + 1)
    release.set()
    join(first)
    release.clear()
    begun.clear()
    second = threading.Thread(target=wait)
    second.start()
    begun.wait()
    assert first.native_id not in samples.take(count + 1)
    found = samples.take(count + 1)
    release.set()
    join(second)
    assert second.native_id in found
    samples.close()
