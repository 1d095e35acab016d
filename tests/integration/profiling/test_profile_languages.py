"""Profiles from C, C++ and Python; with the library preloaded, linked, or not there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import requirements, tool
from support.targets import TARGETS, Target

from locktop.collector.sources.launch import preload_environment

_SOURCE = TARGETS / "profiling" / "profiled_split.c"

#: Profiles a function of a library that is loaded with the interpreter.
_PYTHON = """
import ctypes, json
library = ctypes.CDLL(None)
if not hasattr(library, "locktop_profile_create"):
    print(json.dumps("not loaded"))
    raise SystemExit
class Totals(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in (
        "buckets", "samples", "elsewhere", "lost", "interval", "ran_ns", "threads", "left_out")]
library.locktop_profile_error.restype = ctypes.c_char_p
library.locktop_profile_create.argtypes = [
    ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int, ctypes.c_uint64,
    ctypes.c_int, ctypes.c_char_p]
start, size = ctypes.c_void_p(), ctypes.c_size_t()
found = library.locktop_profile_find(b"qsort_r", ctypes.byref(start), ctypes.byref(size))
assert found == 0, library.locktop_profile_error(found)
wrong = library.locktop_profile_create(start, size, 5, 0, 0, 0, b"wrong")
profile = library.locktop_profile_create(start, ctypes.c_size_t(-1).value, 64, 0, 0, 1, b"qsort_r")
assert profile > 0, library.locktop_profile_error(profile)
assert library.locktop_profile_start(profile) == 0
import time
while time.process_time() < 0.5:
    sum(range(10000))
assert library.locktop_profile_stop(profile) == 0
totals = Totals()
counts = (ctypes.c_uint64 * 1024)()
assert library.locktop_profile_read(profile, counts, 1024, ctypes.byref(totals)) == 0
print(json.dumps({
    "wrong": library.locktop_profile_error(wrong).decode(),
    "buckets": totals.buckets, "expected": (size.value + 63) // 64,
    "sum": sum(counts), "samples": totals.samples, "elsewhere": totals.elsewhere}))
assert library.locktop_profile_destroy(profile) == 0
"""


def python(environment: dict[str, str]) -> object:
    """Run the Python program; return what it says."""
    done = subprocess.run(
        [sys.executable, "-c", _PYTHON],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_python_program_uses_profiles_through_ctypes() -> None:
    said = python(preload_environment())
    assert isinstance(said, dict)
    assert said["wrong"].startswith("bucket_size: use a power of two")
    assert said["buckets"] == said["expected"]
    assert said["sum"] == said["samples"]
    assert said["elsewhere"] > 0, "the interpreter worked, not qsort_r()"


def test_a_python_program_can_tell_that_the_library_is_not_there() -> None:
    assert python({}) == "not loaded"


def built(output: Path, *flags: str, after: tuple[str, ...] = ()) -> Path:
    """Build the program of a known split with flags, and with flags ``after`` its file."""
    command = ["cc", "-pthread", "-D_GNU_SOURCE", *flags, str(_SOURCE), "-o", str(output), *after]
    subprocess.run(command, check=True)
    return output


@pytest.fixture(scope="module")
def linked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of a known split, linked with the library."""
    flags = tool.run("env", "--link")
    assert flags.returncode == 0, flags.stderr
    program = tmp_path_factory.mktemp("linked") / "linked"
    return built(program, "-Wl,--as-needed", after=tuple(flags.stdout.split()))


def test_a_linked_program_needs_no_environment(linked: Path) -> None:
    said = subprocess.run([linked, "0", "0", "2"], input=b"\n", capture_output=True, check=True)
    truth = json.loads(said.stdout)
    assert truth["code"] == 0
    assert truth["samples"] > 0


def test_a_linked_program_that_preloads_another_copy_has_one_library(
    linked: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "liblocktop.so"
    copy.write_bytes(Path(preload_environment()["LD_PRELOAD"].split(":")[0]).read_bytes())
    with Target([linked, "0", "0", "1"], {"LD_PRELOAD": str(copy)}) as target:
        assert target.truth()["code"] == 0
        maps = Path(f"/proc/{target.pid}/maps").read_text().split()
    assert {name for name in maps if name.endswith("liblocktop.so")} == {str(copy)}


@pytest.mark.parametrize("flags", [("-O0",), ("-O2",), ("-no-pie", "-O2"), ("-fPIE", "-pie")])
def test_without_the_library_each_call_says_so(flags: tuple[str, ...], tmp_path: Path) -> None:
    program = built(tmp_path / "alone", *flags)
    said = json.loads(subprocess.run([program], stdout=subprocess.PIPE, check=True).stdout)
    assert said["code"] == -1
    assert said["error"].startswith("liblocktop.so is not loaded")
    variables = {**os.environ, **preload_environment()}
    done = subprocess.run(
        [program, "0", "0", "1"], input=b"\n", stdout=subprocess.PIPE, env=variables, check=True
    )
    assert json.loads(done.stdout)["code"] == 0


_STRICT = ("-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", "-Wconversion", "-Wshadow")
_USE = """
#include <locktop.h>
LOCKTOP_SECTION(hot) int work(int value) { return value + 1; }
int main(void)
{
    struct locktop_profile_source_info info;
    struct locktop_profile_totals totals;
    uint64_t counts[16];
    int profile = locktop_profile_create_section(hot, 4, LOCKTOP_TIMER, 0, 0, "w");
    int other = locktop_profile_create_function(work, 4, LOCKTOP_TIMER, 0, 1, "f");
    locktop_profile_start(profile);
    locktop_profile_stop(profile);
    locktop_profile_read(profile, counts, 16, &totals);
    locktop_profile_source_info(LOCKTOP_CYCLES, &info);
    locktop_profile_destroy(other);
    return locktop_profile_error(profile)[0] == work(0);
}
"""


@pytest.mark.parametrize(
    "command",
    [("cc", "-std=c99"), ("cc", "-std=c11"), ("c++", "-std=c++11"), ("c++", "-std=c++20")],
    ids=" ".join,
)
def test_the_header_compiles_without_a_warning(command: tuple[str, ...], tmp_path: Path) -> None:
    requirements.command(command[0])
    source = tmp_path / f"use.{'c' if command[0] == 'cc' else 'cc'}"
    source.write_text(_USE)
    include = Path(__file__).resolve().parents[3] / "native" / "include"
    subprocess.run([*command, *_STRICT, f"-I{include}", str(source)], check=True)
