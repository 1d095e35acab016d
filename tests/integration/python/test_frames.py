"""The Python functions in the stacks of present waits, against Python's own answer."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support import requirements, tool
from support.pythons import PYTHON, PYTHONS, has_mutexes, need_semaphores
from support.targets import PATIENCE_S, Target, source_of
from support.watched import Need

from locktop.collector.linux.procfs import thread_runs
from locktop.collector.model import Snapshot
from locktop.collector.sources.attach import attach
from locktop.collector.sources.launch import preload_environment
from locktop.collector.symbols.bounded_worker import BoundedWorker
from locktop.collector.symbols.python.frame_reader import PythonReader, new_worker

StartPython = Callable[..., Target]


#: With the library, and without it.
both_ways = pytest.mark.parametrize("prepared", [True, False], ids=["prepared", "unprepared"])


@pytest.fixture
def start_python() -> Iterator[StartPython]:
    """Starts a Python program of tests/targets."""
    started: list[Target] = []

    def start(name: str, python: str = PYTHON, prepared: bool = True) -> Target:
        if not Path(python).exists():
            pytest.skip(f"{python} is not installed")
        command = [python, str(source_of(name))]
        started.append(Target(command, preload_environment(None) if prepared else None))
        return started[-1]

    yield start
    for target in started:
        target.stop()


def python_stack(snapshot: Snapshot, tid: int) -> list[list[str | int | None]]:
    """Return the Python functions of a thread's stack."""
    (thread,) = [thread for thread in snapshot.threads if thread.tid == tid]
    stack = snapshot.stacks.get(thread.waiting_for.stack, ()) if thread.waiting_for else ()
    return [[f.function, f.file, f.line] for f in stack if f.module == "python"]


@both_ways
@pytest.mark.parametrize("python", PYTHONS)
def test_the_functions_are_those_that_python_knows(
    python: str, prepared: bool, start_python: StartPython
) -> None:
    target = start_python("python_known_stacks", python, prepared)
    target.expect("ready")
    with closing(attach(target.pid)) as source:
        snapshot = source.scan(resolve=True)
    target.go_on()
    truth = target.truth()
    assert {tid: python_stack(snapshot, int(tid)) for tid in truth} == truth
    assert snapshot.source == ("preload" if prepared else "proc")
    assert not [note for note in snapshot.notes if "Python" in note]


def test_c_functions_stay_in_the_stack_without_those_of_the_interpreter(
    start_python: StartPython,
) -> None:
    requirements.libc_debug()  # names start_thread
    target = start_python("python_known_stacks")
    target.expect("ready")
    document = tool.snapshot(target.pid)
    stacks = [
        tool.functions(document, thread["waiting_for"]["stack"])
        for thread in document["threads"]
        if thread["waiting_for"]
    ]
    (sorting,) = [stack for stack in stacks if "sorting" in stack]
    assert "start_thread" in sorting
    assert sorting.index("by_key") < sorting.index("sorting") < sorting.index("start_thread")
    between = sorting[sorting.index("by_key") + 1 : sorting.index("sorting")]
    interpreter = [name for name in between if re.match("_?Py|.*vectorcall", name)]
    assert interpreter == []
    assert not [frame for stack in stacks for frame in stack if "_PyEval" in frame]
    counted = {entry["stack"] for lock in document["locks"] for entry in lock["wait_stacks"]}
    assert all(stack < 1 << 32 for stack in counted), "counted stacks keep their recorded ids"

    def is_named(document: dict[str, Any]) -> bool:
        names = {lock["name"] for lock in document["locks"] if lock["waiters"]}
        return "Lock in task (python_known_stacks.py:21)" in names

    # On a busy machine the names may come later than the first snapshot waits.
    tool.scan_until(target.pid, is_named, "the lock's name")


@both_ways
def test_the_functions_appear_in_later_scans_without_a_request(
    prepared: bool, start_python: StartPython
) -> None:
    target = start_python("python_known_stacks", prepared=prepared)
    target.expect("ready")
    target.go_on()
    truth = target.truth()
    deadline = time.monotonic() + 2 * PATIENCE_S
    with closing(attach(target.pid)) as source:
        found: dict[str, object] = {}
        names: set[str] = set()
        while found != truth or "Lock in task (python_known_stacks.py:21)" not in names:
            assert time.monotonic() < deadline, (found, names)
            time.sleep(0.02)  # leaves the CPU to the reader of Python's frames
            snapshot = source.scan()
            found = {tid: python_stack(snapshot, int(tid)) for tid in truth}
            names = {lock.name for lock in snapshot.locks if lock.waiters}
        stacks = {t.tid: t.waiting_for.stack for t in snapshot.threads if t.waiting_for}
        again = {t.tid: t.waiting_for.stack for t in source.scan().threads if t.waiting_for}
        assert stacks == again, "a stack keeps its id"


@both_ways
def test_a_lock_with_many_short_waits_has_a_name_and_is_a_lock(
    prepared: bool, start_python: StartPython
) -> None:
    """The functions of most waits are unknown. A few known ones are enough."""
    target = start_python("python_threads_take_turns", prepared=prepared)
    target.expect("ready")
    deadline = time.monotonic() + PATIENCE_S
    name = ""
    with closing(attach(target.pid)) as source:
        while name != "Lock in handles (python_threads_take_turns.py:16)":
            assert time.monotonic() < deadline, name
            time.sleep(0.1)  # lets other threads come to new waits
            snapshot = source.scan()
            most = max(snapshot.locks, key=lambda lock: len(lock.waiters))
            name = most.name
        waits = [thread.waiting_for for thread in snapshot.threads if thread.waiting_for]
        assert not any(wait.idle for wait in waits if wait.lock == most.id)
        assert most.used_as_lock
        if has_mutexes(PYTHON):
            return  # each wait of a thread has the same address, for whichever lock
        snapshot = source.scan()
        (lock,) = [lock for lock in snapshot.locks if lock.id == most.id]
        assert (lock.name, lock.used_as_lock) == (name, True), "later scans keep the finding"


@both_ways
def test_a_wait_never_has_the_functions_of_another(
    prepared: bool, start_python: StartPython
) -> None:
    need_semaphores(PYTHON)  # else all waits of a thread have one address
    target = start_python("python_alternating_waits", prepared=prepared)
    tid = int(target.line())
    seen: dict[int, set[str]] = {}
    deadline = time.monotonic() + 2 * PATIENCE_S
    with closing(attach(target.pid)) as source:
        while len(seen) < 2 or not all(seen.values()):
            assert time.monotonic() < deadline, seen
            time.sleep(0.02)  # leaves the CPU to the target and to the reader of Python's frames
            snapshot = source.scan()
            (thread,) = [thread for thread in snapshot.threads if thread.tid == tid]
            functions = [str(frame[0]) for frame in python_stack(snapshot, tid)]
            if thread.waiting_for and functions:
                seen.setdefault(thread.waiting_for.lock, set()).add(functions[0])
    assert sorted(map(sorted, seen.values())) == [["waits_for_first"], ["waits_for_second"]]


def test_with_short_lived_threads_a_stack_is_right_or_missing(
    start_python: StartPython,
) -> None:
    target = start_python("python_threads_come_and_go")
    tid, wanted = int(target.line()), ("waits", "called", "begins")
    deadline, right = time.monotonic() + 2 * PATIENCE_S, 0
    with closing(new_worker()) as worker:
        while right < 10:
            assert time.monotonic() < deadline
            reader = PythonReader(target.pid, worker)  # one reader gives up after some failures
            reader.ask()
            runs = (reader.answer(PATIENCE_S) or {}).get(tid)
            if runs is not None:
                assert tuple(frame.function for run in runs for frame in run)[:3] == wanted
                right += 1


def test_the_worker_tells_how_often_a_thread_ran(start_python: StartPython) -> None:
    target = start_python("python_known_stacks")
    target.expect("ready")
    target.go_on()
    tids = [int(tid) for tid in target.truth()]
    with closing(PythonReader(target.pid)) as reader:
        reader.ask([*tids, 1 << 30])
        assert reader.answer(PATIENCE_S) is not None
        assert reader.runs == {tid: thread_runs(target.pid, tid) for tid in tids}, "all wait"


def send(worker: BoundedWorker, number: signal.Signals) -> None:
    assert worker.pid is not None
    os.kill(worker.pid, number)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
def test_the_worker_answers_that_it_may_not_read_the_process(need: Need) -> None:
    setpriv = str(need("setpriv", "util-linux"))
    nobody = [setpriv, "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    powerless = [setpriv, "--bounding-set=-all", "--inh-caps=-all"]
    sleeper = subprocess.Popen([*nobody, shutil.which("sleep") or "sleep", "600"])
    try:
        child = [sys.executable, "-P", "-m", "locktop.collector.symbols.python.pystack_worker"]
        request = str(sleeper.pid).encode()
        while Path(f"/proc/{sleeper.pid}/comm").read_text() != "sleep\n":
            time.sleep(0.01)
        said = subprocess.run(
            [*powerless, *child],
            input=len(request).to_bytes(4, "little") + request,
            capture_output=True,
        )
        assert said.stdout[4:] == b'{"failed": "forbidden", "runs": {}}'
    finally:
        sleeper.kill()
        sleeper.wait()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
@pytest.mark.parametrize("user", [65534, 0])
def test_the_worker_runs_as_the_user_of_the_process(user: int, need: Need) -> None:
    if not Path("/usr/bin/python3").exists():
        pytest.skip("/usr/bin/python3 is not installed")
    if Path("/proc/sys/kernel/yama/ptrace_scope").exists():
        pytest.skip("Yama forbids this user to read the process")
    as_user = [need("setpriv", "util-linux"), "--reuid", user, "--regid", user, "--clear-groups"]
    code = "import sys; print('ready', flush=True); sys.stdin.read()"
    with Target([*map(str, as_user), "/usr/bin/python3", "-c", code]) as target:
        target.expect("ready")
        worker = new_worker()
        with closing(PythonReader(target.pid, worker)) as reader:
            reader.ask()
            assert reader.answer(PATIENCE_S) == {target.pid: ((("<module>", "<string>", 1, ""),),)}
            status = Path(f"/proc/{worker.pid}/status").read_text()
            (uids,) = re.findall(r"^Uid:(.*)$", status, re.MULTILINE)
            assert uids.split() == [str(user)] * 4


def test_hurry_ends_the_wait_for_an_answer(start_python: StartPython) -> None:
    target = start_python("python_known_stacks")
    target.expect("ready")
    worker = new_worker()
    with closing(PythonReader(target.pid, worker)) as reader:
        reader.ask()
        send(worker, signal.SIGSTOP)  # perhaps after the first answer, and before the second
        reader.answer(0.1)
        reader.ask()
        answers: list[object] = []
        waiter = threading.Thread(target=lambda: answers.append(reader.answer(1e6)), daemon=True)
        waiter.start()
        reader.hurry()
        waiter.join(PATIENCE_S)
        assert answers == [None]


def test_a_killed_worker_is_started_again_until_the_reader_gives_up(
    start_python: StartPython,
) -> None:
    target = start_python("python_known_stacks")
    target.expect("ready")
    worker = new_worker()
    with closing(PythonReader(target.pid, worker)) as reader:
        for _ in range(2):
            reader.ask()
            send(worker, signal.SIGKILL)
            assert reader.answer(PATIENCE_S) is None
            assert not reader.gave_up
        reader.ask()
        assert len(reader.answer(PATIENCE_S) or ()) == 6
        for _ in range(10):
            reader.ask()
            send(worker, signal.SIGKILL)
            assert reader.answer(PATIENCE_S) is None
        assert reader.gave_up
        assert "failed again" in reader.note
        reader.ask()
        assert worker.pid is None, "no further worker is started"


def test_the_worker_ends_at_the_end_of_its_input() -> None:
    child = subprocess.Popen(
        [sys.executable, "-P", "-m", "locktop.collector.symbols.python.pystack_worker"],
        stdin=subprocess.PIPE,
    )
    assert child.stdin is not None
    child.stdin.close()
    assert child.wait(PATIENCE_S) == 0
