"""Processes that may not be looked into: one line says which right is missing."""

from __future__ import annotations

import io
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from typing import cast

import pytest
from support import tool
from support.containers import INSIDE, root_directory
from support.rights import NOBODY, as_nobody
from support.targets import Compiler, Target

from locktop.collector.attach import attach
from locktop.collector.model import Doing, Snapshot
from locktop.tui import cli

Start = Callable[..., Target]
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")


@pytest.fixture
def start(compiler: Compiler, need: Callable[..., Path]) -> Iterator[Start]:
    """Starts a copy of `kept` that everybody may run: ``start(way, preloaded, user)``."""
    setpriv = str(need("setpriv", "util-linux"))
    started: list[Target] = []
    with root_directory(compiler.program("kept")) as root:
        place = root / str(INSIDE)[1:]

        def begun(way: str, preloaded: bool = False, user: int = NOBODY) -> Target:
            as_user = [setpriv, "--reuid", user, "--regid", user, "--clear-groups"]
            variables = [f"LD_PRELOAD={place / 'liblocktop.so'}"] if preloaded else []
            target = Target([*map(str, as_user), "env", *variables, place / "kept", way])
            started.append(target)
            target.expect("ready")
            return target

        yield begun
        for target in started:
            target.finish()
            target.stop()


def said(*arguments: str) -> tuple[int, str, str]:
    """Return the status and the output of a command."""
    output, errors = io.TextIOWrapper(io.BytesIO()), io.StringIO()
    with redirect_stdout(output), redirect_stderr(errors):
        status = cli.main(list(arguments))
    output.seek(0)
    return status, output.read(), errors.getvalue()


def refusal(pid: int) -> str:
    """Return the one line for nobody; root looks first, has all imported and is not refused."""
    check = partial(said, "check", "-p", str(pid))
    assert check()[0] == 0
    status, output, errors = cast(tuple[int, str, str], as_nobody(check))
    assert (status, output) == (2, "")
    (line,) = errors.splitlines()
    assert line.startswith(f"locktop: process {pid} (kept) ")
    return line


def test_ones_own_process_may_be_looked_into(start: Start) -> None:
    pid = start("open").pid
    check = partial(said, "check", "-p", str(pid))
    assert check()[0] == as_nobody(check)[0] == 0


@pytest.mark.parametrize(
    ("way", "user", "why"),
    [
        ("undumpable", NOBODY, "lets nobody but root (CAP_SYS_PTRACE) look into it"),
        ("capable", 0, "has capabilities that this user lacks"),
        ("open", 0, "belongs to user root (uid 0)"),
    ],
)
def test_what_keeps_nobody_out(way: str, user: int, why: str, start: Start) -> None:
    line = refusal(start(way, user=user).pid)
    assert why in line
    assert line.endswith("; run locktop as root")
    assert "locktop run" not in line, "which would not help"


def test_the_library_shows_what_may_not_be_looked_into(start: Start) -> None:
    pid = start("undumpable", preloaded=True).pid
    look(pid)
    seen: Snapshot = as_nobody(partial(look, pid))
    assert seen.source == "preload"
    (lock,) = seen.locks
    (waiter,) = (thread for thread in seen.threads if thread.waiting_for)
    assert (lock.holders, lock.waiters) == ((pid,), (waiter.tid,))
    assert waiter.name == "wants"
    assert lock.holder_now is not None
    assert (lock.holder_now.doing, lock.holder_now.call) == (Doing.BLOCKED, "")
    (note,) = seen.notes
    assert note.startswith("functions and locks have no names; what the holders of locks do now,")
    assert note.endswith("; run locktop as root")


def look(pid: int) -> Snapshot:
    with closing(attach(pid)) as source:
        return source.look(resolve=True)


@contextmanager
def hidden(how: str, need: Callable[..., Path]) -> Iterator[list[str]]:
    """A prefix that runs a command where /proc hides what one may not trace, by a root that may no
    more than others: it is in no group that the mount names."""
    unshare = [str(need("unshare", "util-linux")), "--mount"]
    mount = f"mount -t proc -o hidepid={how},gid=4242 proc /proc"
    if (tried := subprocess.run([*unshare, "sh", "-c", mount], capture_output=True)).returncode:
        pytest.skip(f"no such mount may be made here: {tried.stderr.decode().strip()}")
    powerless = 'exec setpriv --bounding-set=-all --inh-caps=-all "$@"'
    yield [*unshare, "sh", "-c", f"{mount} && {powerless}", "sh"]


@pytest.mark.parametrize("how", ["1", "2"])
def test_a_process_that_proc_hides(how: str, start: Start, need: Callable[..., Path]) -> None:
    pid = start("open").pid
    with hidden(how, need) as prefix:
        done = tool.run("check", "-p", pid, prefix=prefix)
        assert (done.returncode, done.stdout) == (2, "")
        (line,) = done.stderr.splitlines()
        assert f"process {pid} is hidden from this user" in line
        assert "hidepid" in line
        assert "CAP_SYS_PTRACE" in line, "root it is already"
        none = tool.run("check", "-p", 4_000_000, prefix=prefix)
        assert none.stderr == "locktop: no such process: 4000000\n"
        assert tool.run("list", "--all", prefix=prefix).returncode == 0
