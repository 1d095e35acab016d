"""Names that are read after a scan hold for that scan, in the memory and in a recording."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from msgspec.structs import replace
from support import tool
from support.eventually import until
from support.targets import Compiler, StartTarget

from locktop.collector.model import Snapshot
from locktop.collector.recording.history import History
from locktop.collector.recording.memory_file import write_recording
from locktop.collector.recording.memory_keeper import MemoryKeeper
from locktop.collector.recording.recording import Recording
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.collector.sources.attach import attach
from locktop.collector.sources.base import Source
from locktop.tui.past import Past

_SECOND_NS = 1_000_000_000


def wanted_lock(snapshot: Snapshot) -> str:
    """Return the name of the lock for which the thread "worker" waits."""
    index = SnapshotIndex(snapshot)
    waits = [one.waiting_for for one in snapshot.threads if one.name == "worker" and one.alive]
    return next(index.lock_name(wait.lock) for wait in waits if wait is not None)


def functions(snapshot: Snapshot) -> set[str]:
    """Return all functions of the stacks."""
    return {frame.function for frames in snapshot.stacks.values() for frame in frames}


def addresses(snapshot: Snapshot) -> set[int]:
    """Return all return addresses of the stacks."""
    return {frame.address for frames in snapshot.stacks.values() for frame in frames}


def named(source: Source) -> Snapshot:
    """Return a later scan with all names."""
    return source.scan(resolve=True)


def test_the_first_moment_of_a_memory_gets_the_names_of_a_later_scan(
    start_target: StartTarget, tmp_path: Path
) -> None:
    target = start_target("long_wait_on_request", level="contended")
    target.expect("ready")
    target.go_on("hold")
    source, history = attach(target.pid, only_exact=True), History()
    first = source.scan()
    assert wanted_lock(first).startswith("mutex 0x")
    assert "cache_get" not in functions(first)
    history.add(first, _SECOND_NS)
    assert wanted_lock(history.snapshot_at(_SECOND_NS)) == wanted_lock(
        first
    )  # nobody knows more yet
    last = named(source)
    history.scanned(last, 2 * _SECOND_NS)  # one that the memory does not keep
    source.close()
    write_recording(history, tmp_path / "r")
    recording = Recording(tmp_path / "r")
    for moments in (history, recording):
        then = moments.snapshot_at(_SECOND_NS)
        assert wanted_lock(then) == "g_cache_lock"
        assert "cache_get" in functions(then)
        assert addresses(then) == addresses(first)
        waits = [one.waiting_for for one in then.threads if one.name == "worker"]
        frame = SnapshotIndex(then).top_frame(waits[0].stack) if waits[0] is not None else None
        assert frame is not None
        assert frame.file == "long_wait_on_request.c"
        at_now = SnapshotIndex(last).top_frame(waits[0].stack) if waits[0] is not None else None
        assert frame == at_now
    recording.close()


def test_the_text_of_an_alert_gets_the_name_of_its_lock(start_target: StartTarget) -> None:
    target = start_target("long_wait_on_request", level="contended")
    target.expect("ready")
    target.go_on("1200")
    target.line()
    source, history = attach(target.pid, only_exact=True), History()
    keeper = MemoryKeeper(source, history)
    keeper.keep(source.scan())
    keeper.keep(named(source))
    until(lambda: bool(history.notables()), "the alert")
    assert " for g_cache_lock" in history.notables()[0].text
    keeper.close()
    source.close()


def test_an_alert_of_a_machine_that_reads_no_names_for_minutes_gets_its_name(
    start_target: StartTarget,
) -> None:
    target = start_target("long_wait_on_request", level="contended")
    target.expect("ready")
    target.go_on("1200")
    target.line()
    source, history = attach(target.pid, only_exact=True), History()
    source.set_reading_names(False)
    past, keeper, taken_ns = Past(history), MemoryKeeper(source, history), time.time_ns()
    for scan in range(40):  # more than a search for names goes through
        unnamed = replace(source.scan(), names_left=9)  # as while all CPUs are busy
        keeper.keep(unnamed, taken_ns=taken_ns + scan * 2 * _SECOND_NS)
    past.jump(-1)
    position = past.position(taken_ns)
    assert position is not None
    assert " for mutex 0x" in position.reason
    source.set_reading_names(True)
    keeper.keep(named(source), taken_ns=taken_ns + 200 * _SECOND_NS)
    position = past.position(taken_ns)  # the user did not jump again
    assert position is not None
    assert " for g_cache_lock" in position.reason
    keeper.close()
    source.close()


def test_the_code_of_another_library_gives_no_name(
    compiler: Compiler, start_target: StartTarget, tmp_path: Path
) -> None:
    paths = []
    for name in ("first", "other"):
        flags = ("-shared", "-fPIC", f"-DWORK={name}_work", f"-DLOCK=g_{name}_lock")
        path = tmp_path / name / "plugin.so"  # the name of the file does not tell them apart
        path.parent.mkdir()
        shutil.copy(compiler.program("plugin_with_lock", *flags), path)
        paths.append(str(path))
    target = start_target("waits_in_plugins", *paths, level="contended")
    first_truth = target.truth()
    source, history = attach(target.pid, only_exact=True), History()
    first = source.scan()
    history.add(first, _SECOND_NS)
    target.go_on()
    assert target.truth() == first_truth  # both at the same addresses
    last = named(source)
    assert wanted_lock(last) == "g_other_lock"
    assert "other_work" in functions(last)
    history.add(last, 2 * _SECOND_NS)
    then = history.snapshot_at(_SECOND_NS)
    assert "other_work" not in functions(then)
    assert wanted_lock(then) != "g_other_lock"
    source.close()


def test_a_lock_that_is_made_anew_gives_no_name(start_target: StartTarget) -> None:
    target = start_target("lock_made_anew", level="contended")
    target.expect("ready")
    source, history = attach(target.pid, only_exact=True), History()
    first = source.scan()
    history.add(first, _SECOND_NS)
    target.go_on()
    target.expect("ready")
    last = named(source)
    assert wanted_lock(last).startswith("mutex made in second_owner")
    history.add(last, 2 * _SECOND_NS)
    then = history.snapshot_at(_SECOND_NS)
    assert "second_owner" not in wanted_lock(then)
    assert "want" in functions(then)  # the code is the same
    source.close()


def test_the_first_alert_of_a_recording_is_printed_with_names(
    start_target: StartTarget, tmp_path: Path
) -> None:
    target = start_target("long_wait_on_request", level="contended")
    target.expect("ready")
    target.go_on("1200")
    target.line()
    target.go_on("hold")
    path = tmp_path / "r"
    file = str(path)
    no_cache = {"LOCKTOP_CACHE": "none"}
    done = tool.run("record", "-p", target.pid, "-o", file, "-d", "1", environment=no_cache)
    assert done.returncode == 0, done.stderr
    recording = Recording(path)
    first_ns = recording.times_ns()[0]
    assert "cache_get" not in functions(recording.recorded_snapshot_at(first_ns))
    recording.close()
    text = tool.run("snapshot", file, "--at", "0%", "--format", "text").stdout
    assert "mutex 0x" not in text
    assert "g_cache_lock" in text
    for command in (("snapshot", "--format", "text"), ("check",), ("callers",)):
        done = tool.run(command[0], file, "--at", "alert", *command[1:])
        first = done.stdout.split("\n")[0]
        assert first.startswith("alert 1 of "), done.stderr
        assert "worker waited " in first
        assert " for g_cache_lock" in first
    page = tool.run("snapshot", file, "--at", "alert")
    assert page.stdout.startswith("{")
    assert page.stderr.startswith("alert 1 of ")
    assert "alert" not in tool.run("check", file, "--at", "0%").stdout
