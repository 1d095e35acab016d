"""Recordings of large programs, read where the programs are not: the same as the live snapshot."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from support import servers
from support.targets import PATIENCE_S, Target
from support.watched import Need

from locktop.collector.errors import LocktopError
from locktop.collector.model import Snapshot
from locktop.collector.recording.recorder import Recorder, RecordingPath
from locktop.collector.recording.segments import open_recording
from locktop.collector.render.documents.snapshot_codec import document
from locktop.collector.render.formats import SNAPSHOT_FORMATS
from locktop.collector.sources.attach import attach
from locktop.collector.sources.base import Source
from locktop.collector.sources.launch import preload_environment

THREADS = 8
#: Writes and reads; some seconds of work.
LOAD = [f"--threads={THREADS}", "--num=20000", "--benchmarks=fillrandom,readwhilewriting"]
ROWS, TRANSACTIONS = 1000, 500
_EVER = 1 << 62


def attached(pid: int) -> Source:
    """Attach as soon as the library is ready."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return attach(pid, only_exact=True)
        except LocktopError:
            assert time.monotonic() < deadline


def record(source: Source, path: Path, is_over: Callable[[], bool]) -> Snapshot:
    """Record until the process ends or ``is_over``; return the last live snapshot."""
    recorder = Recorder(source, RecordingPath(path))
    while True:
        is_last = is_over()
        # A live snapshot that is the last one has all names.
        snapshot = source.scan(resolve=True)
        recorder.add(snapshot)
        if is_last or snapshot.ended:
            recorder.finish("over")
            assert not recorder.problem
            return snapshot


def check_elsewhere(recorded: Path, elsewhere: Path, live: Snapshot) -> Snapshot:
    """Copy a recording, and compare its last snapshot with the live one; return that snapshot."""
    elsewhere.mkdir()
    copy = Path(shutil.copy(recorded, elsewhere / "copied"))
    recorded.unlink()
    opened = open_recording(copy)
    assert opened.damage == ""
    seen = opened.snapshot_at(_EVER)
    assert document(seen) == document(live)
    assert SNAPSHOT_FORMATS.render("text", seen) == SNAPSHOT_FORMATS.render("text", live)
    for time_ns in opened.times_ns():
        opened.snapshot_at(time_ns)
    opened.close()
    return seen


def test_db_bench_with_eight_threads(need: Need, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    program = shutil.copy(need("db_bench", "rocksdb-tools"), tmp_path / "bin" / "db_bench")
    command = [program, *LOAD, f"--db={tmp_path / 'db'}"]
    with Target(command, preload_environment()) as target:
        # Its output is long: somebody must read it.
        reader = threading.Thread(target=target.finish, daemon=True)
        reader.start()
        with closing(attached(target.pid)) as source:
            live = record(source, tmp_path / "r", lambda: False)
        reader.join(PATIENCE_S)
    assert live.ended
    shutil.rmtree(tmp_path / "bin")
    seen = check_elsewhere(tmp_path / "r", tmp_path / "elsewhere", live)
    waited = [lock for lock in seen.locks if lock.contended and lock.wait_stacks]
    assert waited, "eight threads fight for RocksDB's locks"
    functions = {
        frame.function
        for lock in waited
        for entry in lock.wait_stacks
        for frame in seen.stacks[entry.stack]
    }
    assert any("rocksdb::" in function for function in functions), functions
    assert len(seen.threads) > THREADS or seen.ended


@pytest.mark.big
def test_mariadb_without_the_library(need: Need, tmp_path: Path) -> None:
    server = servers.MariaDB(tmp_path, need)
    (tmp_path / "bin").mkdir()
    program = shutil.copy(server.command[0], tmp_path / "bin" / "mariadbd")
    with servers.running([program, *server.command[1:]], None, server.answers) as process:
        server.ask("create database sbtest")
        server.sysbench(f"--table-size={ROWS}", "prepare")
        load = [f"--table-size={ROWS}", f"--events={TRANSACTIONS}", "--threads=16", "--time=0"]
        sysbench = threading.Thread(target=server.sysbench, args=(*load, "run"))
        sysbench.start()
        with closing(attach(process.pid)) as source:
            live = record(source, tmp_path / "r", lambda: not sysbench.is_alive())
        sysbench.join()
    shutil.rmtree(tmp_path / "bin")
    seen = check_elsewhere(tmp_path / "r", tmp_path / "elsewhere", live)
    assert seen.source == "proc"
    assert sum(lock.wait_s or 0.0 for lock in seen.locks) > 0
    functions = {frame.function for frames in seen.stacks.values() for frame in frames}
    assert any(function and "0x" not in function for function in functions)
