"""Each command in a new process, which imports what it needs, on a process in a deadlock.

Other tests run commands in forks of a process that has imported all modules.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support import tool
from support.targets import StartTarget

#: For each command: its options, its exit status, and a text of its output. The machine decides the
#: status of doctor.
COMMANDS = {
    "list": (["list"], 0, "ring_of_three"),
    "top": (["top", "-p", "PID", "-b", "-n", "1"], 0, "ring_of_three"),
    "snapshot": (["snapshot", "-p", "PID"], 0, '"deadlocks"'),
    "callers": (["callers", "-p", "PID"], 0, "ring_of_three"),
    "calls": (["calls", "-p", "PID"], 2, "has no function calls"),
    "gate": (["gate", "--", "true", "--vs", "no-such-program"], 3, "no such program"),
    "whatif": (["whatif", "-p", "PID", "-d", "0.2"], 3, "No prediction"),
    "diff": (["diff", "no-such-file", "no-such-file"], 2, "no-such-file"),
    "profile": (["profile", "list", "-p", "PID"], 0, ""),
    "stacks": (["stacks", "-p", "PID"], 0, "deadlocked"),
    "timeline": (["timeline", "-p", "PID", "-d", "0.2"], 0, "ring_of_three"),
    "report": (["report", "-p", "PID", "-d", "0.2"], 0, "<title>locktop report</title>"),
    "check": (["check", "-p", "PID"], 1, "DEADLOCK"),
    "doctor": (["doctor", "-p", "PID", "--format", "json"], None, '"pid"'),
    "record": (["record", "-p", "PID", "-d", "0.2", "-o", "FILE"], 0, ""),
    "ctl": (["ctl", "-p", "PID"], 0, "contended"),
    "config": (["config"], 0, "theme"),
    "env": (["env"], 0, "LD_PRELOAD"),
    "run": (["run", "--", "echo"], 2, "terminal"),
    "replay": (["replay", "no-such-file"], 2, "no-such-file"),
    "listen": (["listen", "no-such-url"], 2, "no-such-url"),
    "screen": (["-p", "PID"], 2, "terminal"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_new_process_runs_the_command(
    command: str, start_target: StartTarget, tmp_path: Path
) -> None:
    target = start_target("ring_of_three")
    target.expect("ready")
    target.go_on()
    target.truth()
    words, status, text = COMMANDS[command]
    values = {"PID": target.pid, "FILE": tmp_path / "file"}
    done = tool.run_alone(*[str(values.get(word, word)) for word in words])
    assert status in (done.returncode, None), done.stdout + done.stderr
    assert text in done.stdout + done.stderr
