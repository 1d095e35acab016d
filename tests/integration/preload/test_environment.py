"""The LOCKTOP_* variables do what docs/environment.md says."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from support import tool
from support.targets import Compiler, StartTarget, Target

from locktop.collector.sources.launch import preload_environment


def test_a_variable_leaves_out_forked_children(start_target: StartTarget) -> None:
    target = start_target("fork_among_locking_threads", environment={"LOCKTOP_CHILDREN": "none"})
    truth = target.truth()
    assert tool.lock_named(tool.snapshot(target.pid), "g_parent_lock")["acquisitions"] > 0
    child = tool.snapshot(truth["child"])
    assert child["source"] == "proc"
    assert "LOCKTOP_CHILDREN" in child["notes"][0]
    assert target.finish() == (0, [])


@pytest.mark.parametrize(
    ("children", "watched"),
    [
        ("all", True),
        ("none", False),
        ("other,contention_already_over", True),
        ("other,contention_already", False),
    ],
)
def test_a_variable_selects_children_by_their_program(
    children: str, watched: bool, compiler: Compiler
) -> None:
    late = compiler.program("contention_already_over")
    command = ["sh", "-c", f'read go; "{late}"; exit 0']
    with Target(command, {**preload_environment(), "LOCKTOP_CHILDREN": children}) as shell:
        assert tool.snapshot(shell.pid)["process"]["pid"] == shell.pid
        shell.go_on()
        shell.truth()
        child = int(Path(f"/proc/{shell.pid}/task/{shell.pid}/children").read_text().split()[0])
        seen = tool.snapshot(child)
        assert seen["source"] == ("preload" if watched else "proc")
        if not watched:
            assert "LOCKTOP_CHILDREN leaves out this child" in seen["notes"][0]
        assert shell.finish()[0] == 0


def test_variables_set_the_sizes_of_the_rings_and_of_the_file(start_target: StartTarget) -> None:
    variables = {"LOCKTOP_RING": "16", "LOCKTOP_MEMORY": "512K"}
    target = start_target("rolling_contention", environment=variables)
    document = tool.scan_until(
        target.pid, lambda document: bool(document["notes"]), "a note that the file is full"
    )
    (full,) = [note for note in document["notes"] if "shared memory is full" in note]
    assert "raise LOCKTOP_MEMORY where it is set" in full
    path = next(Path("/dev/shm").glob(f"locktop-{target.pid}-*"))
    assert path.stat().st_size == 512 << 10


def run(program: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **preload_environment(), **variables}
    return subprocess.run(
        [program], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )


def test_the_library_writes_messages_only_if_a_variable_says_so(
    compiler: Compiler, tmp_path: Path
) -> None:
    program = compiler.program("errno_and_results")
    nowhere = str(tmp_path / "none")
    assert run(program, LOCKTOP_DIR=nowhere).stderr == ""
    message = run(program, LOCKTOP_DIR=nowhere, LOCKTOP_QUIET="0").stderr
    assert message.startswith("locktop: cannot make ")
    assert message.count("\n") == 1
    message = run(program, LOCKTOP_LEVEL="loud", LOCKTOP_QUIET="0").stderr
    assert message.startswith("locktop: LOCKTOP_LEVEL=loud is ignored")
    assert message.count("\n") == 1
    assert run(program, LOCKTOP_QUIET="0").stderr == ""


#: The lines of tests/targets/fork/children_of_each_sort.c, one for each process.
PROCESSES = ["begun", "forked", "forked", "executed"]


def processes_and_grants(compiler: Compiler, **variables: str) -> list[str]:
    """Return the lines of `children_of_each_sort` and of its children, and each tracing grant.

    A process grants tracing by prctl(PR_SET_PTRACER); the line of a grant is its argument.
    """
    variables = {**preload_environment(), **variables}
    settings = [f"{name}={value}" for name, value in variables.items()]
    done = subprocess.run(
        [
            compiler.program("reports_ptracer_grants"),
            "env",
            *settings,
            compiler.program("children_of_each_sort"),
        ],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split("\n")[:-1]


@pytest.mark.parametrize("value", [None, "none", "", "Any", "1"])
def test_a_process_grants_no_tracing_without_the_variable(
    value: str | None, compiler: Compiler
) -> None:
    variables = {} if value is None else {"LOCKTOP_PTRACER": value}
    assert processes_and_grants(compiler, **variables) == PROCESSES


def test_a_process_and_its_children_grant_tracing(compiler: Compiler) -> None:
    seen = processes_and_grants(compiler, LOCKTOP_PTRACER="any")
    assert seen == [line for process in PROCESSES for line in ("any", process)]


def test_children_that_are_left_out_grant_no_tracing(compiler: Compiler) -> None:
    seen = processes_and_grants(compiler, LOCKTOP_PTRACER="any", LOCKTOP_CHILDREN="none")
    assert seen == ["any", *PROCESSES]


def test_a_process_without_a_shared_file_still_grants_tracing(compiler: Compiler) -> None:
    nowhere = processes_and_grants(compiler, LOCKTOP_PTRACER="any", LOCKTOP_DIR="/nowhere")
    assert nowhere == processes_and_grants(compiler, LOCKTOP_PTRACER="any")
