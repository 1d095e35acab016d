"""The annotations of locktop.h: names of locks, marks, and locks of a program's own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support import requirements, tool
from support.targets import StartTarget, Target

from locktop.collector.sources.launch import preload_environment

OWN = "own ?[31mlock"  # the snapshot shows the escape sequence of the name as "?"


def waited_for(document: dict[str, Any]) -> bool:
    return bool(tool.lock_named(document, OWN)["waiters"])


@pytest.mark.parametrize("level", ["counting", "contended", "blocks", "all"])
def test_the_figures_of_a_programs_own_lock_are_those_of_the_program(
    level: str, start_target: StartTarget
) -> None:
    target = start_target("annotated_own_lock", level=level)
    truth = target.truth()
    document = tool.scan_until(target.pid, waited_for, "a wait for the program's own lock")
    lock = tool.lock_named(document, OWN)
    assert lock["kind"] == "custom"
    assert (lock["acquisitions"], lock["contended"]) == (truth["acquisitions"], truth["contended"])
    assert lock["trylock_failed"] == truth["tries"]
    waiter = tool.thread_of(document, truth["waiter"])
    assert (lock["holders"], lock["waiters"]) == ([truth["holder"]], [truth["waiter"]])
    assert waiter["waiting_for"]["kind"] == "custom", "the wait is for the lock, not for its futex"
    not_over = waiter["waiting_for"]["since_s"]
    assert lock["wait_s"] - not_over == pytest.approx(truth["wait_s"], rel=0.05)
    assert lock["hold_s"] >= truth["hold_s"] * 0.95
    if level != "counting":
        stack = tool.functions(document, waiter["waiting_for"]["stack"])
        assert stack[:2] == ["own_take", "waiter"]
        frame = document["stacks"][str(waiter["waiting_for"]["stack"])][0]
        assert frame["file"] == "annotated_own_lock.c", "the program's file, not the header"
    assert document["deadlocks"] == []
    target.go_on()
    assert target.finish() == (0, ["ok"])


def test_an_own_lock_without_waits_is_not_contended(start_target: StartTarget) -> None:
    target = start_target("annotated_own_lock")
    target.truth()
    document = tool.scan_until(target.pid, waited_for, "a wait for the program's own lock")
    second = tool.lock_named(document, "g_second")
    assert (second["acquisitions"], second["contended"], second["wait_s"]) == (100, 0, 0)
    readers = tool.lock_named(document, "g_shared")
    assert (readers["acquisitions"], readers["contended"], readers["holders"]) == (2, 0, [])


def test_a_name_lasts_as_long_as_its_lock(start_target: StartTarget) -> None:
    target = start_target("annotated_own_lock")
    target.truth()
    document = tool.scan_until(target.pid, waited_for, "a wait for the program's own lock")
    assert tool.lock_named(document, "on the heap")["kind"] == "mutex"
    assert "for a while" not in [lock["name"] for lock in document["locks"]]
    assert tool.lock_named(document, f"/locktop-test-{target.pid}")["kind"] == "sem"


def test_a_mark_has_its_text_and_its_thread(start_target: StartTarget) -> None:
    target = start_target("annotated_own_lock")
    truth = target.truth()
    document = tool.scan_until(target.pid, waited_for, "a wait for the program's own lock")
    longer = "a mark that is much longer than what is kept of a mark in the ring"
    assert [mark["text"] for mark in document["marks"]] == [longer[:44], "names are given"]
    assert {mark["tid"] for mark in document["marks"]} == {truth["holder"]}
    assert document["lost_events"] == 0
    page = tool.run("snapshot", "-p", target.pid, "--format", "text").stdout
    assert "MARKS" in page
    assert "names are given" in page


def test_a_cycle_of_own_locks_is_possible_at_most(start_target: StartTarget) -> None:
    target = start_target("annotated_locks_cross")
    target.expect("crossed")

    def crossed(document: dict[str, Any]) -> bool:
        return bool(document["deadlocks"])

    document = tool.scan_until(target.pid, crossed, "the cycle")
    # Both threads requested and took their locks at one call. The call site of a hold is the
    # request.
    for thread in document["threads"]:
        if wait := thread["waiting_for"]:
            leaf = document["stacks"][str(wait["stack"])][0]
            assert [held["site"] for held in thread["held"]] == [leaf["address"]]
    found = document["deadlocks"]
    assert [(one["certain"], len(one["cycle"])) for one in found] == [(False, 2)]
    assert "may give up" in found[0]["doubt"]


def test_the_cxx_guards_release_their_locks_also_after_an_exception(
    start_target: StartTarget,
) -> None:
    target = start_target("annotated_cxx_guards")
    target.expect("ready")
    document = tool.snapshot(target.pid)
    lock = tool.lock_named(document, "g_guarded")
    assert (lock["acquisitions"], lock["contended"], lock["holders"]) == (15, 0, [])
    # A lock() that threw an exception leaves no waiter behind.
    assert lock["waiters"] == []
    assert tool.lock_named(document, "Session::mutex")["holders"] == [target.pid]
    assert target.process.stdin is not None
    target.go_on()
    assert target.process.wait(tool.PATIENCE_S) == 0


PYTHON = """
import ctypes, sys
own = ctypes.CDLL(None)
lock = ctypes.c_int()
if hasattr(own, "locktop_name"):
    own.locktop_name(ctypes.byref(lock), b"of Python")
    own.locktop_mark(b"reload begins")
    for _ in range(7):
        own.locktop_acquire(ctypes.byref(lock))
        own.locktop_acquired(ctypes.byref(lock))
        own.locktop_released(ctypes.byref(lock))
print("ready", flush=True)
sys.stdin.read()
"""


def test_python_can_call_the_annotations(tmp_path: Path) -> None:
    with Target([sys.executable, "-c", PYTHON], preload_environment(None)) as target:
        target.expect("ready")
        document = tool.snapshot(target.pid)
        assert tool.lock_named(document, "of Python")["acquisitions"] == 7
        assert [mark["text"] for mark in document["marks"]] == ["reload begins"]
        target.finish()
    with Target([sys.executable, "-c", PYTHON]) as target:
        target.expect("ready")
        assert target.finish()[0] == 0


HEADER = tool.run("env", "--include").stdout.strip()
NAMES_ITSELF = """
#include <locktop.h>
#include <stdio.h>
static volatile int lock; /* as a pthread_spinlock_t */
int main(void)
{
    locktop_name(&lock, "named");
    locktop_acquire(&lock);
    locktop_acquired(&lock);
    locktop_released(&lock);
    puts("ready");
    fflush(stdout);
    return getchar() == EOF ? 1 : 0;
}
"""


@pytest.mark.parametrize(
    "flags",
    [
        ["-O0"],
        ["-O2", "-flto"],
        ["-O2", "-no-pie", "-fno-pie"],
        ["-O0", "-no-pie", "-fno-pie"],
        ["-O2", "-fno-plt", "-Wl,-z,now"],
        ["-x", "c++", "-O2"],
        ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror"],
    ],
    ids=" ".join,
)
def test_the_header_works_with_every_build(flags: list[str], tmp_path: Path) -> None:
    if "c++" in flags:
        requirements.command("c++")
    source, program = tmp_path / "named.c", tmp_path / "named"
    source.write_text(NAMES_ITSELF)
    subprocess.run(["cc", *flags, f"-I{HEADER}", source, "-o", program], check=True)
    with Target([program]) as target:
        target.expect("ready")
        target.go_on()
        assert target.process.wait(tool.PATIENCE_S) == 0
    with Target([program], preload_environment(None)) as target:
        target.expect("ready")
        names = [lock["name"] for lock in tool.snapshot(target.pid)["locks"]]
        assert "named" in names, json.dumps(names)
        target.go_on()
        assert target.process.wait(tool.PATIENCE_S) == 0


def test_a_static_program_with_annotations_runs(tmp_path: Path) -> None:
    source, program = tmp_path / "named.c", tmp_path / "named"
    source.write_text(NAMES_ITSELF)
    subprocess.run(["cc", "-static", f"-I{HEADER}", source, "-o", program], check=True)
    with Target([program]) as target:
        target.expect("ready")
        target.go_on()
        assert target.process.wait(tool.PATIENCE_S) == 0
