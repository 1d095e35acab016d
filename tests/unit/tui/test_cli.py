"""The command line for its users: exit statuses, one-line errors, imports."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence

import pytest
from msgspec.structs import replace
from unit.builders import scenarios

from locktop.collector.model import Confidence, Deadlock, Kind, OrderCycle, OrderEdge
from locktop.collector.render import check_report
from locktop.tui import cli
from locktop.tui.commands import check

LOCKTOP = [sys.executable, "-m", "locktop.tui"]
HEAVY = ("textual", "rich", "elftools", "psutil", "msgpack", "cffi", "asyncio")


def locktop(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*LOCKTOP, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={**os.environ, **environ},
        timeout=120,
        check=False,
    )


def assert_one_line_error(done: subprocess.CompletedProcess[str], *words: str) -> None:
    assert done.returncode == 2, done
    assert done.stdout == ""
    assert done.stderr.startswith("locktop: ")
    assert done.stderr.count("\n") == 1, done.stderr
    for word in words:
        assert word in done.stderr


def imported_by(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules, sep='\\n')"],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return {name.partition(".")[0] for name in done.stdout.splitlines() if name.isidentifier()}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["frobnicate"], ["frobnicate", "locktop --help"]),
        (["4711"], ["`locktop -p 4711`"]),
        (["-p", "0"], ["'0' is not a process id"]),
        (["-p", "no-such-name"], ["no process has the name 'no-such-name'"]),
        (["doctor", "-p", "no-such-name"], ["no process has the name 'no-such-name'"]),
        (["--nonsense"], ["--nonsense"]),
        (["--rate", "1000", "-p", "1"], ["rate from 0.1 to 10"]),
        (["snapshot"], ["-p PID", "locktop snapshot --help"]),
        (["-p", "1", "list"], ["-p before a command"]),
        (["-p", "1", "run", "--", "true"], ["-p before a command"]),
        (["snapshot", "-p", "1", "-d", "-3"], ["not a number of seconds"]),
        (["snapshot", "-p", "1", "--format", "xml"], ["'xml'"]),
        (["check"], ["-p PID and FILE"]),
        (["env", "--level", "loud"], ["'loud'"]),
        (["bench", "--rounds", "0"], ["'0' is not a number of rounds"]),
        (["bench", "--json", "--markdown"], ["not allowed with"]),
        (["bench", "--quick", "--full"], ["not allowed with"]),
        (["bench", "--only"], ["--only"]),
        (["bench", "--only", "pink"], ["'pink'", "mutex", "trace"]),
        (["demo", "--theme", "pink"], ["there is no theme 'pink'", "night"]),
        (["run", "--theme", "pink", "--", "true"], ["there is no theme 'pink'"]),
        (["run"], ["no program given", "locktop run -- CMD"]),
        (["run", "--"], ["no program given"]),
        (["run", "--", "/no/such/program"], ["/no/such/program"]),
        (["snapshot", "-p", "2147483646"], ["2147483646"]),
        (["snapshot", "-p", "1", "-o", ""], ["-o needs the name"]),
        (["snapshot", "-p", "1", "-o", "/"], ["/ is a directory"]),
        (["snapshot", "-p", "1", "-o", "/nodir/x"], ["/nodir/x: no such directory"]),
        (["snapshot", "-p", "2147483646", "-o", "-"], ["2147483646"]),
        (["check", "-p", "2147483646"], ["2147483646"]),
    ],
)
def test_wrong_use_is_one_line_and_status_2(arguments: Sequence[str], words: list[str]) -> None:
    assert_one_line_error(locktop(*arguments), *words)


def test_the_screen_without_a_terminal_says_what_to_use() -> None:
    assert_one_line_error(locktop("-p", str(os.getpid())), f"locktop snapshot -p {os.getpid()}")
    assert_one_line_error(locktop(), "locktop list")
    assert_one_line_error(locktop("run", "--", "true"), "needs a terminal", "locktop env")


def on_terminal(*arguments: str, term: str = "xterm-256color") -> tuple[int, str]:
    """Return the exit status and the first output on a terminal."""
    master, slave = pty.openpty()
    try:
        done = subprocess.run(
            [*LOCKTOP, *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**os.environ, "TERM": term},
            timeout=60,
            check=False,
        )
        return done.returncode, os.read(master, 4000).decode()
    finally:
        os.close(slave)
        os.close(master)


@pytest.mark.parametrize("term", ["dumb", "unknown"])
def test_a_terminal_of_unknown_abilities_is_refused(term: str) -> None:
    status, said = on_terminal("-p", "1", term=term)
    assert status == 2
    assert said.count("\n") == 1
    assert f"needs a terminal; TERM={term} is none" in said


def test_check_says_its_coverage_and_its_limits() -> None:
    calm = scenarios.normal()
    line, *waits = check_report.lines(calm)
    assert "journal holds it" in " ".join(waits)
    assert line == "no deadlock found: store 4711, 9 threads, 3 waiting for a lock"
    assert check.exit_status(calm) == 0
    line, *_ = check_report.lines(replace(calm, unobserved_waiters=(4711,)))
    assert line.endswith(", 1 waiting for something unknown"), "nothing is known of this wait"
    dormant = replace(calm, level="dormant", notes=("the library is dormant",))
    assert check_report.lines(dormant)[0].endswith("store 4711: the library is dormant")
    assert "no deadlock" not in check_report.lines(dormant)[0]
    assert check.exit_status(dormant) == check.DOUBTFUL == 3
    assert check.exit_status(replace(calm, complete=False)) == 3
    assert check.exit_status(replace(scenarios.deadlock(), complete=False)) == 1


@pytest.mark.parametrize(
    ("seconds", "holders", "idle", "status"),
    [(9.9, (), False, 0), (10.0, (), False, 3), (60.0, (4713,), False, 0), (60.0, (), True, 0)],
)
def test_check_cannot_tell_if_a_long_wait_has_no_known_holder(
    seconds: float, holders: tuple[int, ...], idle: bool, status: int
) -> None:
    calm = scenarios.normal()
    waits = {thread.tid: thread.waiting_for for thread in calm.threads}
    waiting = next(tid for tid, one in waits.items() if one and one.kind is Kind.MUTEX)
    assert waits[waiting] is not None
    wait = replace(waits[waiting], duration_s=seconds, holders=holders, idle=idle)
    threads = tuple(
        replace(thread, waiting_for=wait if thread.tid == waiting else None)
        for thread in calm.threads
    )
    snapshot = replace(calm, threads=threads)
    assert check.exit_status(snapshot) == status
    line, *stacks = check_report.lines(snapshot)
    assert line.startswith("cannot tell whether there is a deadlock: 1 thread has") == (status == 3)
    assert ("" in stacks) == (status == 3)  # a blank line precedes each stack


def test_check_reports_a_thread_that_waits_for_itself() -> None:
    ring = scenarios.deadlock()
    edge = ring.deadlocks[0].cycle[0]
    alone = Deadlock(True, 1.0, (replace(edge, held_by=edge.tid),))
    lines = check_report.lines(replace(ring, deadlocks=(alone,)))
    assert lines[0] == (
        "deadlock: 1 thread of store 4711 waits for itself,"
        " for 1.00 s: philosopher-0 -> philosopher-0"
    )
    assert "    held by itself, taken in take_left at /src/store/ring.c:31" in lines
    both = check_report.lines(replace(ring, deadlocks=(alone, *ring.deadlocks)))
    said = "deadlock: 3 threads of store 4711"
    assert both[0].startswith(f"{said} wait for each other or themselves, 2 cycles, the oldest for")
    circle = "philosopher-0 -> philosopher-1 -> philosopher-2 -> philosopher-0"
    assert check_report.lines(ring)[0] == f"{said} wait for each other, for 41.7 s: {circle}"
    gone = check_report.lines(replace(ring, ended=True))[0]
    assert gone == f"{said} waited for each other when it ended, for 41.7 s: {circle}"


def test_check_reports_potential_deadlocks_only_on_request() -> None:
    edges = (OrderEdge(1, 2, 4712, 1), OrderEdge(2, 1, 4713, 2))
    seen = replace(scenarios.normal(), lock_order=(OrderCycle((1, 2), edges),))
    assert check.exit_status(seen) == 0
    assert check.exit_status(seen, potential=True) == 1
    assert check.exit_status(scenarios.normal(), potential=True) == 0
    line, *waits = check_report.lines(seen)
    assert line.startswith("no deadlock")
    assert not any("POTENTIAL" in text for text in waits)
    first, _, title, *rest = check_report.lines(seen, potential=True)
    assert first == (
        "potential deadlock: store 4711 took in different orders: mutex g_cache_lock,"
        " rwlock g_table_lock (high confidence)"
    )
    assert title.startswith("POTENTIAL DEADLOCKS")
    wanted = (
        "    thread 4712 (worker-0) wanted rwlock g_table_lock while it held mutex g_cache_lock"
    )
    at = rest.index(wanted)
    assert rest[at + 1] == "        cache_get at /src/store/cache.c:42"
    document = check_report.document(seen, potential=True)
    assert {lock["id"] for lock in document["locks"]} == {1, 2}
    assert set(document["stacks"]) == {"1", "2"}
    assert len(document["lock_order"]) == 1
    assert document["deadlocked"] is False
    assert "lock_order" not in check_report.document(seen)
    guess = replace(seen.lock_order[0], confidence=Confidence.LOW, why="who knows")
    guessed = replace(seen, lock_order=(guess,))
    assert check.exit_status(guessed, potential=True) == 0
    said = check_report.lines(guessed, potential=True)
    assert said[0].startswith("no deadlock found")
    assert "  2 locks taken in different orders, low confidence: who knows" in said
    both = replace(scenarios.deadlock(), lock_order=seen.lock_order)
    assert check_report.lines(both, potential=True)[0].startswith("deadlock: 3 threads")


def test_screen_options_are_valid_before_the_command() -> None:
    for arguments in (
        ["--theme", "paper", "--rate", "5", "demo"],
        ["demo", "--theme", "paper", "--rate", "5"],
        ["--theme", "paper", "run", "--rate", "5", "--", "true"],
        ["--theme", "night", "--rate", "5", "run", "--theme", "paper", "--", "true"],
    ):
        parsed = cli.parser().parse_args(arguments)
        assert (parsed.theme, parsed.rate) == ("paper", 5.0), arguments
    for arguments in (["demo"], ["run", "--", "true"], []):
        parsed = cli.parser().parse_args(arguments)
        assert (parsed.theme, parsed.rate) == (None, None), arguments


def test_a_process_without_the_library_gets_advice() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as unprepared:
        try:
            document = json.loads(locktop("snapshot", "-p", str(unprepared.pid)).stdout)
            assert document["source"] == "proc"
            assert "locktop run" in document["notes"][0]
        finally:
            unprepared.kill()


def test_help_and_version_are_output_and_success() -> None:
    for arguments in (["--help"], ["run", "--help"], ["snapshot", "--help"], ["check", "--help"]):
        done = locktop(*arguments)
        assert done.returncode == 0
        assert done.stdout.startswith("usage: locktop")
        assert done.stderr == ""
    assert locktop("--version").stdout.startswith("locktop ")


def test_help_imports_nothing_heavy() -> None:
    found = imported_by(
        "from locktop.tui.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass"
    )
    assert "argparse" in found
    assert found.isdisjoint(HEAVY)


def test_the_collector_never_imports_a_terminal_library() -> None:
    found = imported_by(
        "import pkgutil, importlib, locktop.collector as c\n"
        "for m in pkgutil.walk_packages(c.__path__, 'locktop.collector.'):\n"
        "    importlib.import_module(m.name)"
    )
    assert "locktop" in found
    assert found.isdisjoint({"textual", "rich"})


def test_snapshot_and_check_import_no_screen() -> None:
    for command in ("snapshot", "check"):
        found = imported_by(
            "from locktop.tui.cli import main\n"
            f"import sys, io; sys.stderr = io.StringIO(); main(['{command}', '-p', '2147483646'])"
        )
        assert "textual" not in found


def test_a_shell_evaluates_the_lines_of_env_with_any_earlier_preload() -> None:
    odd = "/tmp/it's $HOME.so"
    done = locktop("env", "--level", "counting", LD_PRELOAD=odd)
    assert done.returncode == 0
    assert all(line.startswith("export ") for line in done.stdout.splitlines())
    shell = "eval " + shlex.quote(done.stdout) + '; printf "%s\\n" "$LD_PRELOAD" "$LOCKTOP_LEVEL"'
    said = subprocess.run(
        ["sh", "-c", shell], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert said[0].split(":")[0].endswith("/liblocktop.so")
    assert "$HOME.so" in said[0]
    assert said[1] == "counting"


def test_list_is_a_table_or_json() -> None:
    table = locktop("list").stdout.splitlines()
    assert table[0].split() == [
        "PID",
        "USER",
        "THREADS",
        "WAITING",
        "LONGEST",
        "STATE",
        "COMMAND",
    ]
    assert locktop("list", "--json").stdout.lstrip().startswith("[")
    own = str(os.getpid())
    assert any(line.split()[0] == own for line in locktop("list", "--all").stdout.splitlines())


def test_a_reader_that_goes_away_is_no_error() -> None:
    command = f"{shlex.join([*LOCKTOP, 'list', '--all', '--json'])} | head -c 1"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.stdout == "["
    assert done.stderr == ""


SAYS = [["--help"], ["--version"], ["run", "--help"], ["env"], ["list"]]


def in_shell(arguments: Sequence[str], then: str, **environ: str) -> tuple[int, str]:
    """Return the exit status and the output of a command whose streams a shell redirects."""
    done = subprocess.run(
        ["sh", "-c", f"{shlex.join([*LOCKTOP, *arguments])} {then}"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **environ},
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("arguments", SAYS)
def test_a_failed_write_is_an_error(arguments: list[str], unbuffered: str) -> None:
    full = in_shell(arguments, ">/dev/full", PYTHONUNBUFFERED=unbuffered)
    cause = "no space left on device; make room there"
    assert full == (2, f"locktop: cannot write the output: {cause}\n")
    closed = in_shell(arguments, ">&-", PYTHONUNBUFFERED=unbuffered)
    assert closed == (2, "locktop: cannot write the output: it is closed\n")


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("arguments", SAYS)
def test_a_closed_output_is_no_error(arguments: list[str], unbuffered: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*LOCKTOP, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=writer,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        timeout=60,
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("arguments", SAYS)
def test_a_lost_terminal_is_a_hang_up(arguments: list[str], unbuffered: str) -> None:
    """The terminal does not control locktop, so the kernel sends no signal."""
    master, slave = pty.openpty()
    os.close(master)
    done = subprocess.run(
        [*LOCKTOP, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=slave,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        timeout=60,
        check=False,
    )
    os.close(slave)
    assert (done.returncode, done.stderr) == (128 + signal.SIGHUP, b"")


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("then", ["2>/dev/full", "2>&-"])
def test_an_error_without_a_reader_keeps_its_status(then: str, unbuffered: str) -> None:
    """Every other status would be an answer of ``check``."""
    for wrong in (["check", "-p", "2147483646"], ["check"]):
        assert in_shell(wrong, then, PYTHONUNBUFFERED=unbuffered) == (2, "")
    status, said = in_shell(["list"], then, PYTHONUNBUFFERED=unbuffered)
    assert status == 0
    assert said.split()[:1] == ["PID"]


def test_a_closed_input_is_no_terminal() -> None:
    status, said = in_shell(["-p", "1"], "<&-")
    assert status == 2
    assert said.startswith("locktop: the screen needs a terminal")


def test_an_internal_error_is_no_answer_of_check(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: object) -> int:
        raise RuntimeError("a fault")

    monkeypatch.setattr(check, "execute", fail)
    assert cli.main(["check", "-p", "1"]) == 2
    said = capsys.readouterr().err
    assert "Traceback" in said
    assert said.endswith("RuntimeError: a fault\n")


def test_ctrl_c_shows_no_traceback() -> None:
    """The output of the child shows that the bench runs; then the child gets SIGINT."""
    master, slave = pty.openpty()
    with subprocess.Popen(
        [*LOCKTOP, "bench", "--rounds", "1000"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=slave,
        start_new_session=True,
    ) as child:
        os.close(slave)
        said = os.read(master, 1000)
        child.send_signal(signal.SIGINT)
        status = child.wait(60)
        with contextlib.suppress(OSError):  # the other end is closed
            while more := os.read(master, 1000):
                said += more
    os.close(master)
    assert status == 130
    assert b"Traceback" not in said
