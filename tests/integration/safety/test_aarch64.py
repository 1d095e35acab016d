"""The library for aarch64: built by a cross compiler, run under qemu's user emulation."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.scans import full_scan
from support.symbol_versions import is_newer, needed_versions
from support.targets import CFLAGS, Target, source_of

from locktop.collector.model import Kind
from locktop.collector.native import ffi

ROOT = Path(__file__).parents[3]
COMPILER = "aarch64-linux-gnu-gcc"
EMULATOR = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"]
#: The C units that need a second piece of the shared file, which the emulator cannot map.
GROWING = {
    "arena",
    "calls",
    "held_list",
    "kept_blocks",
    "lock_names",
    "many_orders",
    "thread_table",
}

pytestmark = pytest.mark.skipif(
    not os.environ.get("CI") and not (shutil.which(COMPILER) and shutil.which(EMULATOR[0])),
    reason="no emulator: apt-get install gcc-aarch64-linux-gnu qemu-user",
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everything in native/, without a warning."""
    directory = tmp_path_factory.mktemp("aarch64")
    tools = Path(sys.executable).parent
    options = {
        "CMAKE_SYSTEM_NAME": "Linux",
        "CMAKE_SYSTEM_PROCESSOR": "aarch64",
        "CMAKE_C_COMPILER": COMPILER,
        "CMAKE_C_FLAGS": "-Werror",
        "CMAKE_MAKE_PROGRAM": str(tools / "ninja"),
        "LOCKTOP_TESTS": "ON",
    }
    _run(
        str(tools / "cmake"),
        *("-S", str(ROOT), "-B", str(directory), "-G", "Ninja"),
        *(f"-D{name}={value}" for name, value in options.items()),
    )
    _run(str(tools / "cmake"), "--build", str(directory))
    return directory / "native"


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_c_units_pass(built: Path) -> None:
    tests = sorted(built.glob("unit-*"))
    assert len(tests) > len(GROWING)
    for test in tests:
        if test.name.removeprefix("unit-") not in GROWING:
            _run(*EMULATOR, str(test))


def test_an_old_glibc_is_enough(built: Path) -> None:
    parts = [*built.glob("liblocktop*.so"), *built.glob("locktop-*")]
    assert len(parts) == 5  # the reader is built for a wheel alone
    for part in parts:
        too_new = {symbol for symbol, version in needed_versions(part) if is_newer(version)}
        assert not too_new, part.name


@pytest.fixture
def emulated(built: Path, tmp_path: Path) -> Iterator[Target]:
    """A waiting program with the library, under the emulator."""
    program = tmp_path / "record"
    _run(COMPILER, "-std=gnu11", *CFLAGS, str(source_of("one_wait_plain_libc")), "-o", str(program))
    preload = f"LD_PRELOAD={built / 'liblocktop.so'}"
    command: list[str | Path] = [*EMULATOR, "-E", preload, "-E", f"LOCKTOP_DIR={tmp_path}", program]
    with Target(command, {"LOCKTOP_DIR": str(tmp_path)}) as target:
        yield target


def test_a_wait_has_its_stack(emulated: Target, tmp_path: Path) -> None:
    truth = emulated.truth()
    _set_real_start_time(emulated.pid, tmp_path)
    snapshot = full_scan(emulated.pid)
    # The emulator has threads of its own, which wait, too.
    (waiting,) = [thread for thread in snapshot.threads if thread.tid == truth["tid"]]
    assert waiting.waiting_for is not None
    assert waiting.waiting_for.kind is Kind.MUTEX
    assert waiting.waiting_for.holders == (emulated.pid,)
    names = [frame.function for frame in snapshot.stacks[waiting.waiting_for.stack]]
    assert names[:3] == truth["functions"]
    emulated.go_on()
    emulated.expect("ok")


def _set_real_start_time(pid: int, directory: Path) -> None:
    """Correct the start time in the shared file: the emulator shows a false one to its program."""
    start_time = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    (path,) = directory.glob(f"locktop-{pid}-*")
    with path.open("r+b", buffering=0) as file:
        file.seek(ffi.offsetof("struct lt_header", "start_time"))
        file.write(start_time.to_bytes(8, "little"))
    path.rename(directory / f"locktop-{pid}-{start_time}")
