"""A sanitizer, or a checker of Valgrind, reports the same with the library as without."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from support import requirements, tool
from support.targets import CFLAGS, PATIENCE_S, Compiler, Target, source_of

from locktop.collector.sources.launch import preload_environment

SANITIZERS = ["thread", "address", "undefined"]
LEVELS = ["dormant", "all"]
#: The search for leaks traces the own process, which a sandbox around the tests may forbid.
NO_LEAKS = {"ASAN_OPTIONS": "detect_leaks=0"}
FAULTS = {
    "thread": "data race",
    "address": "heap-buffer-overflow",
    "undefined": "signed integer overflow",
}
#: Without the library, too, a run in some hundred shows no race: one thread ended before the other.
_RUNS = 10
NAMES = {"thread": "tsan", "address": "asan", "undefined": "ubsan"}


def runtime_flags(compiler: str, sanitizer: str, is_shared: bool) -> list[str]:
    """Return the flags that link the sanitizer's runtime in one way."""
    if compiler == "gcc":
        return [] if is_shared else [f"-static-lib{NAMES[sanitizer]}"]
    if not is_shared:
        return ["-static-libsan"]
    found = subprocess.run(
        [compiler, "-print-runtime-dir"], check=True, capture_output=True, text=True
    )
    resources = subprocess.run(
        [compiler, "-print-resource-dir"], check=True, capture_output=True, text=True
    )
    paths = [found.stdout.strip(), f"{resources.stdout.strip()}/lib/linux"]
    return ["-shared-libsan", *(f"-Wl,-rpath,{path}" for path in paths)]


def sanitized(
    name: str, compiler: str, sanitizer: str, is_shared: bool, directory: Path, *flags: str
) -> Path:
    """Return a program that has the sanitizer's runtime; skip the test if that does not work."""
    requirements.command(compiler, optional=compiler == "clang")
    output = directory / name
    command = [compiler, *CFLAGS, str(source_of(name)), "-o", str(output), *flags]
    command += ["-Wno-ignored-optimization-argument"] if compiler == "clang" else []
    command += [f"-fsanitize={sanitizer}", *runtime_flags(compiler, sanitizer, is_shared)]
    built = subprocess.run(command, capture_output=True, text=True)
    if built.returncode != 0:
        package = "libclang-rt-dev" if compiler == "clang" else "gcc"
        is_optional = compiler == "clang"
        what = f"a runtime of {compiler} ({built.stderr[-300:]})"
        requirements.missing(what, package, is_optional)
    # Clang 14's shared runtime of the thread sanitizer crashes in any program.
    if compiler == "clang" and outcome([output], {}, **NO_LEAKS)[0] == -signal.SIGSEGV:
        pytest.skip(
            f"the {sanitizer} sanitizer of this {compiler} crashes without the library, too"
        )
    return output


def outcome(
    command: Sequence[str | Path], preload: dict[str, str], **variables: str
) -> tuple[int, list[str], str]:
    """Run a command to its end; return its status, its lines but the counts, and its errors."""
    run = subprocess.run(
        [str(part) for part in command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env={**os.environ, **preload, **variables},
    )
    return run.returncode, run.stdout.splitlines()[1:], run.stderr


each_runtime = pytest.mark.parametrize(
    ("compiler", "is_shared"),
    [("gcc", True), ("gcc", False), ("clang", True), ("clang", False)],
    ids=["gcc-shared", "gcc-static", "clang-shared", "clang-static"],
)


@each_runtime
@pytest.mark.parametrize("sanitizer", SANITIZERS)
def test_a_sanitizer_reports_nothing_with_the_library(
    compiler: str, sanitizer: str, is_shared: bool, tmp_path: Path
) -> None:
    program = sanitized("passes_turns", compiler, sanitizer, is_shared, tmp_path)
    assert outcome([program], {}, **NO_LEAKS) == (0, ["ok"], "")
    for level in LEVELS:
        assert outcome([program], preload_environment(level), **NO_LEAKS) == (0, ["ok"], "")


@each_runtime
@pytest.mark.parametrize("sanitizer", SANITIZERS)
def test_a_sanitizer_reports_the_same_faults_with_the_library(
    compiler: str, sanitizer: str, is_shared: bool, tmp_path: Path
) -> None:
    program = sanitized("has_three_faults", compiler, sanitizer, is_shared, tmp_path)
    for preload in [{}, preload_environment("all")]:
        for _ in range(_RUNS):
            _, _, errors = outcome([program], preload, **NO_LEAKS)
            assert "double lock" not in errors
            if FAULTS[sanitizer] in errors:
                break
        assert FAULTS[sanitizer] in errors


@each_runtime
def test_an_argument_that_a_thread_ignores_is_no_leak(
    compiler: str, is_shared: bool, tmp_path: Path
) -> None:
    program = sanitized("thread_ignores_argument", compiler, "address", is_shared, tmp_path)
    if outcome([program], {}) != (0, ["ok"], ""):
        pytest.skip("no leaks can be searched for here: the search traces the own process")
    assert outcome([program], preload_environment("all")) == (0, ["ok"], "")


@each_runtime
def test_a_program_with_the_address_sanitizer_is_watched(
    compiler: str, is_shared: bool, tmp_path: Path
) -> None:
    program = sanitized("passes_turns", compiler, "address", is_shared, tmp_path)
    with Target([program], {**preload_environment("all"), **NO_LEAKS}) as target:
        waits = target.truth()["wait"]
        target.expect("ok")
        lock = tool.lock_named(tool.snapshot(target.pid), "g_turn_lock")
        assert lock["acquisitions"] == 4 * 200 + 1 + waits + 1


def test_a_program_with_options_of_its_own_needs_one_more(tmp_path: Path) -> None:
    """The program's function comes first, so the library cannot add an option."""
    source = tmp_path / "options.c"
    source.write_text('const char *__asan_default_options(void) { return "exitcode=42"; }')
    program = sanitized("has_three_faults", "gcc", "address", True, tmp_path, str(source))
    preload = preload_environment("all")
    assert "does not come first" in outcome([program], preload, **NO_LEAKS)[2]
    more = {"ASAN_OPTIONS": f"{NO_LEAKS['ASAN_OPTIONS']}:verify_asan_link_order=0"}
    for status, _, errors in [outcome([program], {}, **more), outcome([program], preload, **more)]:
        assert FAULTS["address"] in errors
        assert status == 42


def test_another_library_before_the_address_sanitizer_still_ends_the_program(
    compiler: Compiler, tmp_path: Path
) -> None:
    """The runtime refuses that program without locktop, too."""
    before = compiler.program("counts_condition_calls", "-shared", "-fPIC")
    program = sanitized("passes_turns", "gcc", "address", True, tmp_path)
    library = preload_environment(None)["LD_PRELOAD"]
    for preload in [f"{before}", f"{before}:{library}", f"{library}:{before}"]:
        status, _, errors = outcome([program], {"LD_PRELOAD": preload}, **NO_LEAKS)
        assert status != 0
        assert "does not come first" in errors


@pytest.mark.parametrize("is_shared", [True, False], ids=["shared", "static"])
def test_a_program_with_the_thread_sanitizer_says_why_it_is_unwatched(
    is_shared: bool, tmp_path: Path
) -> None:
    program = sanitized("passes_turns", "gcc", "thread", is_shared, tmp_path)
    with Target([program], preload_environment("all")) as target:
        target.truth()
        target.expect("ok")
        document = tool.snapshot(target.pid)
        assert document["source"] == "proc"
        assert "another tool checks this program" in document["notes"][0]


@pytest.mark.parametrize("checker", ["drd", "helgrind", "memcheck"])
def test_a_checker_of_valgrind_reports_nothing_with_the_library(
    checker: str, compiler: Compiler
) -> None:
    valgrind = requirements.command("valgrind", optional=True)
    program = compiler.program("passes_turns")
    command: list[str | Path] = [valgrind, "-q", f"--tool={checker}", "--error-exitcode=9"]
    expected = outcome([*command, program], {})
    assert expected[:2] == (0, ["ok"])
    assert outcome([*command, program], preload_environment("all")) == expected
