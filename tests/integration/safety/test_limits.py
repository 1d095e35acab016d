"""A program with few resources, or in a sandbox, runs on; the tool says what is missing."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from support import tool
from support.comparison import CompareWithUnprepared
from support.targets import Compiler, StartTarget
from support.thoroughness import some

from locktop.collector.native import ffi, lib
from locktop.collector.sources.launch import preload_environment


@pytest.mark.parametrize("how", ["prctl", "seccomp", "raw", "strict", "refused"])
def test_a_sandboxed_program_has_the_same_results(
    how: str, compare_with_unprepared: CompareWithUnprepared
) -> None:
    compare_with_unprepared("seccomp_sandboxed", how)


def test_a_sandboxed_program_has_its_figures_and_a_note(start_target: StartTarget) -> None:
    target = start_target("seccomp_sandboxed", "prctl")
    target.expect("ok")
    document = tool.snapshot(target.pid)
    assert any("confined itself" in note for note in document["notes"])
    lock = tool.lock_named(document, "g_confined")
    assert (lock["acquisitions"], lock["contended"], lock["holders"]) == (500, 0, [])
    assert target.finish() == (0, [])


SELF_INFLICTED = ["fds", "nofile", "fsize", "uid", "euid", "undumpable", "chroot", "unshare"]


@pytest.mark.parametrize("how", SELF_INFLICTED)
def test_a_program_that_restricts_itself_has_its_figures(
    how: str, start_unprepared: StartTarget, start_target: StartTarget
) -> None:
    if os.geteuid() != 0 and how in ("uid", "euid", "chroot", "unshare"):
        pytest.skip("only root may do this")
    assert start_unprepared("grows_under_restrictions", how).finish() == (0, ["ok"])
    target = start_target("grows_under_restrictions", how)
    target.expect("ok")
    document = tool.snapshot(target.pid)
    if how == "undumpable" and os.geteuid() != 0:  # only root may read such a process
        assert any("locks have no names" in note for note in document["notes"])
        (lock,) = [lock for lock in document["locks"] if lock["acquisitions"] == 300]
    else:
        lock = tool.lock_named(document, "g_fought_for")
    assert (lock["acquisitions"], lock["holders"], lock["waiters"]) == (300, [], [])
    assert target.finish() == (0, [])


#: The bytes of one reservation of the library, and the number of reservations that may fail here.
STEP, STEPS = 256 << 10, 100
PAGE = 4096


def notes_in(directory: Path) -> int | None:
    """Return the notes in the header of the only file; None without a file."""
    for path in directory.iterdir():
        with open(path, "rb") as file:
            header = file.read(ffi.sizeof("struct lt_header"))
            return int(ffi.from_buffer("struct lt_header *", header).notes)
    return None


def test_a_program_runs_on_whichever_reservation_fails(
    start_unprepared: StartTarget, start_target: StartTarget, tmpfs: Callable[[int], Path]
) -> None:
    def run(size: int) -> int | None:
        directory = tmpfs(size)
        target = start_target(
            "grows_under_restrictions",
            "nothing",
            "9000",
            environment={"LOCKTOP_DIR": str(directory)},
        )
        target.expect("ok")
        notes = notes_in(directory)
        assert target.finish() == (0, [])
        return notes

    assert start_unprepared("grows_under_restrictions").finish() == (0, ["ok"])
    # The program has more lock orders than the table keeps, however much room there is.
    assert run(1 << 30) == lib.LT_NOTE_ORDERS_LEFT_OUT
    for pages in (1, 2, STEP // PAGE - 1):
        assert run(pages * PAGE) is None, "the first reservation fails"
    for step in some(range(1, STEPS + 1), 34):
        notes = run(step * STEP + step % (STEP // PAGE) * PAGE)
        assert notes is not None, step
        assert notes & lib.LT_NOTE_NO_ROOM, step


@pytest.mark.parametrize("size", [0, 1, PAGE, STEP - 1, STEP, 4 * STEP, 10 * STEP + 1])
def test_a_program_with_a_limit_on_file_sizes_runs(size: int, compiler: Compiler) -> None:
    assert run_limited(compiler.program("grows_under_restrictions"), f"--fsize={size}") == (0, "ok")


@pytest.mark.parametrize("number", [4, 5])
def test_a_program_with_a_limit_on_descriptors_runs(number: int, compiler: Compiler) -> None:
    assert run_limited(compiler.program("grows_under_restrictions"), f"--nofile={number}") == (
        0,
        "ok",
    )


@pytest.mark.parametrize("mebibytes", range(48, 120, 8))
def test_a_program_with_a_limit_on_its_address_space_runs(
    mebibytes: int, compiler: Compiler
) -> None:
    """The program itself needs less. Each limit refuses another mapping of the library."""
    assert run_limited(compiler.program("grows_under_restrictions"), f"--as={mebibytes << 20}") == (
        0,
        "ok",
    )


def run_limited(program: Path, limit: str) -> tuple[int, str]:
    """Return the result under a limit, after a check that the library does not change it."""
    preloads = [f"{name}={value}" for name, value in preload_environment().items()]
    results = []
    for variables in ([], preloads):
        done = subprocess.run(
            ["prlimit", limit, "env", *variables, str(program), "nothing", "3000"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        results.append((done.returncode, done.stdout.strip()))
    assert results[0] == results[1]
    return results[1]
