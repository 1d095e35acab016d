"""A JVM: its threads park and block on mutexes and conditions of libc."""

from __future__ import annotations

import subprocess
import time
from contextlib import closing
from pathlib import Path

import pytest
from support import unprepared, watched
from support.targets import PATIENCE_S, Target, source_of
from support.watched import Need

from locktop.collector.model import Kind, Snapshot, Wait
from locktop.collector.sources.attach import attach
from locktop.collector.sources.launch import preload_environment

pytestmark = pytest.mark.big

THREADS, ROUNDS = 6, 30000

WAITS = """
public class Waits {
    public static void main(String[] arguments) throws Exception {
        Object lock = new Object(), other = new Object();
        synchronized (lock) {
            Thread enters = new Thread(() -> { synchronized (lock) { } }, "enters");
            Thread waits = new Thread(() -> {
                synchronized (other) { try { other.wait(); } catch (InterruptedException e) { } }
            }, "waits");
            enters.start();
            waits.start();
            while (enters.getState() != Thread.State.BLOCKED
                   || waits.getState() != Thread.State.WAITING)
                Thread.sleep(10);
            System.out.println("ready");
            Thread.sleep(600_000);
        }
    }
}
"""
#: The idle rule of each thread's wait, by thread name.
WANTED = {
    "enters": "java-monitor-enter",
    "waits": "java-wait",
    "C2 CompilerThre": "java-pool",
    "GC Thread#0": "java-pool",
}


#: Threads of JavaLocksCross.java that wait for ever.
PARKED = ("monitor-1", "monitor-2", "lock-1", "lock-2", "parked")


def test_threads_of_java(need: Need) -> None:
    command = [str(need("java", "default-jdk-headless")), str(source_of("JavaThreadsAddUp"))]
    without, seen = watched.run(command), watched.run(command, "contended")
    each = sum(range(ROUNDS))
    wanted = f"{THREADS * each} {sum(range(THREADS)) * ROUNDS} {each}\n"
    assert (without.status, without.output) == (seen.status, seen.output) == (0, wanted)
    assert watched.threads_seen(seen) > THREADS
    names = {thread["name"] for found in seen.scans for thread in found["threads"]}
    assert any(name.startswith("GC Thread") for name in names), names
    assert watched.total(seen.last, "acquisitions", "mutex") > 0
    assert watched.total(seen.last, "wait_s", "cond") > 0, "parked threads"


def test_waits_of_java_threads_have_their_idle_rules(need: Need, tmp_path: Path) -> None:
    source = tmp_path / "Waits.java"
    source.write_text(WAITS)
    command = [str(need("java", "default-jdk-headless")), str(source)]
    with Target(command, preload_environment("contended")) as target:
        target.expect("ready")
        deadline = time.monotonic() + PATIENCE_S
        with closing(attach(target.pid)) as source_:
            while True:
                found = source_.scan(resolve=True)
                why = {thread.name: found.why.get(thread.tid) for thread in found.threads}
                if WANTED.items() <= why.items():
                    break
                assert time.monotonic() < deadline, why


def test_scans_without_the_library(need: Need, tmp_path: Path) -> None:
    """The sampling source sees monitors and locks of Java as conditions, which have no owner."""
    command = [str(need("java", "default-jdk-headless")), str(source_of("JavaLocksCross"))]
    with Target(command) as target:
        target.expect("ready")
        said, snapshots = unprepared.scans_while(target.pid, lambda: threads_said(need, target.pid))
        assert "Found 2 deadlocks" in said, "deadlocks of Java locks, which only the JVM knows"
        assert not any(found.certain for seen in snapshots for found in seen.deadlocks)
        target.go_on()
        added, together = target.line(), target.line()
        assert added == together
        kinds = unprepared.beside_gdb(target.pid, need("gdb"), tmp_path)
        assert kinds[Kind.COND] >= len(PARKED)
        assert {Kind.SEM, Kind.JOIN} <= kinds.keys()
        # A thread that wants a monitor wakes now and then to try the monitor.
        seen = unprepared.scan_until(target.pid, lambda seen: set(PARKED) <= parked(seen).keys())
        for name, wait in parked(seen).items():
            assert (wait.kind, wait.holders) == (Kind.COND, ()), name
        assert "Found 2 deadlocks" in threads_said(need, target.pid), "the JVM continues to work"


def parked(seen: Snapshot) -> dict[str, Wait]:
    """Return the waits of the threads that are parked, by name."""
    return {
        thread.name: thread.waiting_for
        for thread in seen.threads
        if thread.name in PARKED and thread.waiting_for is not None
    }


def threads_said(need: Need, pid: int) -> str:
    """Return the JVM's own list of its threads."""
    jcmd = str(need("jcmd", "default-jdk-headless"))
    command = [jcmd, str(pid), "Thread.print"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_compiled_code_has_the_names_of_the_perf_map(need: Need) -> None:
    command = [str(need("java", "default-jdk-headless")), str(source_of("JavaMonitorParked"))]
    jcmd = str(need("jcmd", "default-jdk-headless"))
    with Target(command, preload_environment("contended")) as target:
        target.expect("ready")
        written = Path(f"/tmp/perf-{target.pid}.map")
        try:
            subprocess.run([jcmd, str(target.pid), "Compiler.perfmap"], check=True)
            text = written.read_text()
            deadline, outermost = time.monotonic() + PATIENCE_S, None
            with closing(attach(target.pid)) as source:
                while outermost is None or not outermost.function:
                    assert time.monotonic() < deadline
                    found = source.scan(resolve=True)
                    for thread in found.threads:
                        if thread.name == "parker" and thread.waiting_for:
                            outermost = found.stacks[thread.waiting_for.stack][-1]
            assert outermost.module == "jit"
            assert any(line.endswith(f" {outermost.function}") for line in text.splitlines())
        finally:
            written.unlink(missing_ok=True)
