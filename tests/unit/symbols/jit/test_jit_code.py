"""Perf maps and jitdump files: sound, not trusted, damaged."""

from __future__ import annotations

import os
import random
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from locktop.collector.symbols.jit.code_index import CodeIndex
from locktop.collector.symbols.jit.jit_code import JitCode
from locktop.collector.symbols.jit.jitdump import JitDump
from locktop.collector.symbols.jit.perf_map import PerfMap
from locktop.collector.symbols.memory_map import Mapping


def test_the_code_that_was_added_last_is_valid() -> None:
    index = CodeIndex()
    index.add(0x100, 0x100, 1)
    index.add(0x180, 0x10, 2)  # at the same addresses
    index.add(0x100, 0x20, 3)
    assert [index.find(at) for at in (0xFF, 0x100, 0x11F, 0x120, 0x180, 0x190, 0x200)] == [
        None, 3, 3, 1, 2, 1, None,
    ]  # fmt: skip
    index.add((1 << 64) - 16, (1 << 64) - 1, 4)
    assert index.find((1 << 64) - 1) == 4


def test_find_agrees_with_a_linear_search() -> None:
    chance = random.Random(7)
    index, pieces = CodeIndex(), []
    for number in range(2000):
        start, size = chance.randrange(100_000), chance.randrange(60)
        index.add(start, size, number)
        pieces.append((start, size))
        if number % 100 == 0:
            for address in range(0, 100_000, 997):
                there = [n for n, (at, length) in enumerate(pieces) if at <= address < at + length]
                assert index.find(address) == (there[-1] if there else None)


# ---- perf maps ----

Write = Callable[[bytes], Path]


@pytest.fixture
def process() -> Iterator[int]:
    """An idle process."""
    with subprocess.Popen(["sleep", "600"]) as sleeper:
        yield sleeper.pid
        sleeper.kill()


@pytest.fixture
def path(process: int) -> Iterator[Path]:
    """The path of the perf map of the process."""
    path = Path(f"/tmp/perf-{process}.map")
    yield path
    path.unlink(missing_ok=True)


@pytest.fixture
def found(process: int) -> Iterator[PerfMap]:
    """The perf map of the process, read again for each query."""
    names = PerfMap(process, read_again_s=0.0)
    yield names
    names.close()


def test_each_line_of_a_perf_map_is_read(path: Path, found: PerfMap) -> None:
    path.write_bytes(
        b"1000 10 plain\n0x2000 0x10 void Java.method(int, char)\n3000  20\t  JS:*f /a b.js:1\n"
        b"4000 10\n-5000 10 negative\n6000 zz name\n\n7000 0 empty\n11112222333344445 1 long\n"
        b"ffffffffffffffff ffffffffffffffff end\n8000 10 \xff\x1b[31m\n9000 10 unfinished"
    )
    names = {at: found.find(at) for at in range(0x1000, 0xA000, 0x1000)}
    assert names == {
        0x1000: "plain", 0x2000: "void Java.method(int, char)", 0x3000: "JS:*f /a b.js:1",
        0x4000: None, 0x5000: None, 0x6000: None, 0x7000: None, 0x8000: "\ufffd\x1b[31m",
        0x9000: None,
    }  # fmt: skip
    assert (found.find(0x100F), found.find(0x1010)) == ("plain", None)
    assert found.find((1 << 64) - 1) == "end"


def test_a_growing_perf_map_is_read_on(path: Path, found: PerfMap) -> None:
    assert found.find(0x1000) is None
    path.write_bytes(b"1000 10 first\n2000 1")
    assert found.find(0x1000) == "first"
    assert found.find(0x2000) is None
    with path.open("ab") as file:
        file.write(b"0 second\n1000 10 third\n")
    assert (found.find(0x2000), found.find(0x1000)) == ("second", "third")


def test_a_rewritten_perf_map_is_read_again(path: Path, found: PerfMap) -> None:
    path.write_bytes(b"1000 10 first\n2000 10 second\n")
    assert found.find(0x1000) == "first"
    path.write_bytes(b"1000 10 anew\n3000 10 third\n4000 10 longer than before\n")
    assert [found.find(at) for at in (0x1000, 0x2000, 0x3000)] == ["anew", None, "third"]
    path.write_bytes(b"5000 10 shorter\n")
    assert (found.find(0x1000), found.find(0x5000)) == (None, "shorter")
    path.unlink()
    path.write_bytes(b"6000 10 another file\n")
    assert (found.find(0x5000), found.find(0x6000)) == (None, "another file")
    path.unlink()
    assert found.find(0x6000) == "another file", "the file is gone, but its names are known"


def test_a_too_large_perf_map_is_read_in_part(path: Path, process: int) -> None:
    lines = b"".join(b"%x 10 function_%d\n" % (at, at) for at in range(0, 16 * 60_000, 16))
    nothing = b"x" * (3 << 20) + b"\n"
    path.write_bytes(lines + nothing + b"deadbeef 10 last\n")
    with closing(PerfMap(process, read_again_s=0.0, max_file=path.stat().st_size)) as found:
        for at in (0, 16 * 20_000, 16 * 59_999):
            assert found.find(at + 5) == f"function_{at}"
        assert found.find(0xDEADBEEF) == "last"
        assert found.note == ""
        with path.open("ab") as file:
            file.write(b"cafe0000 10 too late\n")
        assert found.find(0xCAFE0000) is None
        assert "too large" in found.note


def test_untrusted_perf_maps_are_not_read(path: Path, found: PerfMap, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(b"1000 10 somebody else's\n")
    path.symlink_to(elsewhere)
    assert found.find(0x1000) is None
    path.unlink()
    os.mkfifo(path)
    assert found.find(0x1000) is None, "opening must not wait"
    path.unlink()
    path.mkdir()
    assert found.find(0x1000) is None
    path.rmdir()
    path.write_bytes(b"1000 10 of a process before\n")
    os.utime(path, (0, time.time() - 3600))
    assert found.find(0x1000) is None
    if os.geteuid() == 0:
        os.utime(path)
        os.chown(path, 65534, 65534)
        assert found.find(0x1000) is None
        os.chown(path, 0, 0)
        assert found.find(0x1000) == "of a process before"


def test_the_perf_map_of_a_container_is_read() -> None:
    """The container has another /tmp, and the process has the pid 1 there."""
    container = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
    if subprocess.run([*container, "true"], capture_output=True).returncode:
        pytest.skip("this user may not make namespaces")
    inside = "mount -t tmpfs x /tmp && echo '1000 10 inside' > /tmp/perf-1.map && echo ready"
    command = [*container, "sh", "-c", f"{inside} && exec sleep 600"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as outer:
        try:
            assert outer.stdout is not None
            assert outer.stdout.readline() == b"ready\n"
            children = Path(f"/proc/{outer.pid}/task/{outer.pid}/children").read_text()
            names = PerfMap(int(children))
            assert names.find(0x1000) == "inside"
            names.close()
        finally:
            outer.kill()


def test_no_file_is_opened_for_a_process_that_ended(path: Path, process: int) -> None:
    path.write_bytes(b"1000 10 of the next\n")
    code = JitCode(process)
    code.read_no_more()
    assert code.frame(0x1001, ()) is None
    code.close()


# ---- jitdump ----

HEADER = struct.pack("=IIIIIIQQ", 0x4A695444, 1, 40, 62, 0, 1, 0, 0)


def record(kind: int, body: bytes) -> bytes:
    return struct.pack("=IIQ", kind, 16 + len(body), 0) + body


def load(address: int, name: bytes, size: int = 0x100) -> bytes:
    fields = struct.pack("=IIQQQQ", 1, 1, address, address, size, 0)
    return record(0, fields + name + b"\0" + bytes(min(size, 0x1000)))


def move(old: int, new: int, size: int = 0x100) -> bytes:
    return record(1, struct.pack("=IIQQQQQ", 1, 1, new, old, new, size, 0))


def lines(address: int, *entries: tuple[int, int, bytes]) -> bytes:
    body = struct.pack("=QQ", address, len(entries))
    for offset, line, name in entries:
        body += struct.pack("=QII", address + offset, line, 0) + name + b"\0"
    return record(2, body)


class Dump:
    """A jitdump file of this process."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / f"jit-{os.getpid()}.dump"
        self.dump = JitDump(os.getpid(), read_again_s=0.0)

    def write(self, data: bytes) -> None:
        with self.path.open("ab") as file:
            file.write(data)

    def find(self, address: int) -> tuple[str, str | None, int | None] | None:
        inode = self.path.stat().st_ino
        return self.dump.find(
            address, [Mapping(0, 4096, True, 0, "00:00", inode, str(self.path), False)]
        )


@pytest.fixture
def dump(tmp_path: Path) -> Iterator[Dump]:
    made = Dump(tmp_path)
    yield made
    made.dump.close()


def test_each_record_of_a_jitdump_is_read(dump: Dump) -> None:
    dump.write(HEADER + record(4, bytes(24)) + lines(0x1000, (0, 5, b"/x/a.js"), (8, 6, b"\xff")))
    dump.write(load(0x1000, b"f") + load(0x2000, b"g") + record(3, b"") + record(99, bytes(8)))
    assert dump.find(0x1000) == ("f", "a.js", 5)
    assert dump.find(0x1010) == ("f", "a.js", 6)
    assert dump.find(0x2000) == ("g", None, None)
    assert dump.find(0x1100) is None
    more = load(0x3000, b"h") + move(0x1000, 0x5000)
    for start, end in (0, 10), (10, 50), (50, 200):
        dump.write(more[start:end])
        assert dump.find(0x3000) is None
    dump.write(more[200:])
    assert dump.find(0x3001) == ("h", None, None)
    assert dump.find(0x5000) == ("f", "a.js", 5)
    assert dump.find(0x5010) == ("f", "a.js", 6)
    dump.write(load(0x1000, b"later"))
    assert dump.find(0x1000) == ("later", None, None)


def test_lines_of_v8_are_read(dump: Dump) -> None:
    entries = (64, 3, b"/x/a.js"), (80, 4, b"/x/a.js")
    dump.write(HEADER + lines(0x1000, *entries) + load(0x1000, b"JS:*f /x/a.js:3:1"))
    dump.write(lines(0x2000, *entries) + load(0x2000, b"JS:^f /x/a.js:3:1"))
    assert dump.find(0x1001) == ("JS:*f /x/a.js:3:1", "a.js", 3)
    assert dump.find(0x1010) == ("JS:*f /x/a.js:3:1", "a.js", 4)
    assert dump.find(0x2010) == ("JS:^f /x/a.js:3:1", None, None), (
        "these are no addresses of machine code"
    )


def test_a_jitdump_other_than_the_mapped_file_is_not_read(dump: Dump, tmp_path: Path) -> None:
    dump.write(HEADER + load(0x1000, b"f"))
    other = Mapping(0, 4096, True, 0, "00:00", 1, str(dump.path), False)
    assert dump.dump.find(0x1000, [other]) is None
    inode = dump.path.stat().st_ino
    data = Mapping(0, 4096, False, 0, "00:00", inode, str(dump.path), False)
    assert dump.dump.find(0x1000, [data]) is None
    assert dump.find(0x1000) == ("f", None, None)


@pytest.mark.parametrize("data", [b"", b"JiTD", HEADER[:39], b"\0" * 64, HEADER[::-1]])
def test_a_foreign_file_is_no_jitdump(data: bytes, dump: Dump) -> None:
    dump.write(data)
    assert dump.find(0x1000) is None
    dump.write(HEADER + load(0x1000, b"f"))
    assert dump.find(0x1000) in (None, ("f", None, None))


def test_damage_gives_a_note_and_earlier_records_stay(dump: Dump) -> None:
    dump.write(HEADER + load(0x1000, b"f") + bytes(64) + load(0x2000, b"g"))
    assert dump.find(0x1000) == ("f", None, None)
    assert dump.find(0x2000) is None
    assert "damaged" in dump.dump.note


def test_mutated_jitdumps_raise_nothing(tmp_path: Path) -> None:
    entries = [(at, at, b"/x/a.js" if at % 2 else b"\xff") for at in range(20)]
    whole = HEADER + b"".join(
        lines(at, *entries) + load(at, b"JS:*f" if at % 3 else b"g") + move(at, at + 0x10000)
        for at in range(0x1000, 0x8000, 0x1000)
    )
    chance = random.Random(11)
    began = time.process_time()
    for number in range(400):
        data = bytearray(whole)
        for _ in range(chance.choice([1, 3, 30])):
            at = chance.randrange(len(data))
            data[at : at + 1] = chance.choice(
                [b"\0", b"\xff", bytes([chance.randrange(256)]), b"\xff" * 8, b"", b"\0" * 4]
            )
        directory = tmp_path / str(number)
        directory.mkdir()
        dump = Dump(directory)
        dump.write(bytes(data[: chance.choice([len(data), chance.randrange(len(data))])]))
        for address in (0, 0x1000, 0x3005, 0x12008, (1 << 64) - 1):
            found = dump.find(address)
            assert found is None or isinstance(found[0], str)
        dump.dump.close()
    assert time.process_time() - began < 60
