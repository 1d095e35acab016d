"""`locktop why` on programs that were not written for it: sqlite3, make, flock, cat."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from support import requirements, tool
from support.across import running
from support.eventually import until

_TOKENS = """\
import os, re
auth = re.search(r"--jobserver-(?:auth|fds)=(?:fifo:)?(\\S+)", os.environ["MAKEFLAGS"])[1]
fd = os.open(auth, os.O_RDWR) if "/" in auth else int(auth.split(",")[0])
os.set_blocking(fd, True)
os.read(fd, 1)
os.read(fd, 1)
"""


@contextmanager
def group_of(command: Sequence[str | Path], cwd: Path | None = None) -> Iterator[subprocess.Popen]:  # type: ignore[type-arg]
    """Run a program with a pipe as its input; end all its processes at the end."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=cwd,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def answer_with_status(pid: int, status: int) -> str:
    """Wait until the answer about a process has this exit status; return the answer."""
    answers: list[str] = []

    def has_status() -> bool:
        done = tool.run("why", pid)
        answers.append(done.stdout)
        return done.returncode == status

    until(has_status, f"status {status}")
    return " ".join(answers[-1].split())


def test_a_program_writes_to_cat_and_reads_nothing() -> None:
    program = (
        "import subprocess; p = subprocess.PIPE;"
        "subprocess.Popen(['cat'], stdin=p, stdout=p).stdin.write(bytes(4 << 20))"
    )
    with group_of([sys.executable, "-c", program]) as process:
        answer = answer_with_status(process.pid, 1)
    assert "the only reader is cat" in answer
    assert "which writes to its full stdout" in answer


def test_flock_below_itself(tmp_path: Path) -> None:
    flock = requirements.command("flock", "util-linux")
    lock = tmp_path / "lock"
    with group_of([flock, lock, "sh", "-c", f"{flock} {lock} true; true"]) as process:
        answer = answer_with_status(process.pid, 1)
    assert f"waits for the lock of {lock}" in answer


def test_two_daemons_call_each_other() -> None:
    with running("call_each_other", "") as pid:
        answer = answer_with_status(pid, 1)
    assert "receives from unix socket" in answer
    assert "has not accepted the connection yet" in answer


def test_a_job_of_make_wants_more_tokens_than_there_are(tmp_path: Path) -> None:
    """make has a handler of SIGUSR1, so the deadlock is possible at most."""
    make = requirements.command("make")
    (tmp_path / "tokens.py").write_text(_TOKENS)
    rule = f"all:\n\t+$(MAKE) job\njob:\n\t+{sys.executable} tokens.py\n"
    (tmp_path / "Makefile").write_text(rule)
    with group_of([make, "-j2"], cwd=tmp_path) as process:
        answer = answer_with_status(process.pid, 3)
    assert "waits for the end of tokens.py" in answer
    assert "tokens.py" in answer.partition("reads from ")[0]
    assert "has a handler of SIGUSR1, which may act" in answer


def test_a_second_client_of_sqlite_waits_with_a_time_limit(tmp_path: Path) -> None:
    sqlite = requirements.command("sqlite3")
    base = tmp_path / "base"
    with group_of([sqlite, base]) as first, group_of([sqlite, base]) as second:
        for client in (first, second):
            assert client.stdin is not None
            client.stdin.write(b".timeout 3600000\nBEGIN IMMEDIATE;\nSELECT 'has it';\n")
            client.stdin.flush()
            if client is first:
                assert client.stdout is not None
                assert client.stdout.readline() == b"has it\n"
        until(lambda: "it goes on by itself" in tool.run("why", second.pid).stdout, "a sleep")
        assert tool.run("why", first.pid, second.pid).returncode == 0
