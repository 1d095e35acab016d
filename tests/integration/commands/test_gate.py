"""`locktop gate` on real programs."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from junitparser import JUnitXml
from support import tool
from support.targets import Compiler

#: Holds of some milliseconds: beside twenty busy processes, a sleep of less takes any time.
SHORT, LONG, SECONDS = "s5000", "s25000", "0.4"
#: A program without locks, which lives long enough to attach.
LOCKLESS = ("sleep", "0.5")


@pytest.fixture(scope="module")
def program(compiler: Compiler) -> str:
    return str(compiler.program("timed_holds"))


def gate(*arguments: str) -> subprocess.CompletedProcess[str]:
    return tool.run("gate", "--runs", "6", *arguments)


def document(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    whole: dict[str, Any] = json.loads(done.stdout)
    assert whole["status"] == done.returncode
    return whole


def hold_of(whole: dict[str, Any]) -> dict[str, Any]:
    [hold] = [entry for entry in whole["comparisons"] if entry["quantity"] == "hold"]
    return dict(hold)


def test_a_hold_five_times_as_long_is_worse_in_every_format(program: str, tmp_path: Path) -> None:
    path = tmp_path / "gate.json"
    to_file = ("--format", "json", "-o", str(path))
    done = gate(*to_file, "--", program, SHORT, SECONDS, "--vs", program, LONG, SECONDS)
    whole = json.loads(path.read_text())
    hold = hold_of(whole)
    assert (hold["name"], hold["kind"], hold["verdict"]) == ("g_lock", "mutex", "worse")
    assert hold["change"]["estimate"] > 1
    assert min(hold["a_s"]) >= 0.005
    assert len(hold["a_s"]) == len(hold["b_s"]) == whole["a_runs"] == 6
    # Noise of the machine may make the control red.
    assert done.returncode == whole["status"] == (2 if hold["is_control_red"] else 1)
    text = tool.run("gate", "--show", str(path))
    assert text.returncode == done.returncode
    assert text.stdout.startswith(whole["outcome"])
    [suite] = JUnitXml.fromstring(tool.run("gate", "--show", str(path), "--format", "junit").stdout)
    assert suite.failures == 1
    page = tool.run("gate", "--show", str(path), "--format", "markdown").stdout
    assert "| `mutex g_lock` |" in page


def test_two_equal_programs_have_an_answer(program: str) -> None:
    command = ("--", program, SHORT, SECONDS, "--vs", program, SHORT, SECONDS)
    done = gate("--format", "json", *command)
    whole = document(done)
    # A busy machine may hide too much, and chance may do anything once in a while.
    assert done.returncode in (0, 1, 2)
    assert hold_of(whole)["control"] is not None
    assert whole["a"]["command"] == [program, SHORT, SECONDS]
    assert (whole["a_runs"], whole["reason"]) == (6, "")


def test_a_variable_makes_the_other_build_and_exec_is_followed(program: str) -> None:
    script = ("sh", "-c", f"exec {program} ${{HOLD:-{SHORT}}} {SECONDS}")
    whole = document(gate("--format", "json", "--vs-env", f"HOLD={LONG}", "--", *script))
    assert hold_of(whole)["verdict"] == "worse"
    assert whole["b"] == {"command": list(script), "environment": [f"HOLD={LONG}"]}


def test_a_baseline_judges_large_changes_alone(program: str, tmp_path: Path) -> None:
    path = tmp_path / "gate.json"
    gate(
        "--format",
        "json",
        "-o",
        str(path),
        "--",
        program,
        SHORT,
        "0.4",
        "--vs",
        program,
        SHORT,
        "0.4",
    )
    baseline = ("--baseline", str(path))
    refused = gate(*baseline, "--", program, LONG, SECONDS)
    assert refused.returncode == 2
    assert refused.stderr.startswith(
        "locktop: a baseline has no pairs of runs, and two days differ"
    )
    both = gate(*baseline, "--", program, SHORT, SECONDS, "--vs", program, SHORT, SECONDS)
    assert both.returncode == 2
    done = gate(*baseline, "--change", "25", "--format", "json", "--", program, LONG, SECONDS)
    assert done.returncode == 1
    whole = document(done)
    assert hold_of(whole)["verdict"] == "worse"
    assert (whole["is_paired"], hold_of(whole)["control"]) == (False, None)


@pytest.mark.parametrize(
    ("command", "status", "answer"),
    [
        (("/nonexistent", "--vs", "true"), 3, "nothing ran: A: no such program: /nonexistent"),
        (("sleep", "0", "--vs", "/nonexistent"), 3, "nothing ran: B: no such program: /nonexist"),
        (("true", "--vs", "true"), 3, "nothing ran: run 1 of A: true exited with status 0 before "),
        (
            ("sh", "-c", "sleep 0.5; echo no config; exit 3", "--vs", "true"),
            3,
            "nothing ran: run 1 of A: sh exited with status 3: no config",
        ),
        ((*LOCKLESS, "--vs", *LOCKLESS), 2, "not enough data: no hold of a lock with a name was"),
    ],
)
def test_a_program_that_cannot_be_measured(
    command: Sequence[str], status: int, answer: str
) -> None:
    done = gate("--", *command)
    assert done.returncode == status
    assert done.stdout.startswith(answer)
    assert done.stderr == ""


def test_a_run_that_fails_after_others_ends_the_gate(program: str, tmp_path: Path) -> None:
    count = tmp_path / "count"
    line = f"echo >>{count}; test $(wc -l <{count}) -lt 3 && exec {program} {SHORT} {SECONDS}"
    script = ("sh", "-c", f"{line}; sleep 0.5; echo broken; exit 7")
    done = gate("--format", "json", "--", program, SHORT, SECONDS, "--vs", *script)
    assert done.returncode == 2
    whole = document(done)
    assert whole["outcome"] == "failed"
    assert whole["reason"] == "run 2 of B: sh exited with status 7: broken"
    assert done.stderr == f"locktop: failed: {whole['reason']}\n"


def test_ctrl_c_ends_the_program_and_prints_what_is_there(program: str, tmp_path: Path) -> None:
    started = tmp_path / "started"
    subprocess.run(["mkfifo", str(started)], check=True)
    # The first run of B says that it runs, and would go on for ever.
    script = ("sh", "-c", f"echo $$ >{started}; exec {program} {SHORT} 100000")
    process = tool.start("gate", "--", program, SHORT, SECONDS, "--vs", *script)
    pid = int(started.read_text())
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=tool.PATIENCE_S)
    assert (process.returncode, errors) == (130, "")
    assert output.startswith("interrupted: there is no answer after 0 pairs of runs\n")
    assert not Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ((), "two programs are needed: `locktop gate -- CMD_A --vs CMD_B`"),
        (("--", "true", "--vs"), "two programs are needed: `locktop gate -- CMD_A --vs CMD_B`"),
        (("--", "true"), "nothing to compare with: give --vs CMD_B, or --vs-env NAME=VALUE"),
        (("--runs", "13", "--", "a", "--vs", "b"), "argument --runs: '13' is not a number from 6"),
        (("--change", "0", "--", "a", "--vs", "b"), "argument --change: '0' is not a percentage"),
        (("--vs-env", "=1", "--", "a"), "argument --vs-env: '=1' is not NAME=VALUE"),
        (("--show", "/nonexistent"), "/nonexistent: no such file"),
        (("--show", "/dev/null", "--", "a"), "--show runs nothing; leave the program out"),
    ],
)
def test_wrong_use_is_one_line(arguments: Sequence[str], line: str) -> None:
    done = tool.run("gate", *arguments)
    assert done.returncode == 2
    assert done.stderr.startswith(f"locktop: {line}")
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
