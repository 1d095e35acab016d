"""`locktop record` and `locktop run --record`: what they write, and how they end."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shlex
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import recordings, requirements, tool
from support.eventually import until
from support.recordings import end_of
from support.targets import PATIENCE_S, Compiler, StartTarget, Target

from locktop.collector import native
from locktop.collector.linux.target import find_process
from locktop.collector.recording.segments import open_recording
from locktop.collector.shm import layout
from locktop.collector.shm.segment import GrowingArray
from locktop.collector.sources import discover
from locktop.collector.sources.launch import preload_environment

_FAST = ("--every", "20ms")
_EVER = 1 << 62


def _is_of_pairs(name: str) -> bool:
    return name.endswith("shared") or "own[" in name


def without_end(start: StartTarget, pace: str = "2000", **options: Any) -> Target:
    """Start threads that fight for a lock until the test ends."""
    target = start("paced_pairs", "4", "100000000", pace, "50", **options)
    target.expect("ready")
    target.go_on()
    return target


@pytest.mark.parametrize("ring", ["131072", "64"])
def test_each_ring_record_is_recorded_once_or_counted_as_lost(
    start_target: StartTarget, tmp_path: Path, ring: str
) -> None:
    target = start_target(
        "paced_pairs", "4", "20000", "0", "5", level="all", environment={"LOCKTOP_RING": ring}
    )
    target.expect("ready")
    with recordings.recording(target.pid, tmp_path / "r", *_FAST) as recorder:
        target.go_on()
        pairs = target.truth()["pairs"]
        recorder.process.send_signal(signal.SIGTERM)
        end = end_of(recorder)
        assert recorder.process.wait(PATIENCE_S) == 0
    assert end.lost == 0 or ring == "64"
    opened = open_recording(tmp_path / "r")
    last = opened.snapshot_at(_EVER)
    mutexes = {lock.id: lock.acquisitions or 0 for lock in last.locks if _is_of_pairs(lock.name)}
    assert sum(mutexes.values()) == pairs
    records = opened.records(0, _EVER)
    assert len(records) == end.records
    # Start and end of the threads take a few locks and waits too.
    assert pairs <= end.records + end.lost < pairs + 100
    if ring != "64":
        counts = [sum(record.lock == id_ for record in records) for id_ in mutexes]
        assert counts == list(mutexes.values())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_recording_with_a_last_snapshot_with_names(
    start_target: StartTarget, tmp_path: Path, number: signal.Signals
) -> None:
    target = without_end(start_target)
    with recordings.recording(target.pid, tmp_path / "r") as recorder:
        recorder.process.send_signal(number)
        end = end_of(recorder)
        assert recorder.process.wait(PATIENCE_S) == 0
    assert (tmp_path / "r").stat().st_mode & 0o777 == 0o600
    opened = open_recording(tmp_path / "r")
    assert opened.damage == ""
    assert len(opened.times_ns()) == end.snapshots >= 2
    frames = [frame for stack in opened.snapshot_at(_EVER).stacks.values() for frame in stack]
    functions = {frame.function for frame in frames if frame.module != requirements.LIBC}
    assert "" not in functions
    assert functions


def test_the_end_of_the_process_ends_the_recording(
    start_target: StartTarget, tmp_path: Path
) -> None:
    target = start_target("paced_pairs", "2", "1000", "0", "50", level="all")
    target.expect("ready")
    with recordings.recording(target.pid, tmp_path / "r", *_FAST) as recorder:
        target.go_on()
        pairs = target.truth()["pairs"]
        target.go_on()
        end = end_of(recorder)
        assert recorder.process.wait(PATIENCE_S) == 0
    opened = open_recording(tmp_path / "r")
    assert opened.damage == ""
    last = opened.snapshot_at(_EVER)
    assert last.ended
    assert sum(lock.acquisitions or 0 for lock in last.locks if _is_of_pairs(lock.name)) == pairs
    assert end.records + end.lost >= pairs


def test_a_recording_follows_into_another_program(compiler: Compiler, tmp_path: Path) -> None:
    script = f"echo ready; read go; exec {compiler.program('paced_pairs')} 4 5000 0 5"
    environment = preload_environment("all") | {"LOCKTOP_RING": "32768"}
    with Target(["sh", "-c", script], environment) as target:
        target.expect("ready")
        with recordings.recording(target.pid, tmp_path / "r", *_FAST) as recorder:
            target.go_on()
            target.expect("ready")
            target.go_on()
            pairs = target.truth()["pairs"]
            recorder.process.send_signal(signal.SIGTERM)
            end = end_of(recorder)
    assert (end.lost, end.records >= pairs) == (0, True)
    opened = open_recording(tmp_path / "r")
    programs = {opened.snapshot_at(time_ns).process.comm for time_ns in opened.times_ns()}
    assert programs == {"sh", "paced_pairs"}


def damage_rings(pid: int) -> None:
    """Let each ring of a process have records behind the end of the file."""
    memory = discover.open_memory(find_process(pid))
    threads = GrowingArray(memory, layout.THREADS_AT, layout.THREAD.size)
    threads.refresh()
    with open(memory.path, "r+b") as file:
        for block in threads.offsets():
            for field, value in (("ring", 1 << 40), ("ring_capacity", 64), ("ring_head", 5)):
                at = block + native.offset_of("struct lt_thread", field)
                size = 4 if field == "ring_capacity" else 8
                os.pwrite(file.fileno(), value.to_bytes(size, "little"), at)
    memory.close()


def test_a_recording_follows_after_a_damaged_file(compiler: Compiler, tmp_path: Path) -> None:
    script = f"echo ready; read go; exec {compiler.program('paced_pairs')} 4 5000 0 5"
    environment = preload_environment("all") | {"LOCKTOP_RING": "32768"}
    with Target(["sh", "-c", script], environment) as target:
        target.expect("ready")
        with recordings.recording(target.pid, tmp_path / "r", "--every", "1h") as recorder:
            damage_rings(target.pid)
            target.go_on()
            target.expect("ready")
            target.go_on()
            pairs = target.truth()["pairs"]
            recorder.process.send_signal(signal.SIGTERM)
            end = end_of(recorder)
    assert end.records >= pairs


def test_a_duration_ends_the_recording(start_target: StartTarget, tmp_path: Path) -> None:
    target = without_end(start_target)
    with recordings.recording(target.pid, tmp_path / "r", "-d", "0.2") as recorder:
        assert end_of(recorder).seconds >= 0.2
        assert recorder.process.wait(PATIENCE_S) == 0


def test_sigusr2_saves_a_snapshot(
    start_target: StartTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    target = without_end(start_target)
    with recordings.recording(target.pid, tmp_path / "r", "--every", "1h") as recorder:
        recorder.process.send_signal(signal.SIGUSR2)
        said = recorder.line()
        assert said.startswith("snapshot ")
        saved = json.loads(Path(said.removeprefix("snapshot ")).read_text())
        assert saved["process"]["pid"] == target.pid
        recorder.process.send_signal(signal.SIGTERM)
        end_of(recorder)


def test_an_existing_file_stays_as_it_is(start_target: StartTarget, tmp_path: Path) -> None:
    target = without_end(start_target)
    (tmp_path / "r").write_text("mine")
    done = tool.run("record", "-p", target.pid, "-o", str(tmp_path / "r"))
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "is there already; give another FILE" in done.stderr
    again = tool.run_alone("run", "--record", str(tmp_path / "r"), "--", "true")
    assert (again.returncode, again.stderr) == (2, done.stderr)
    assert (tmp_path / "r").read_text() == "mine"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("record", "-p", os.getpid(), "-o", "-"), "needs the name of a new file"),
        (("record", "-p", os.getpid(), "-o", "no/r"), "no such directory"),
        (("record", "-p", os.getpid(), "-o", "r", "--max-size", "4K"), "at least 1M"),
        (("record", "-p", os.getpid(), "-o", "r", "--keep", "4"), "not a time"),
        (("run", "--max-size", "4M", "--", "true"), "need --record"),
    ],
)
def test_a_wrong_option_is_one_line(
    arguments: tuple[str | int, ...],
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    done = tool.run(*arguments)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert reason in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_sampled_process_is_recorded(start_unprepared: StartTarget, tmp_path: Path) -> None:
    target = without_end(start_unprepared)
    with recordings.recording(target.pid, tmp_path / "r", "-d", "0.5", *_FAST) as recorder:
        end = end_of(recorder)
    opened = open_recording(tmp_path / "r")
    assert opened.info.source == "proc"
    assert opened.damage == ""
    assert len(opened.times_ns()) == end.snapshots > 1
    assert len(opened.snapshot_at(_EVER).threads) >= 4


def test_a_long_wait_before_the_recording_is_a_notable_moment(
    start_target: StartTarget, tmp_path: Path
) -> None:
    target = start_target("long_wait_on_request")
    target.expect("ready")
    target.go_on("1500")
    assert float(target.line()) > 1
    with recordings.recording(target.pid, tmp_path / "r", *_FAST) as recorder:
        recorder.process.send_signal(signal.SIGTERM)
        end_of(recorder)
    texts = [one.text for one in open_recording(tmp_path / "r").notables()]
    assert [text.partition(" waited ")[0] for text in texts] == ["worker"], texts
    assert "for g_cache_lock" in texts[0]


def test_a_long_wait_before_many_brief_ones_is_recorded_once(
    start_target: StartTarget, tmp_path: Path
) -> None:
    target = start_target("busy_after_long_wait", environment={"LOCKTOP_RING": "16"})
    target.expect("ready")
    target.go_on("1300 40 0")
    longest_s = float(target.line())
    with recordings.recording(target.pid, tmp_path / "r", *_FAST) as recorder:
        recorder.process.send_signal(signal.SIGTERM)
        end_of(recorder)
    opened = open_recording(tmp_path / "r")
    long = [one for one in opened.records(0, _EVER) if one.wait_ns > 1e9 and one.kind == "mutex"]
    assert len({one.tid for one in long}) == len(long) == 3
    assert all(1.3e9 <= one.wait_ns < longest_s * 1e9 + 1e7 for one in long)
    # The records of a thread that has ended are there, too.
    alive = {thread.tid for thread in opened.snapshot_at(_EVER).threads if thread.alive}
    assert len({one.tid for one in long} - alive) == 1
    assert len(opened.notables()) == 1


# ---- SIGKILL ----


def test_a_recording_killed_at_any_moment_opens(start_target: StartTarget, tmp_path: Path) -> None:
    """`make record-kills` kills a hundred times."""
    kills = int(os.environ.get("LOCKTOP_KILLS", "10"))
    target = without_end(start_target, "100000", level="all")
    chosen = random.Random(19)
    for number in range(kills):
        # Segments are short, so that a kill may come at the change to the next one.
        limits = ("--max-size", "1M") if number % 2 else ()
        path = tmp_path / str(number)
        with recordings.recording(target.pid, path, "--every", "5ms", *limits) as recorder:
            time.sleep(chosen.uniform(0, 0.5))  # the moment is random, no state is awaited
            recorder.process.kill()
            recorder.process.wait(PATIENCE_S)
        opened = open_recording(path)
        times = opened.times_ns()
        assert times
        assert [opened.snapshot_at(time_ns).process.pid for time_ns in times] == [target.pid] * len(
            times
        )
        opened.records(times[0], times[-1])
        opened.close()


# ---- a full disk ----


def _is_readable_after_early_end(status: int, lines: list[str], path: Path) -> None:
    assert status == 2
    assert sum("the recording ends here" in line for line in lines) == 1, lines
    opened = open_recording(path)
    assert len(opened.times_ns()) > 1
    assert opened.snapshot_at(_EVER).process.comm == "paced_pairs"


def _record_until_full(target_pid: int, path: Path, prefix: str = "") -> None:
    with recordings.recording(target_pid, path, *_FAST, prefix=prefix) as recorder:
        lines = []
        while line := recorder.line():
            lines.append(line)
        _is_readable_after_early_end(recorder.process.wait(PATIENCE_S), lines, path)


def test_a_full_disk_ends_the_recording_with_one_line_and_a_readable_file(
    start_target: StartTarget, tmpfs: Callable[[int], Path]
) -> None:
    target = without_end(start_target, "100000", level="all")
    _record_until_full(target.pid, tmpfs(64 << 10) / "r")


@pytest.mark.parametrize("limits", [(), ("--keep", "10m")])
def test_a_disk_without_room_for_a_snapshot_has_no_recording(
    start_target: StartTarget, tmpfs: Callable[[int], Path], limits: tuple[str, ...]
) -> None:
    target = without_end(start_target)
    disk = tmpfs(64 << 10)
    (disk / "other").write_bytes(bytes(64 << 10))
    done = tool.run("record", "-p", target.pid, "-o", str(disk / "r"), "-d", "1", *limits)
    line = f"locktop: {disk}/r: cannot be made: no space left on device; make room there\n"
    assert (done.returncode, done.stderr) == (2, line)
    session = {"XDG_RUNTIME_DIR": str(disk)}
    done = tool.run("ctl", "-p", target.pid, "--start", environment=session)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "no space left on device; make room there" in done.stderr
    assert [path.name for path in disk.iterdir() if path.name != "locktop"] == ["other"]


def test_a_limit_of_the_file_size_ends_the_recording_in_the_same_way(
    start_target: StartTarget, tmp_path: Path
) -> None:
    target = without_end(start_target, "100000", level="all")
    _record_until_full(target.pid, tmp_path / "r", prefix="ulimit -f 128;")


# ---- a ring of segments ----


def test_a_ring_of_segments_stays_within_its_size_and_reads_as_one(
    start_target: StartTarget, tmp_path: Path
) -> None:
    target = without_end(start_target, "200000", level="all")
    ring = tmp_path / "ring"
    with recordings.recording(target.pid, ring, "--max-size", "1M", *_FAST) as recorder:
        while not (ring / "000012.locktop").exists():
            assert recorder.process.poll() is None
            assert _bytes_in(ring) <= 1.3e6
        recorder.process.kill()
        recorder.process.wait(PATIENCE_S)
    assert not (ring / "000001.locktop").exists()
    opened = open_recording(ring)
    times = opened.times_ns()
    assert len(times) > 12
    seen = [opened.snapshot_at(time_ns).duration_s for time_ns in times]
    assert seen == sorted(seen)
    assert opened.records(times[0], times[-1])


def test_the_last_line_says_what_the_segments_still_have(
    start_target: StartTarget, tmp_path: Path
) -> None:
    target = without_end(start_target)
    ring = tmp_path / "ring"
    with recordings.recording(target.pid, ring, "--keep", "1s", *_FAST) as recorder:
        until(
            lambda: (ring / "000002.locktop").exists() and not (ring / "000001.locktop").exists(),
            "the first segment is deleted",
        )
        recorder.process.send_signal(signal.SIGTERM)
        end = end_of(recorder)
        ended_ns = time.time_ns()
    assert end.kept_s is not None
    assert 1.0 <= end.kept_s < end.seconds + 0.1
    times = open_recording(ring).times_ns()
    # Ring records may come after the last snapshot, which waits for names. The line rounds.
    least_s, most_s = (times[-1] - times[0]) / 1e9, (ended_ns - times[0]) / 1e9
    assert least_s - 0.1 <= end.kept_s <= most_s + 0.1
    assert end.size == pytest.approx(_bytes_in(ring), rel=0.01)


def _bytes_in(directory: Path) -> int:
    size = 0
    for path in directory.iterdir():
        with contextlib.suppress(FileNotFoundError):  # the recorder deletes the oldest
            size += path.stat().st_size
    return size


# ---- run --record ----


def _has_snapshot(path: Path) -> bool:
    if not path.exists() or not path.stat().st_size:
        return False
    with contextlib.closing(open_recording(path)) as recording:
        return bool(recording.times_ns())


def test_run_records_without_a_terminal(compiler: Compiler, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "orders")
    orders = os.open(tmp_path / "orders", os.O_RDWR)  # neither end waits for the other
    program = f"exec {compiler.program('paced_pairs')} 2 5000 0 50 < {tmp_path}/orders"
    command = [
        tool.COMMAND, "run", "--record", str(tmp_path / "r"), "--level", "all", "--output",
        "/dev/null", "--", "sh", "-c", program,
    ]  # fmt: skip
    with Target(["sh", "-c", f"exec {shlex.join(command)} 2>&1"]) as recorder:
        recorder.line()
        until(lambda: _has_snapshot(tmp_path / "r"), "a first snapshot")
        os.write(orders, b"\n\n")
        said = recorder.line()
        assert recorder.process.wait(PATIENCE_S) == 0
    os.close(orders)
    assert "recorded " in said
    assert open_recording(tmp_path / "r").snapshot_at(_EVER).ended


def test_a_full_disk_does_not_end_the_program_of_run(
    compiler: Compiler, tmp_path: Path, tmpfs: Callable[[int], Path]
) -> None:
    (tmp_path / "go").write_text("\n")
    program = f"exec {compiler.program('paced_pairs')} 4 100000000 100000 50 < {tmp_path}/go"
    options = ["--rate", "10", "--level", "all", "--output", "/dev/null"]
    command = [
        tool.COMMAND, "run", "--record", str(tmpfs(64 << 10) / "r"), *options, "--", "sh", "-c",
        program,
    ]  # fmt: skip
    with Target(["sh", "-c", f"exec {shlex.join(command)} 2>&1"]) as recorder:
        pid = int(recorder.line().split()[2])
        assert "the recording ends here" in recorder.line()
        os.kill(pid, signal.SIGUSR1)
        lines = [recorder.line(), recorder.line()]
        assert recorder.process.wait(PATIENCE_S) == 128 + signal.SIGUSR1
    assert lines[0].startswith("recorded ")
    assert "was ended by" in lines[1]
