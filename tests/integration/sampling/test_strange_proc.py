"""Files over those of /proc act as a kernel with strange answers about a thread."""

from __future__ import annotations

import ctypes
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from fuzz.mutate import garbled
from support import unprepared
from support.targets import PATIENCE_S, StartTarget, Target
from support.watched import checked

from locktop.collector.errors import LocktopError
from locktop.collector.model import Kind, ThreadState
from locktop.collector.render.documents.snapshot_codec import document
from locktop.collector.sanitize import clean
from locktop.collector.sources.attach import attach

#: Mounts a copy over a file of a thread, by pid, tid and name; returns the path of the copy.
Over = Callable[[int, int, str], Path]
SEEDS = range(60)
NO_LIBC_32 = """\
__attribute__((noreturn)) void _start(void)
{
    for (int result;;)
        __asm__ volatile("int $0x80" : "=a"(result) : "a"(29)); /* pause */
}
"""


CLONE_NEWNS = 0x20000  # unshare(2)


@pytest.fixture(scope="session")
def own_mounts() -> None:
    """Give this process its own mounts until its end, so that no other process sees them.

    While a file of /proc is hidden, the kernel allows no new /proc in a user namespace.
    """
    if os.geteuid() != 0:
        pytest.skip("only root may mount")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) != 0:
        pytest.skip(f"no mount namespace may be made here: {os.strerror(ctypes.get_errno())}")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)


@pytest.fixture
def over(tmp_path: Path, own_mounts: None) -> Iterator[Over]:
    with ExitStack() as stack:

        def put(pid: int, tid: int, name: str) -> Path:
            theirs = f"/proc/{pid}/task/{tid}/{name}"
            ours = tmp_path / f"{tid}-{name}"
            ours.write_bytes(Path(theirs).read_bytes())
            done = subprocess.run(["mount", "--bind", ours, theirs], capture_output=True)
            if done.returncode != 0:
                pytest.skip("nothing may be mounted there")
            stack.callback(subprocess.run, ["umount", "-l", theirs], check=True)
            return ours

        yield put


def test_without_counts_of_runs_no_wait_and_no_deadlock_is_known(
    start_unprepared: StartTarget, over: Over
) -> None:
    """A deadlock needs two scans of the same sleeps, and only the counts identify a sleep."""
    target = start_unprepared("ring_of_three")
    target.expect("ready")
    target.go_on()
    tids = target.truth().values()
    assert unprepared.scan_until(target.pid, lambda seen: bool(seen.deadlocks))
    for tid in tids:
        over(target.pid, tid, "schedstat").write_bytes(b"0 0 0\n")
    with closing(attach(target.pid)) as source:
        for _ in range(5):
            seen = source.scan()
            assert not any(unprepared.wait_of(seen, tid) for tid in tids)
            assert seen.deadlocks == ()


@pytest.mark.parametrize("name", ["syscall", "schedstat", "stat"])
def test_damaged_lines_about_a_holder_and_a_waiter_give_no_certain_deadlock(
    name: str, start_unprepared: StartTarget, over: Over
) -> None:
    target = start_unprepared("scripted_threads", "stay", "lock a, meet 1, stay", "meet 1, lock a")
    _, *tids = target.truth()["tids"]
    unprepared.scan_until(target.pid, unprepared.all_wait(tids[1:]))
    files = [over(target.pid, tid, name) for tid in tids]
    sound = [file.read_bytes() for file in files]
    with closing(attach(target.pid)) as source:
        for seed in SEEDS:
            for number, file in enumerate(files):
                file.write_bytes(garbled(sound[number], 2 * seed + number))
            seen = source.scan(resolve=True)
            checked(document(seen))
            # A damaged stat may say that the holder has ended, which is a possible deadlock.
            assert not any(found.certain for found in seen.deadlocks)
            assert seen.deadlocks == () or name == "stat"
        for number, file in enumerate(files):
            file.write_bytes(sound[number])
        deadline = time.monotonic() + PATIENCE_S
        while (wait := unprepared.wait_of(source.scan(), tids[1])) is None:
            assert time.monotonic() < deadline, "the damaged lines have a lasting effect"
    # A line with another start time means another thread, so the holder may be unknown.
    assert wait.kind is Kind.MUTEX
    assert wait.holders == (tids[0],) or name == "stat"


@pytest.mark.parametrize(
    "name", [b") Z 1 (", b"a\nb) R 0 0", b"\x1b[2J\x07", b"\xff\xfe\x80", b"((((((((((((((("]
)
def test_a_thread_may_have_any_name(name: bytes) -> None:
    """The name changes neither the wait nor the state of the thread."""
    code = (
        "import ctypes, sys, threading\n"
        "def run():\n"
        "    ctypes.CDLL(None).prctl(15, bytes.fromhex(sys.argv[1]))\n"  # PR_SET_NAME
        "    print(threading.get_native_id(), flush=True)\n"
        "    threading.Event().wait()\n"
        "threading.Thread(target=run, daemon=True).start()\n"
        "input()\n"
    )
    with Target([sys.executable, "-c", code, name.hex()]) as target:
        tid = int(target.line())
        seen = unprepared.scan_until(target.pid, unprepared.all_wait([tid]))
    (thread,) = (thread for thread in seen.threads if thread.tid == tid)
    assert (thread.name, thread.alive) == (clean(name), True)
    assert thread.state is ThreadState.IDLE
    checked(document(seen))


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the code is for that")
def test_a_32_bit_program_is_refused(tmp_path: Path) -> None:
    """The system calls of such a program have other numbers."""
    (tmp_path / "narrow.c").write_text(NO_LIBC_32)
    command = ["cc", "-m32", "-nostdlib", "-static", "-fno-pie", "-no-pie", "-o", "narrow"]
    subprocess.run([*command, "narrow.c"], cwd=tmp_path, check=True)
    with Target([tmp_path / "narrow"]) as target, pytest.raises(LocktopError, match="32-bit"):
        attach(target.pid)
