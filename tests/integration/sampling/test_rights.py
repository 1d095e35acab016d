"""For a process that the user may not read, one line names the missing right."""

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

from locktop.collector.errors import LocktopError
from locktop.collector.linux import ptrace_access
from locktop.collector.linux.threads import KernelThreads
from locktop.collector.model import ActivityState, Snapshot
from locktop.collector.render.text import report
from locktop.collector.sources.attach import attach
from locktop.tui import cli

Start = Callable[..., Target]
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")


@pytest.fixture
def start(compiler: Compiler, need: Callable[..., Path]) -> Iterator[Start]:
    """Starts a copy of `refuses_tracing` that every user may run, with more ``variables``."""
    setpriv = str(need("setpriv", "util-linux"))
    started: list[Target] = []
    with root_directory(compiler.program("refuses_tracing")) as root:
        directory = root / str(INSIDE)[1:]

        def begun(way: str, *variables: str, preloaded: bool = False, user: int = NOBODY) -> Target:
            as_user = [setpriv, "--reuid", user, "--regid", user, "--clear-groups"]
            preload = [f"LD_PRELOAD={directory / 'liblocktop.so'}"] if preloaded else []
            command: list[str | Path] = [
                *map(str, as_user),
                "env",
                *preload,
                *variables,
                directory / "refuses_tracing",
                way,
            ]
            target = Target(command)
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
    """Return the one line for the user nobody. Root runs the check first, and imports modules."""
    check = partial(said, "check", "-p", str(pid))
    assert check()[0] == 0
    status, output, errors = cast(tuple[int, str, str], as_nobody(check))
    assert (status, output) == (2, "")
    (line,) = errors.splitlines()
    assert line.startswith("locktop: ")
    return line


def test_a_user_may_check_an_own_process(start: Start) -> None:
    pid = start("open").pid
    check = partial(said, "check", "-p", str(pid))
    assert check()[0] == as_nobody(check)[0] == 0


@pytest.mark.parametrize(
    ("way", "user", "why"),
    [
        ("undumpable", NOBODY, "lets only root (CAP_SYS_PTRACE) read it"),
        ("capable", 0, "has capabilities that this user lacks"),
        ("open", 0, "belongs to user root (uid 0)"),
    ],
)
def test_the_line_names_the_reason_of_the_refusal(
    way: str, user: int, why: str, start: Start
) -> None:
    pid = start(way, user=user).pid
    line = refusal(pid)
    assert f"process {pid} (refuses_tracing) {why}" in line
    assert line.endswith("; run locktop as root")
    assert "locktop run" not in line, "the library would not help"


def test_the_owner_of_the_process_counts_not_that_of_an_older_shared_file(start: Start) -> None:
    target = start("changed", preloaded=True, user=0)
    line = refusal(target.pid)
    assert line.endswith(" belongs to user root (uid 0); run locktop as root")


def test_with_the_library_an_unreadable_process_has_locks_without_names(start: Start) -> None:
    pid = start("undumpable", preloaded=True).pid
    scan(pid)
    seen: Snapshot = as_nobody(partial(scan, pid))
    assert seen.source == "preload"
    (lock,) = seen.locks
    (waiter,) = (thread for thread in seen.threads if thread.waiting_for)
    assert (lock.holders, lock.waiters) == ((pid,), (waiter.tid,))
    assert waiter.name == "wants"
    assert lock.holder_activity is not None
    assert (lock.holder_activity.doing, lock.holder_activity.call) == (ActivityState.BLOCKED, "")
    (note,) = seen.notes
    assert note.startswith("functions and locks have no names; activities of holders,")
    assert note.endswith("; run locktop as root")
    assert not any(line.endswith(" in") for line in report.render(seen).splitlines())


def test_a_scan_is_refused_after_the_process_became_undumpable(start: Start) -> None:
    target = start("open")
    scan(target.pid)

    def scanned() -> str:
        with closing(attach(target.pid)) as source:
            source.scan()
            target.go_on()
            target.expect("undumpable")
            with pytest.raises(LocktopError) as refused:
                source.scan()
            return str(refused.value)

    assert "lets only root (CAP_SYS_PTRACE) read it" in as_nobody(scanned)


def test_a_refused_query_is_not_repeated_at_once(start: Start) -> None:
    """Yama writes a line to the kernel's log for each refusal."""
    target = start("undumpable")

    def query() -> list[bool]:
        tasks = KernelThreads(target.pid, target.pid)
        seen = [may_see(tasks)]
        target.go_on()
        target.expect("dumpable")
        seen += [may_see(tasks), may_see(KernelThreads(target.pid, target.pid))]
        return seen

    def may_see(tasks: KernelThreads) -> bool:
        try:
            return tasks.call(target.pid) is not None
        except PermissionError:
            return False

    assert as_nobody(query) == [False, False, True]


def scan(pid: int) -> Snapshot:
    with closing(attach(pid)) as source:
        return source.scan(resolve=True)


needs_yama = pytest.mark.skipif(
    ptrace_access.yama_scope() == 0,
    reason="this kernel does not restrict tracing: kernel.yama.ptrace_scope",
)


@needs_yama
def test_yama_refuses_the_check_of_a_process_without_the_library(start: Start) -> None:
    pid = start("open").pid
    check = partial(said, "check", "-p", str(pid))
    check()  # imports the modules
    status, _, errors = as_nobody(check)
    assert status == 2
    assert f"(kernel.yama.ptrace_scope is {ptrace_access.yama_scope()}" in errors


@needs_yama
@pytest.mark.parametrize("value", ["none", "any"])
def test_yama_permits_tracing_if_the_process_grants_it(value: str, start: Start) -> None:
    pid = start("open", f"LOCKTOP_PTRACER={value}", preloaded=True).pid
    scan(pid)
    seen: Snapshot = as_nobody(partial(scan, pid))
    (lock,) = seen.locks
    assert (lock.name, len(lock.waiters)) == ("g_lock", 1)
    assert lock.holder_activity is not None
    if value == "any" and ptrace_access.yama_scope() == 1:
        assert seen.notes == ()
        assert lock.holder_activity.call == "read"
        functions = [frame.function for frame in seen.stacks[lock.holder_activity.stack]]
        assert functions[0] == "main"
    else:
        (note,) = seen.notes
        assert note.startswith("activities of holders, and unwound stacks,")
        assert f"(kernel.yama.ptrace_scope is {ptrace_access.yama_scope()}" in note
        assert lock.holder_activity.call == ""


@contextmanager
def hidden(how: str, need: Callable[..., Path]) -> Iterator[list[str]]:
    """A prefix for a command that sees a /proc with hidden processes.

    The command runs as root without capabilities, and in none of the groups of the mount.
    """
    unshare = [str(need("unshare", "util-linux")), "--mount"]
    mount = f"mount -t proc -o hidepid={how},gid=4242 proc /proc"
    if (tried := subprocess.run([*unshare, "sh", "-c", mount], capture_output=True)).returncode:
        pytest.skip(f"no such mount may be made here: {tried.stderr.decode().strip()}")
    powerless = 'exec setpriv --bounding-set=-all --inh-caps=-all "$@"'
    yield [*unshare, "sh", "-c", f"{mount} && {powerless}", "sh"]


@pytest.mark.parametrize("how", ["1", "2"])
def test_the_line_says_that_proc_hides_the_process(
    how: str, start: Start, need: Callable[..., Path]
) -> None:
    pid = start("open").pid
    with hidden(how, need) as prefix:
        done = tool.run_alone("check", "-p", pid, prefix=prefix)
        assert (done.returncode, done.stdout) == (2, "")
        (line,) = done.stderr.splitlines()
        assert f"process {pid} is hidden from this user" in line
        assert "hidepid" in line
        assert "CAP_SYS_PTRACE" in line, "the user is root already"
        none = tool.run_alone("check", "-p", 4_000_000, prefix=prefix)
        assert none.stderr == "locktop: no such process: 4000000\n"
        assert tool.run_alone("list", "--all", prefix=prefix).returncode == 0
