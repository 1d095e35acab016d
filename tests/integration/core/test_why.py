"""`locktop why` on cores: the chain within the process, and where it leaves the process."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from support import requirements, tool
from support.cores import core_of
from support.eventually import until
from support.targets import Compiler, Target

from locktop.collector.linux import procfs, syscalls

_MUTEXES = ("stay", "lock a, meet 1, lock b", "lock b, meet 1, lock a")
_HEALTHY = ("stay", "lock a, meet 1, stay", "meet 1, lock a")
#: A thread waits for a lock whose owner reads from a pipe.
_READER = """\
import os, threading
lock, locked = threading.RLock(), threading.Event()
begin, end = os.pipe()
def reader():
    with lock:
        locked.set()
        os.read(begin, 1)
threading.Thread(target=reader, name="reader", daemon=True).start()
locked.wait()
print("ready", begin, flush=True)
with lock:
    pass
"""


def _core_of_scripts(scripts: Sequence[str], compiler: Compiler, directory: Path) -> Path:
    with Target([compiler.program("scripted_threads"), *scripts]) as target:
        waiter = target.truth()["tids"][2]

        def waits_for_mutex() -> bool:
            document = json.loads(tool.run("snapshot", "-p", target.pid).stdout)
            waits = {thread["tid"]: thread["waiting_for"] for thread in document["threads"]}
            return bool(waits.get(waiter)) and len(document["deadlocks"]) == (scripts is _MUTEXES)

        until(waits_for_mutex, "the wait")
        return core_of(target.pid, directory)


@pytest.fixture(scope="module")
def deadlocked(compiler: Compiler, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _core_of_scripts(_MUTEXES, compiler, tmp_path_factory.mktemp("core"))


def test_a_deadlock_of_two_mutexes_has_its_chain(deadlocked: Path) -> None:
    done = tool.run("why", str(deadlocked))
    text = " ".join(done.stdout.split())
    assert done.returncode == 1, done.stderr
    assert text.startswith(f"deadlock: scripted_threads {deadlocked.suffix[1:]} ")
    assert "has it and waits for" in text
    assert "nobody can go on" in text
    assert "scripted_threads.c:" in text
    assert "back to thread" in text


def test_json_has_the_ids_of_the_process_itself(deadlocked: Path) -> None:
    done = tool.run("why", str(deadlocked), "--format", "json")
    (chain,) = json.loads(done.stdout)["chains"]
    pid = int(deadlocked.suffix[1:])
    assert chain["verdict"] == "deadlock"
    assert chain["pid"] == pid
    assert {step["pid"] for step in chain["steps"]} == {pid}
    first, second = chain["steps"]
    assert first["providers"] == [second["tid"]]
    assert second["providers"] == [first["tid"]]


def test_the_graph_has_both_waits(deadlocked: Path) -> None:
    requirements.command("dot", "graphviz")
    graph = tool.run("why", str(deadlocked), "--format", "dot").stdout
    done = subprocess.run(["dot", "-Tplain"], input=graph, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert sum(line.startswith("edge ") for line in done.stdout.splitlines()) == 2


def test_a_healthy_core_has_no_deadlock(compiler: Compiler, tmp_path: Path) -> None:
    done = tool.run("why", str(_core_of_scripts(_HEALTHY, compiler, tmp_path)))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("no deadlock: scripted_threads ")
    assert "has it and waits for a signal; a signal may end that" in " ".join(done.stdout.split())


def test_a_chain_that_leaves_the_process_says_so(tmp_path: Path) -> None:
    with Target([sys.executable, "-c", _READER]) as target:
        descriptor = target.line().split()[-1]

        def all_sleep() -> bool:
            calls = [
                syscalls.parse(procfs.thread_syscall(target.pid, tid))
                for tid in procfs.tids(target.pid)
            ]
            names = [syscalls.name(call.number) for call in calls if call is not None]
            return sorted(names) == ["futex", "read"]

        until(all_sleep, "both calls")
        core = core_of(target.pid, tmp_path)
    done = tool.run("why", str(core))
    text = " ".join(done.stdout.split())
    assert done.returncode == 0, done.stderr
    assert f"reads from descriptor {descriptor}; a core does not say what that is." in text
    assert "reader" in text


def test_a_damaged_core_is_one_line(deadlocked: Path, tmp_path: Path) -> None:
    path = tmp_path / "core"
    for data, says in (
        (deadlocked.read_bytes()[:40], "this core is damaged"),
        (b"no core", "this is no core dump"),
    ):
        path.write_bytes(data)
        done = tool.run("why", str(path))
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.count("\n") == 1
        assert says in done.stderr


def test_a_cut_core_is_no_all_clear(deadlocked: Path, tmp_path: Path) -> None:
    data = deadlocked.read_bytes()
    notes = data.find(b"CORE\0")
    path = tmp_path / "core"
    path.write_bytes(data[: max(notes, len(data) - 4096)])
    assert tool.run("why", str(path)).returncode in (1, 2, 3)


def test_a_core_beside_a_process_is_refused(deadlocked: Path) -> None:
    done = tool.run("why", str(deadlocked), "1")
    assert done.returncode == 2
    assert done.stderr == "locktop: give one core alone, or processes\n"
