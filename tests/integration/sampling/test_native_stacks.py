"""Call stacks read from outside have the frames that gdb finds, or the first of them."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from support import gdb, servers
from support.targets import PATIENCE_S, Compiler, StartTarget, Target
from support.watched import Need

from locktop.collector.linux import process_memory, procfs, syscalls
from locktop.collector.symbols.mapped_file import NotMapped
from locktop.collector.symbols.unwind import code_map
from locktop.collector.symbols.unwind.cursor import Unwound
from locktop.collector.symbols.unwind.unwinder import Unwinder

SP, PC = 7, 16  # x86-64's, by DWARF's numbers
PLAIN = ("-O2", "-fomit-frame-pointer")
FRAME_POINTERS = ("-O2", "-fno-omit-frame-pointer", "-fstack-clash-protection")
BUILDS = {
    "without frame pointers": PLAIN,
    "with frame pointers": FRAME_POINTERS,
    "not optimised": ("-O0",),
    "linked statically": (*FRAME_POINTERS, "-static"),
    "without the linker's table": (*PLAIN, "-Wl,--no-eh-frame-hdr"),
    "with .debug_frame only": (
        *FRAME_POINTERS, "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-gz",
    ),
}  # fmt: skip
#: Functions whose frame has a size that only the running program knows. A stack may end there.
DYNAMIC = {"takes_some", "sized", "stale"}
#: Functions that align their frame. A stack may end there.
ALIGNED = {"aligned", "many_arguments", "chooses"}

PYTHON = """\
import threading, time
taken = threading.Lock()
taken.acquire()
def sorts():
    sorted([2, 1], key=lambda _: taken.acquire())
for work in taken.acquire, lambda: time.sleep(1e6), sorts:
    threading.Thread(target=work, daemon=True).start()
print("ready", flush=True)
input()
"""


def agrees(found: Unwound | None, truth: list[int]) -> Unwound:
    """Check that the stack is true, and that it says whether it is complete; return it."""
    assert found is not None
    assert list(found.addresses) == truth[: len(found.addresses)], found
    assert found.complete == (len(found.addresses) == len(truth)), found
    assert bool(found.reason) != found.complete
    return found


def stacks(unwinder: Unwinder, pid: int) -> dict[int, Unwound]:
    """Return the stacks of all threads at a moment when all of them sleep."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        found = {tid: unwinder.blocked_stack(tid) for tid in procfs.tids(pid)}
        asleep = {tid: stack for tid, stack in found.items() if stack is not None}
        if len(asleep) == len(found):
            return asleep
        assert time.monotonic() < deadline, "the threads never sleep at the same time"


def beside_gdb(target: Target, need: Need, directory: Path) -> dict[int, Unwound]:
    """Return the stacks of all threads, after a comparison with gdb's.

    The comparison is valid if the stacks are the same before and after gdb's visit.
    """
    unwinder = Unwinder(target.pid)
    deadline = time.monotonic() + PATIENCE_S
    found = stacks(unwinder, target.pid)
    while True:
        truth = gdb.stacks(need("gdb"), target.pid, directory)
        before, found = found, stacks(unwinder, target.pid)
        if found == before:
            break
        assert time.monotonic() < deadline, "the stacks always change"
    assert truth.keys() == found.keys()
    return {tid: agrees(found[tid], truth[tid]) for tid in found}


@pytest.mark.parametrize("build", BUILDS)
def test_stacks_of_sleeping_threads_agree_with_gdb(
    build: str, start_unprepared: StartTarget, need: Need, tmp_path: Path
) -> None:
    target = start_unprepared("asleep_in_stack_shapes", flags=BUILDS[build])
    tids = target.truth()
    found = beside_gdb(target, need, tmp_path)
    cut = {way for way, tid in tids.items() if not found[tid].complete}
    assert cut <= DYNAMIC | ALIGNED
    assert len(found[tids["deep"]].addresses) > 200
    assert found[tids["deep"]].exact == (0,)
    exact = found[tids["interrupted"]].exact
    assert len(exact) == 2, "the innermost frame, and the frame that the signal interrupted"


def gcc_version() -> int:
    said = subprocess.run(["cc", "-dumpversion"], capture_output=True, text=True, check=True)
    return int(said.stdout.split(".")[0])


def test_the_code_gives_the_frame_size_if_no_frame_saved_the_register(
    start_unprepared: StartTarget,
) -> None:
    target = start_unprepared("asleep_in_stack_shapes", flags=FRAME_POINTERS)
    tids = target.truth()
    unwinder = Unwinder(target.pid)
    for way in ("reads", "large", "aligned", "many_arguments", "polls", "polls_many", "rests"):
        found = unwinder.blocked_stack(tids[way])
        assert found is not None
        # gcc 16 aligns the frame of a function with many arguments by a register that the code of
        # no caller tells. Such a stack ends there, and says so.
        is_cut = found.reason.startswith("a frame counts from a register that is not known")
        assert found.complete or (way == "many_arguments" and gcc_version() >= 16 and is_cut), way


@pytest.mark.parametrize("build", ["without frame pointers", "not optimised"])
def test_stacks_during_exceptions_agree_with_gdb(
    build: str, start_unprepared: StartTarget, need: Need, tmp_path: Path
) -> None:
    target = start_unprepared("asleep_during_exceptions", flags=BUILDS[build])
    tids = target.truth()["tids"]
    found = beside_gdb(target, need, tmp_path)
    assert all(found[tid].complete for tid in tids[4:]), "their frames have a fixed size"


@pytest.mark.parametrize("flags", [(), ("-O",), ("-O", "-Cforce-frame-pointers=yes")])
def test_stacks_of_rust_agree_with_gdb(
    flags: tuple[str, ...], start_unprepared: StartTarget, need: Need, tmp_path: Path
) -> None:
    need("rustc")
    target = start_unprepared("rust_primitives", "mutex", flags=flags)
    target.truth()
    assert all(stack.complete for stack in beside_gdb(target, need, tmp_path).values())


def test_stacks_of_python_agree_with_gdb(need: Need, tmp_path: Path) -> None:
    with Target([sys.executable, "-c", PYTHON]) as target:
        target.expect("ready")
        assert all(stack.complete for stack in beside_gdb(target, need, tmp_path).values())


def test_stacks_of_memcached_agree_with_gdb(need: Need, tmp_path: Path) -> None:
    port = servers.free_port()
    command = [str(need("memcached")), "-u", "root", "-l", "127.0.0.1", "-p", str(port), "-U", "0"]
    with servers.running(command, None, lambda: servers.listens(port)) as server:
        assert all(stack.complete for stack in beside_gdb(server, need, tmp_path).values())


# ---- files that are missing, threads that change ----


def test_stacks_need_no_file_of_a_library(
    start_unprepared: StartTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the file was replaced, the memory of the process still has the code."""
    target = start_unprepared("asleep_in_stack_shapes", flags=PLAIN)
    tids = target.truth()
    before = {way: Unwinder(target.pid).blocked_stack(tid) for way, tid in tids.items()}

    def refuse(pid: int, mapping: object) -> None:
        raise NotMapped("was replaced since the process started")

    monkeypatch.setattr(code_map, "open_mapped", refuse)
    unwinder = Unwinder(target.pid)
    assert {way: unwinder.blocked_stack(tid) for way, tid in tids.items()} == before


def test_known_stacks_are_read_together_and_are_the_same(start_unprepared: StartTarget) -> None:
    """The unwinder finds a stack again only from the code and the stack pointer of a known walk."""
    target = start_unprepared("asleep_in_stack_shapes", flags=PLAIN)
    tids = target.truth()
    unwinder = Unwinder(target.pid)
    calls = {way: syscalls.parse(procfs.thread_syscall(target.pid, tids[way])) for way in tids}
    asleep = {way: call for way, call in calls.items() if call is not None}
    assert unwinder.cached_stacks(asleep.values()) == {}
    alone = {asleep[way]: unwinder.blocked_stack(tids[way]) for way in asleep}
    again = unwinder.cached_stacks(asleep.values())
    assert len(again) > len(asleep) / 2
    assert again.items() <= alone.items()
    elsewhere = [call._replace(sp=call.sp + 8) for call in asleep.values()]
    assert unwinder.cached_stacks(elsewhere) == {}
    target.kill()
    assert unwinder.cached_stacks(asleep.values()) == {}


def test_one_known_stack_gives_the_stacks_of_a_whole_pool(start_unprepared: StartTarget) -> None:
    """The threads sleep in the same functions, with frames at other addresses."""
    target = start_unprepared("six_pools", "7", flags=FRAME_POINTERS)
    target.expect("ready")
    alone = stacks(Unwinder(target.pid), target.pid)
    calls = {tid: syscalls.parse(procfs.thread_syscall(target.pid, tid)) for tid in alone}
    asleep = {tid: call for tid, call in calls.items() if call is not None}
    first: dict[tuple[int, ...], int] = {}
    for tid in asleep:
        first.setdefault(alone[tid].addresses, tid)
    assert len(first) < len(asleep) / 2
    unwinder = Unwinder(target.pid)
    for tid in first.values():
        unwinder.blocked_stack(tid)
    found = unwinder.cached_stacks(asleep.values())
    known = [tid for tid, call in asleep.items() if call in found]
    assert len(known) > len(asleep) / 2
    assert all(unwinder.blocked_stack(tid) == alone[tid] for tid in known)
    assert all(found[asleep[tid]] == alone[tid] for tid in known)


def test_new_code_at_the_address_of_old_code_is_unwound_anew(
    start_unprepared: StartTarget, compiler: Compiler
) -> None:
    built = [
        str(compiler.program("frame_of_size", "-shared", "-fPIC", f"-DSIZE={size}"))
        for size in (2000, 3000)
    ]
    target = start_unprepared("library_replaced", *built)
    first = target.truth()
    unwinder = Unwinder(target.pid)
    before = unwinder.blocked_stack(first["tid"])
    target.go_on()
    second = target.truth()
    assert second["function"] == first["function"]
    # The unwinder reads the memory map again only after a while.
    deadline = time.monotonic() + PATIENCE_S
    while (found := unwinder.blocked_stack(second["tid"])) is None or not found.complete:
        assert time.monotonic() < deadline, found
    assert before is not None
    assert before.complete
    assert found == Unwinder(target.pid).blocked_stack(second["tid"])


def test_a_running_thread_has_no_stack(start_unprepared: StartTarget) -> None:
    target = start_unprepared("holder_activities", "runs")
    target.line()
    target.expect("ready")
    unwinder = Unwinder(target.pid)
    states = {tid: procfs.thread_stat(target.pid, tid).state for tid in procfs.tids(target.pid)}
    running = [tid for tid, state in states.items() if state == "R"]
    assert running
    assert all(unwinder.blocked_stack(tid) is None for tid in running)


def test_an_ended_thread_has_no_stack(start_unprepared: StartTarget) -> None:
    target = start_unprepared("asleep_in_stack_shapes", flags=PLAIN)
    tids = target.truth()
    unwinder = Unwinder(target.pid)
    assert unwinder.blocked_stack(tids["waits"]) is not None
    target.kill()
    assert unwinder.blocked_stack(tids["waits"]) is None
    assert unwinder.blocked_stack(1 << 30) is None


def test_a_truncated_copy_of_a_stack_gives_its_first_frames(start_unprepared: StartTarget) -> None:
    """perf makes such copies. Each length gives the first frames, and no false frame."""
    target = start_unprepared("asleep_in_stack_shapes", flags=PLAIN)
    tid = target.truth()["twenty"]
    unwinder = Unwinder(target.pid)
    whole = unwinder.blocked_stack(tid)
    call = syscalls.parse(procfs.thread_syscall(target.pid, tid))
    assert whole is not None
    assert call is not None
    copy = process_memory.read(target.pid, call.sp, 1 << 16)
    lengths = set()
    for size in range(0, len(copy), 8):
        found = unwinder.sampled_stack({PC: call.pc, SP: call.sp}, copy[:size], call.sp)
        assert found.addresses == whole.addresses[: len(found.addresses)]
        assert found.complete == (found.addresses == whole.addresses)
        lengths.add(len(found.addresses))
        if found.complete:
            break
    assert lengths == set(range(1, len(whole.addresses) + 1))
