"""Copies from a mapped file: parts outside of it, and a file that is cut off meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from locktop.collector.native import ffi, lib
from locktop.collector.shm.segment import SharedMemory

_PAGE = os.sysconf("SC_PAGE_SIZE")


def shared(path: Path, size: int) -> SharedMemory:
    path.write_bytes(bytes(range(256)) * (size // 256))
    with path.open("rb") as written:
        os.fsync(written.fileno())  # now the file has its blocks
    return SharedMemory(os.open(path, os.O_RDONLY), str(path))


def copied(memory: SharedMemory, offset: int, size: int) -> bytes | None:
    """The bytes of a copy, None if the copy failed."""
    to = ffi.new("uint8_t[]", max(size, 1))
    return bytes(ffi.buffer(to, size)) if lib.lt_copy(memory.mapping(), to, size, offset) else None


def test_a_copy_has_the_bytes_of_the_file(tmp_path: Path) -> None:
    memory = shared(tmp_path / "file", 2 * _PAGE)
    assert copied(memory, _PAGE - 2, 4) == b"\xfe\xff\0\1"
    assert copied(memory, 2 * _PAGE, 0) == b""


@pytest.mark.parametrize(
    ("offset", "size"),
    [(2 * _PAGE - 1, 2), (2 * _PAGE + 1, 1), ((1 << 64) - 1, 2), ((1 << 63) - 1, 1)],
)
def test_no_copy_goes_beyond_the_file(tmp_path: Path, offset: int, size: int) -> None:
    memory = shared(tmp_path / "file", 2 * _PAGE)
    assert not lib.lt_copy(memory.mapping(), ffi.new("uint8_t[]", 2), size, offset)


def test_a_copy_fails_where_the_file_was_cut_off(tmp_path: Path) -> None:
    memory = shared(tmp_path / "file", 4 * _PAGE)
    assert copied(memory, 3 * _PAGE, 8) is not None
    os.truncate(memory.path, _PAGE)
    for _ in range(3):
        assert copied(memory, 3 * _PAGE, 8) is None
        assert copied(memory, 0, 8) == bytes(range(8))


def test_the_mapping_follows_the_size_of_the_file(tmp_path: Path) -> None:
    memory = shared(tmp_path / "file", _PAGE)
    first = memory.mapping()
    assert memory.mapping() is first
    shared(tmp_path / "file", 4 * _PAGE)
    memory.refresh()
    assert memory.mapping().size == 4 * _PAGE
    assert lib.lt_copy(first, ffi.new("uint8_t[]", 2), 2, 0)


def test_a_copy_from_a_distant_hole_takes_no_memory() -> None:
    """A load from a mapped hole would."""
    path = Path("/dev/shm") / f"locktop-test-{os.getpid()}"
    try:
        path.write_bytes(bytes(_PAGE))
        os.truncate(path, 1 << 30)
        memory = SharedMemory(os.open(path, os.O_RDONLY), str(path))
        for at in range(0, 1 << 30, 1 << 20):
            assert copied(memory, at, 8) == bytes(8)
        taken = path.stat().st_blocks * 512
        assert taken <= _PAGE + (64 << 20)
        memory.refresh()
        for at in range(_PAGE, 1 << 30, 1 << 20):
            assert copied(memory, at, 8) == bytes(8)
        assert path.stat().st_blocks * 512 <= _PAGE + (64 << 20), "no more after a refresh"
    finally:
        path.unlink()


def test_a_mapping_outlives_the_end_of_its_reader(tmp_path: Path) -> None:
    memory = shared(tmp_path / "file", _PAGE)
    kept = memory.mapping()
    memory.close()
    assert lib.lt_copy(kept, ffi.new("uint8_t[]", 2), 2, 0)


def test_a_file_that_cannot_be_mapped_is_read(tmp_path: Path) -> None:
    memory = shared(tmp_path / "file", _PAGE)
    mapping = ffi.new("struct lt_mapping *")
    assert not lib.lt_map_file(memory.fd, 1 << 63, mapping)
    to = ffi.new("uint8_t[]", 2)
    assert lib.lt_copy(mapping, to, 2, 7)
    assert bytes(to) == b"\7\x08"


_CUT_OFF = """
import faulthandler, mmap, os, signal, sys
from locktop.collector.native import ffi, lib
from locktop.collector.shm.segment import SharedMemory

def cut_off(name):
    with open(name, "wb") as file:
        file.write(bytes(8192))
        file.flush()
        os.fsync(file.fileno())
    memory = SharedMemory(os.open(name, os.O_RDONLY), name)
    memory.mapping()
    os.truncate(name, 0)
    return memory

def copy(memory):
    return lib.lt_copy(memory.mapping(), ffi.new("uint8_t[]", 8), 8, 4096)

def load_elsewhere(name):
    with open(name, "w+b") as file:
        file.truncate(8192)
        mapped = mmap.mmap(file.fileno(), 8192)
        file.truncate(0)
    return mapped[4096]

directory = sys.argv[1]
"""


def run(directory: Path, script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _CUT_OFF + script, str(directory)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_bus_error_elsewhere_still_ends_the_process(tmp_path: Path) -> None:
    found = run(
        tmp_path,
        "print(copy(cut_off(directory + '/a')), flush=True); load_elsewhere(directory + '/b')",
    )
    assert (found.stdout, found.returncode) == ("0\n", -signal.SIGBUS)


def test_a_signal_of_another_process_still_ends_the_process(tmp_path: Path) -> None:
    found = run(tmp_path, "copy(cut_off(directory + '/a')); os.kill(os.getpid(), signal.SIGBUS)")
    assert found.returncode == -signal.SIGBUS


def test_the_handler_before_still_gets_bus_errors_elsewhere(tmp_path: Path) -> None:
    found = run(
        tmp_path,
        "faulthandler.enable(); print(copy(cut_off(directory + '/a')), flush=True);"
        " load_elsewhere(directory + '/b')",
    )
    assert (found.stdout, found.returncode) == ("0\n", -signal.SIGBUS)
    assert "Bus error" in found.stderr


def test_a_handler_that_is_set_later_does_not_stay_alone(tmp_path: Path) -> None:
    found = run(
        tmp_path,
        "copy(cut_off(directory + '/a')); faulthandler.enable();"
        " print(copy(cut_off(directory + '/b')), flush=True); load_elsewhere(directory + '/c')",
    )
    assert (found.stdout, found.returncode) == ("0\n", -signal.SIGBUS)
    assert "Bus error" in found.stderr
