"""`locktop watch`: one alert for each finding about a real program, and a clean end."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

import psutil
import pytest
from support import tool
from support.targets import PATIENCE_S, Compiler, StartTarget, Target
from support.watch import EAGER, line_with, read_when_there, rest_of, watching

from locktop.collector.model import NotableKind
from locktop.collector.recording.recording import Recording
from locktop.collector.sources.launch import preload_environment


def test_a_deadlock_raises_one_alert_with_a_snapshot_and_a_command(
    start_target: StartTarget, tmp_path: Path
) -> None:
    target = start_target("ring_of_three")
    target.expect("ready")
    out = tmp_path / "out"
    command = f"{{ cat; env | grep ^LOCKTOP_; echo done; }} >> {out}"
    options = ("--on-deadlock", command, "--on-wait", "1s", "", "--snapshot-dir", tmp_path)
    with watching(target.pid, *EAGER, *options) as watch:
        target.go_on()
        tids = target.truth()
        line = line_with(watch, "deadlock: ")
        assert f"3 threads of ring_of_three {target.pid} wait for each other, for " in line
        stamp, _, rest = line.partition(" ")
        assert time.strptime(stamp, "%Y-%m-%dT%H:%M:%SZ")
        text, *variables = read_when_there(out).splitlines()
        assert rest.startswith(text)
        environment = dict(one.split("=", 1) for one in variables)
        assert environment["LOCKTOP_ALARM"] == "deadlock"
        assert environment["LOCKTOP_PID"] == str(target.pid)
        assert int(environment["LOCKTOP_TID"]) in tids.values()
        assert environment["LOCKTOP_LOCK"].startswith("mutex g_")
        assert float(environment["LOCKTOP_WAITED"]) >= 0  # milliseconds, rounded
        document = json.loads(Path(environment["LOCKTOP_SNAPSHOT"]).read_text())
        (deadlock,) = document["deadlocks"]
        assert {edge["tid"] for edge in deadlock["cycle"]} == set(tids.values())
        # Three locks have waiters. Many scans pass until these waits are long enough for an alert.
        for _ in range(3):
            line_with(watch, "wait: ")
        target.kill()
        assert not any("deadlock: " in line or "wait: " in line for line in rest_of(watch))
        assert watch.process.wait(PATIENCE_S) == 0
    assert read_when_there(out).count("LOCKTOP_ALARM") == 1


def test_a_long_wait_raises_one_alert_with_its_lock_and_holder(
    start_target: StartTarget, tmp_path: Path
) -> None:
    target = start_target("hold_100ms", "1")
    truth = target.truth()
    target.go_on()
    target.expect("held")
    out = tmp_path / "out"
    command = f'{{ echo "$LOCKTOP_ALARM $LOCKTOP_LOCK $LOCKTOP_TID"; echo done; }} > {out}'
    with watching(target.pid, "--every", "20ms", "--on-wait", "300ms", command) as watch:
        line = line_with(watch, "wait: ")
        wanters = {one["tid"] for one in truth["wanters"]}
        assert f"for mutex g_slow_lock, held by holder ({truth['holder']}), in wanter_takes" in line
        kind, *lock, tid = read_when_there(out).split()
        assert (kind, lock) == ("wait", ["mutex", "g_slow_lock"])
        assert int(tid) in wanters
        target.go_on()
        target.expect("released")
        target.finish()
        rest = rest_of(watch)
        assert not any("wait: " in line for line in rest), "a lock has one alert a minute"
        assert f"hold_100ms {target.pid} has ended" in rest[-1]
        assert watch.process.wait(PATIENCE_S) == 0


#: The CPU time of some fifty polls of `watch`, and of the scans that these cause.
ENOUGH_CPU_S = 0.02


def cpu_s(pid: int) -> float:
    """Return the CPU time of a process in seconds."""
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def test_contention_raises_no_alert(start_target: StartTarget) -> None:
    target = start_target("nested_locks_one_order")
    target.expect("ready")
    with watching(target.pid, *EAGER, "--on-wait", "1h", "exit 9") as watch:
        first_s = cpu_s(watch.process.pid)
        deadline = time.monotonic() + PATIENCE_S
        while cpu_s(watch.process.pid) - first_s < ENOUGH_CPU_S:
            assert watch.process.poll() is None
            assert time.monotonic() < deadline, "watch does not scan"
            time.sleep(0.02)  # leaves the CPU to the scans
        assert target.finish() == (0, [])
        (last,) = rest_of(watch)
        assert "has ended" in last
        assert watch.process.wait(PATIENCE_S) == 0


@pytest.mark.parametrize("has_directory", [True, False])
def test_sigusr2_saves_a_snapshot(
    start_target: StartTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_directory: bool
) -> None:
    target = start_target("ring_of_three")
    target.expect("ready")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "saved").mkdir()
    options = ("--snapshot-dir", "saved") if has_directory else ()
    with watching(target.pid, "--every", "1h", *options) as watch:
        watch.process.send_signal(signal.SIGUSR2)
        path = Path(line_with(watch, "snapshot ").rpartition("snapshot ")[2])
        assert json.loads(path.read_text())["process"]["pid"] == target.pid
        assert path.parent == (tmp_path / "saved" if has_directory else tmp_path)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_watch_and_the_command_of_an_alert(
    number: signal.Signals, start_target: StartTarget, tmp_path: Path
) -> None:
    target = start_target("ring_of_three")
    target.expect("ready")
    target.go_on()
    target.truth()
    out = tmp_path / "out"
    runs = f"sleep 1000 & {{ echo $!; echo done; }} > {out}; wait"
    with watching(target.pid, *EAGER, "--on-deadlock", runs) as watch:
        sleeper = int(read_when_there(out))
        watch.process.send_signal(number)
        assert len(rest_of(watch)) <= 1, "only the alert, and no line about the signal"
        assert watch.process.wait(PATIENCE_S) == 0
    stat = Path(f"/proc/{sleeper}/stat")
    deadline = time.monotonic() + PATIENCE_S
    while stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < deadline, "the command's child lives on"
        time.sleep(0.01)  # the process that inherits the child may be slow
    assert target.process.poll() is None, "the target lives on"


def test_once_ends_watch_after_the_first_alert_and_its_command(
    start_target: StartTarget, tmp_path: Path
) -> None:
    target = start_target("ring_of_three")
    target.expect("ready")
    target.go_on()
    target.truth()
    out = tmp_path / "out"
    done = tool.run(
        "watch", "-p", target.pid, "--once", "--on-deadlock", f"cat > {out}; echo done >> {out}"
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.count("\n") == 1
    assert read_when_there(out).startswith("deadlock: 3 threads of ring_of_three")


def test_watch_follows_into_another_program_and_ends_if_that_has_no_library(
    compiler: Compiler,
) -> None:
    ring = compiler.program("ring_of_three")
    script = f"echo ready; read go; exec {ring}"
    with Target(["sh", "-c", script], preload_environment()) as target:
        target.expect("ready")
        with watching(target.pid, *EAGER) as watch:
            target.go_on()
            target.expect("ready")
            target.go_on()
            target.truth()
            assert f"of ring_of_three {target.pid} wait" in line_with(watch, "deadlock: ")
    script = f"echo ready; read go; exec env -u LD_PRELOAD {sys.executable} -c 'input()'"
    with Target(["sh", "-c", script], preload_environment()) as target:
        target.expect("ready")
        with watching(target.pid, *EAGER) as watch:
            target.go_on()
            assert "runs without the library" in line_with(watch, "has ended")
            assert watch.process.wait(PATIENCE_S) == 0
            assert target.process.poll() is None


def test_an_alert_is_raised_even_if_its_snapshot_cannot_be_saved(
    start_target: StartTarget, tmp_path: Path
) -> None:
    target = start_target("ring_of_three")
    target.expect("ready")
    directory = tmp_path / "snapshots"
    directory.mkdir()
    with watching(target.pid, *EAGER, "--snapshot-dir", directory) as watch:
        directory.rmdir()
        target.go_on()
        target.truth()
        assert "no snapshot: " in line_with(watch, "no snapshot")
        assert "snapshot" not in line_with(watch, "deadlock: ")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--on-wait", "5", "true"), "'5' is not a time"),
        (("--rate", "60s"), "'60s' is not a rate"),
        (("--keep", "0"), "'0' is not a number"),
        (("--snapshot-dir", "/nowhere/at/all"), "/nowhere/at/all: no such directory"),
    ],
)
def test_a_wrong_option_is_one_line_and_status_2(options: tuple[str, ...], message: str) -> None:
    done = tool.run("watch", "-p", os.getpid(), *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_alert_saves_a_recording_of_what_came_before(
    start_target: StartTarget, tmp_path: Path
) -> None:
    target = start_target("ring_of_three")
    target.expect("ready")
    with watching(target.pid, *EAGER, "--snapshot-dir", tmp_path, "--record-on-alert") as watch:
        target.go_on()
        target.truth()
        line_with(watch, "deadlock: ")
        target.kill()
        assert watch.process.wait(PATIENCE_S) == 0
    (path,) = tmp_path.glob("*.recording")
    assert path.with_suffix(".json").exists()
    recording = Recording(path)
    kinds = [one.kind for one in recording.notables()]
    assert NotableKind.DEADLOCK in kinds
    alert = next(one for one in recording.notables() if one.kind is NotableKind.DEADLOCK)
    assert recording.snapshot_at(alert.time_ns).deadlocks
    recording.close()


@pytest.mark.parametrize(
    "options", [("--record-on-alert",), ("--record-on-alert", "--snapshot-dir", ".", "--history=0")]
)
def test_a_recording_needs_a_directory_and_a_memory(options: tuple[str, ...]) -> None:
    done = tool.run("watch", "-p", os.getpid(), *options)
    assert done.returncode == 2
    assert "--record-on-alert needs" in done.stderr
    assert done.stderr.count("\n") == 1
