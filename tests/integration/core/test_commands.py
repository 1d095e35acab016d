"""The commands on cores: what they print, their status, and files that are no sound core."""

from __future__ import annotations

import json
import lzma
import random
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
import zstandard
from support import requirements, tool
from support.cores import core_of, kernel_core_of, kernel_writes_cores
from support.targets import Compiler, Target

from locktop.collector.errors import LocktopError
from locktop.collector.sources.core import compressed_core
from locktop.collector.sources.core.source import CoreSource

_SCRIPTS = ("stay", "lock a, meet 1, lock b", "lock b, meet 1, lock a")
_ALLOW_CORES = 'ulimit -c unlimited; cd "$0" && exec "$@"'
_PYTHON = """\
import threading
first, second, both = threading.RLock(), threading.RLock(), threading.Barrier(2)
def one():
    with first:
        both.wait()
        with second:
            pass
def two():
    with second:
        both.wait()
        with first:
            pass
threads = [threading.Thread(target=run, name=run.__name__) for run in (one, two)]
for thread in threads:
    thread.start()
print("ready", flush=True)
for thread in threads:
    thread.join()
"""
#: Bytes of the headers and notes of the core: most of the damage is done there.
_TABLES = 0x4000
#: The head of a note NT_PRSTATUS, and where its content has the id of the thread.
_STATUS_NOTE, _TID_AT = struct.pack("<III8s", 5, 336, 1, b"CORE"), 32


def _await_deadlock(target: Target) -> None:
    tool.scan_until(target.pid, lambda document: bool(document["deadlocks"]), "a deadlock")


class Planted:
    """The core of two threads that wait for each other."""

    def __init__(self, core: Path, pid: int, tids: list[int]) -> None:
        self.core = core
        self.pid = pid
        self.tids = tids


@pytest.fixture(scope="module")
def planted(compiler: Compiler, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Planted]:
    with Target([compiler.program("scripted_threads"), *_SCRIPTS]) as target:
        tids = [int(tid) for tid in target.truth()["tids"]]
        _await_deadlock(target)
        core = core_of(target.pid, tmp_path_factory.mktemp("core"))
        yield Planted(core, target.pid, tids)


def test_check_tells_the_deadlock_of_a_core_with_its_lines(planted: Planted) -> None:
    done = tool.run("check", str(planted.core))
    _, one, two = planted.tids
    assert done.returncode == 1
    # gdb writes the whole name of the program, the kernel 15 bytes of it.
    assert f"deadlock: 2 threads of scripted_threads {planted.pid} waited for" in done.stdout
    assert f"thread {one} waits for mutex" in done.stdout
    assert f"held by thread {two}" in done.stdout
    assert "scripted_threads.c:" in done.stdout
    assert "The only way out" not in done.stdout


def test_a_snapshot_of_a_core_is_json_without_times(planted: Planted) -> None:
    document = json.loads(tool.run("snapshot", str(planted.core)).stdout)
    assert document["source"] == "core"
    assert document["process"]["pid"] == planted.pid
    assert [deadlock["certain"] for deadlock in document["deadlocks"]] == [True]
    waits = [t["waiting_for"] for t in document["threads"] if t["waiting_for"]]
    assert {wait["since_s"] for wait in waits} == {0.0}
    assert {thread["tid"] for thread in document["threads"]} == set(planted.tids)


@pytest.mark.parametrize("form", ["json", "dot", "mermaid", "line"])
def test_check_has_its_other_forms_for_a_core(form: str, planted: Planted) -> None:
    done = tool.run("check", str(planted.core), "--format", form)
    assert done.returncode == 1
    assert str(planted.tids[1]) in done.stdout


def test_stacks_of_a_core_has_all_threads(planted: Planted) -> None:
    done = tool.run("stacks", str(planted.core))
    assert all(str(tid) in done.stdout for tid in planted.tids)


def test_the_screen_needs_a_terminal_for_a_core_too(planted: Planted) -> None:
    done = tool.run(str(planted.core))
    assert done.returncode == 2
    assert "the screen needs a terminal" in done.stderr


def test_threads_have_the_ids_that_they_have_inside_of_a_container(
    planted: Planted, tmp_path: Path
) -> None:
    data = bytearray(planted.core.read_bytes())
    begin = 0
    while (begin := data.find(_STATUS_NOTE, begin)) >= 0:
        begin += len(_STATUS_NOTE)
        tid = int.from_bytes(data[begin + _TID_AT : begin + _TID_AT + 4], "little")
        data[begin + _TID_AT : begin + _TID_AT + 4] = (tid + 1000).to_bytes(4, "little")
    path = tmp_path / "core"
    path.write_bytes(data)
    with closing(CoreSource(str(path))) as source:
        snapshot = source.scan(resolve=True)
    assert {thread.tid for thread in snapshot.threads} == set(planted.tids)
    (deadlock,) = snapshot.deadlocks
    assert {edge.tid for edge in deadlock.cycle} == set(planted.tids[1:])


@pytest.mark.skipif(not kernel_writes_cores(), reason="the kernel passes cores to a program")
def test_a_core_of_the_kernel_tells_the_same(compiler: Compiler, tmp_path: Path) -> None:
    program = [str(compiler.program("scripted_threads")), *_SCRIPTS]
    with Target(["sh", "-c", _ALLOW_CORES, str(tmp_path), *program]) as target:
        target.truth()
        _await_deadlock(target)
        core = kernel_core_of(target, tmp_path)
    done = tool.run("check", str(core))
    assert done.returncode == 1
    assert "scripted_threads.c:" in done.stdout
    assert "signal 6" in tool.run("stacks", str(core)).stdout


def test_a_deadlock_of_python_has_its_functions(tmp_path: Path) -> None:
    with Target([sys.executable, "-c", _PYTHON]) as target:
        target.expect("ready")
        _await_deadlock(target)
        core = core_of(target.pid, tmp_path)
    done = tool.run("check", str(core))
    assert done.returncode == 1
    assert "one -> two -> one" in done.stdout or "two -> one -> two" in done.stdout
    assert "one at <string>:6" in done.stdout


@pytest.mark.parametrize("command", ["callers", "diff", "timeline"])
def test_a_command_that_needs_time_says_what_to_use(command: str, planted: Planted) -> None:
    core = str(planted.core)
    done = tool.run(command, core, *([core] * (command == "diff")))
    assert done.returncode == 2
    assert done.stderr == (
        f"locktop: {core}: a core has no time; use check, why, stacks or snapshot\n"
    )


def _compressed(data: bytes, suffix: str) -> bytes:
    if suffix == "lz4":
        lz4 = requirements.command("lz4")
        return subprocess.run([lz4, "-zc"], input=data, capture_output=True, check=True).stdout
    return lzma.compress(data, preset=0) if suffix == "xz" else zstandard.compress(data)


@pytest.mark.parametrize("suffix", ["zst", "xz", "lz4"])
def test_a_compressed_core_is_unpacked(suffix: str, planted: Planted, tmp_path: Path) -> None:
    packed = tmp_path / f"core.{suffix}"
    small = _compressed(planted.core.read_bytes(), suffix)
    packed.write_bytes(small)
    done = tool.run("check", str(packed), "--format", "line")
    assert done.returncode == 1
    packed.write_bytes(small[: len(small) // 2])
    done = tool.run("check", str(packed), "--format", "line")
    assert done.returncode in (1, 2, 3)
    assert len((done.stdout + done.stderr).splitlines()) == 1


def test_without_its_program_lz4_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = tmp_path / "core.lz4"
    packed.write_bytes(b"\x04\x22\x4d\x18" + bytes(100))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LocktopError, match="the program lz4 is missing"):
        compressed_core.unpacked(str(packed))


def test_a_program_of_another_build_is_named(compiler: Compiler, tmp_path: Path) -> None:
    program = tmp_path / "replaced"
    shutil.copy(compiler.program("scripted_threads"), program)
    with Target([program, *_SCRIPTS]) as target:
        target.truth()
        _await_deadlock(target)
        core = core_of(target.pid, tmp_path)
    program.unlink()
    shutil.copy(compiler.program("ring_of_three"), program)
    done = tool.run("stacks", str(core))
    assert "replaced is of another build than in the core" in " ".join(done.stdout.split())
    assert tool.run("check", str(core), "-q").returncode == 1  # the owners are in the memory
    program.unlink()
    assert "replaced is not here" in " ".join(tool.run("stacks", str(core)).stdout.split())


@pytest.mark.parametrize(
    ("offset", "data", "says"),
    [
        (0, b"\x7fELG", "no snapshot"),
        (4, b"\x01", "64-bit"),
        (16, b"\x02", "no core dump"),
        (18, b"\xb7", "another processor"),
        (54, b"\x07", "damaged"),
    ],
)
def test_a_file_that_is_no_core_has_one_line(
    offset: int, data: bytes, says: str, planted: Planted, tmp_path: Path
) -> None:
    head = bytearray(planted.core.read_bytes()[:_TABLES])
    head[offset : offset + len(data)] = data
    path = tmp_path / "core"
    path.write_bytes(head)
    done = tool.run("check", str(path))
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert says in done.stderr


def test_a_damaged_core_is_an_answer_or_one_error(planted: Planted, tmp_path: Path) -> None:
    chance, data = random.Random(40), planted.core.read_bytes()
    path = tmp_path / "core"
    for turn in range(60):
        if turn % 3:
            damaged = bytearray(data)
            notes = len(data) - _TABLES * 2  # gcore writes them last
            for _ in range(chance.choice([1, 8, 64])):
                begin = chance.choice([0, notes])
                damaged[begin + chance.randrange(_TABLES)] = chance.randrange(256)
        else:
            damaged = bytearray(data[: chance.randrange(len(data))])
        path.write_bytes(damaged)
        with suppress(LocktopError), closing(CoreSource(str(path))) as source:
            assert len(source.scan(resolve=True).threads) <= len(planted.tids)
