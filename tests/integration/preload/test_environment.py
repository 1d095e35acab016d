"""The LOCKTOP_* variables, as docs/environment.md describes them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from support import tool
from support.targets import Compiler, StartTarget, Target

from locktop.collector.sources.launch import preload_environment


def test_forked_children_may_be_left_out(start_target: StartTarget) -> None:
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
def test_children_that_execute_a_program(children: str, watched: bool, compiler: Compiler) -> None:
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


def test_a_ring_and_a_file_of_other_sizes(start_target: StartTarget) -> None:
    variables = {"LOCKTOP_RING": "16", "LOCKTOP_MEMORY": "512K"}
    target = start_target("rolling_contention", environment=variables)
    document = tool.scan_until(
        target.pid, lambda document: bool(document["notes"]), "a note that the file is full"
    )
    (said,) = [note for note in document["notes"] if "shared memory is full" in note]
    assert "raise LOCKTOP_MEMORY where it is set" in said
    path = next(Path("/dev/shm").glob(f"locktop-{target.pid}-*"))
    assert path.stat().st_size == 512 << 10


def bare_run(program: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **preload_environment(), **variables}
    return subprocess.run(
        [program], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )


def test_it_speaks_when_asked(compiler: Compiler, tmp_path: Path) -> None:
    program = compiler.program("errno_and_results")
    nowhere = str(tmp_path / "none")
    assert bare_run(program, LOCKTOP_DIR=nowhere).stderr == ""
    said = bare_run(program, LOCKTOP_DIR=nowhere, LOCKTOP_QUIET="0").stderr
    assert said.startswith("locktop: cannot make ")
    assert said.count("\n") == 1
    said = bare_run(program, LOCKTOP_LEVEL="loud", LOCKTOP_QUIET="0").stderr
    assert said.startswith("locktop: LOCKTOP_LEVEL=loud is ignored")
    assert said.count("\n") == 1
    assert bare_run(program, LOCKTOP_QUIET="0").stderr == ""


#: What tests/targets/fork/children_of_each_sort.c says, and what is to be seen before each.
BEGOTTEN = ["begun", "forked", "forked", "executed"]


def tracers_let(compiler: Compiler, **variables: str) -> list[str]:
    """Return the lines of `children_of_each_sort` and of its children, and each call that lets
    others trace them."""
    asked = [f"{name}={value}" for name, value in {**preload_environment(), **variables}.items()]
    done = subprocess.run(
        [
            compiler.program("reports_ptracer_grants"),
            "env",
            *asked,
            compiler.program("children_of_each_sort"),
        ],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split("\n")[:-1]


@pytest.mark.parametrize("value", [None, "none", "", "Any", "1"])
def test_nobody_is_let_trace_unless_asked_for(value: str | None, compiler: Compiler) -> None:
    variables = {} if value is None else {"LOCKTOP_PTRACER": value}
    assert tracers_let(compiler, **variables) == BEGOTTEN


def test_a_process_and_its_children_let_others_trace_them(compiler: Compiler) -> None:
    seen = tracers_let(compiler, LOCKTOP_PTRACER="any")
    assert seen == [line for said in BEGOTTEN for line in ("any", said)]


def test_children_that_are_left_out_let_nobody(compiler: Compiler) -> None:
    seen = tracers_let(compiler, LOCKTOP_PTRACER="any", LOCKTOP_CHILDREN="none")
    assert seen == ["any", *BEGOTTEN]


def test_one_that_cannot_be_watched_may_still_be_traced(compiler: Compiler) -> None:
    nowhere = tracers_let(compiler, LOCKTOP_PTRACER="any", LOCKTOP_DIR="/nowhere")
    assert nowhere == tracers_let(compiler, LOCKTOP_PTRACER="any")
