"""Programs that can be watched, and advice for other processes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from locktop.collector.errors import LocktopError
from locktop.collector.linux import procfs
from locktop.collector.linux.target import find_process
from locktop.collector.sources import discover, launch, preloadable

TINY = "int main(void) { return 0; }\n"


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a dynamic and a static program."""
    directory = tmp_path_factory.mktemp("programs")
    (directory / "tiny.c").write_text(TINY)
    for name, flags in (("dynamic", []), ("static", ["-static"]), ("static-pie", ["-static-pie"])):
        subprocess.run(["cc", *flags, "-o", name, "tiny.c"], cwd=directory, check=True)
    return directory


def test_static_programs_are_recognized(build: Path) -> None:
    assert preloadable.why_not_preloadable(str(build / "dynamic")) == ""
    for name in ("static", "static-pie"):
        with pytest.raises(LocktopError, match="statically linked"):
            launch.check_program([str(build / name)])


def test_each_other_kind_of_program_has_a_reason(build: Path, tmp_path: Path) -> None:
    whole = bytearray((build / "dynamic").read_bytes())
    for at, value, message in ((4, 1, "32-bit"), (18, 0xF3, "kind of processor")):
        changed = bytearray(whole)
        changed[at] = value
        (tmp_path / "changed").write_bytes(changed)
        assert message in preloadable.why_not_preloadable(str(tmp_path / "changed"))
    musl = bytes(whole).replace(b"/lib64/ld-linux-x86-64.so.2", b"/lib/ld-musl-x86_64.so.1\0\0\0")
    if musl != bytes(whole):  # the loader of another machine has another name
        (tmp_path / "musl").write_bytes(musl)
        assert "musl" in preloadable.why_not_preloadable(str(tmp_path / "musl"))
    for size in (0, 3, 20, 60, 70):
        (tmp_path / "cut").write_bytes(whole[:size])
        with pytest.raises(ValueError, match="ELF"):
            preloadable.why_not_preloadable(str(tmp_path / "cut"))


def test_a_script_counts_as_its_interpreter(build: Path, tmp_path: Path) -> None:
    script = tmp_path / "script"
    for interpreter, watched in (("dynamic", True), ("static", False)):
        script.write_text(f"#!{build / interpreter} -x\n")
        script.chmod(0o755)
        if watched:
            assert launch.check_program([str(script)]) == str(script)
        else:
            with pytest.raises(LocktopError, match="statically linked"):
                launch.check_program([str(script)])


def test_each_unusable_command_is_an_error(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("no program\n")
    text.chmod(0o755)
    with pytest.raises(LocktopError, match="not a program"):
        launch.check_program([str(text)])
    with pytest.raises(LocktopError, match="no such program"):
        launch.check_program(["no-such-program-at-all"])
    with pytest.raises(LocktopError, match="no such program"):
        launch.check_program([str(tmp_path / "none")])
    with pytest.raises(LocktopError, match="is a directory"):
        launch.check_program([str(tmp_path)])
    text.chmod(0o644)
    with pytest.raises(LocktopError, match="is not executable"):
        launch.check_program([str(text)])
    with pytest.raises(LocktopError, match="no command"):
        launch.check_program([])


def test_the_environment_keeps_earlier_preloads(monkeypatch: pytest.MonkeyPatch) -> None:
    library = str(launch.library())
    monkeypatch.setenv("LD_PRELOAD", f"/lib/one.so {library}:/lib/two.so")
    environment = launch.preload_environment("counting")
    assert environment["LD_PRELOAD"] == f"{library}:/lib/one.so:/lib/two.so"
    assert environment["LOCKTOP_LEVEL"] == "counting"
    assert "LOCKTOP_LEVEL" not in launch.preload_environment()
    with pytest.raises(LocktopError, match="dormant, counting, contended"):
        launch.preload_environment("loud")


def test_a_missing_process_is_an_error() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    for pid in (child.pid, 0, -1, 2**31 - 1):
        with pytest.raises(LocktopError, match="no such process"):
            find_process(pid)


def test_a_thread_is_not_a_process() -> None:
    tids: list[int] = []
    ready, done = threading.Event(), threading.Event()

    def run() -> None:
        tids.append(threading.get_native_id())
        ready.set()
        done.wait()

    thread = threading.Thread(target=run)
    thread.start()
    ready.wait()
    try:
        with pytest.raises(LocktopError, match=f"thread of process {os.getpid()}"):
            find_process(tids[0])
    finally:
        done.set()
        thread.join()


def test_a_zombie_has_exited() -> None:
    with subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        with pytest.raises(LocktopError, match="has exited"):
            find_process(child.pid)


def test_an_unwatched_process_gets_advice_to_preload() -> None:
    # During execve(2) /proc has no command line, so the child must have reached its code.
    command = [sys.executable, "-c", "print('ready', flush=True); input()"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        with pytest.raises(LocktopError, match="locktop run"):
            discover.open_memory(find_process(child.pid))
        found = [c for c in discover.candidates() if c.pid == child.pid]
        assert [(c.preloaded, "locktop run" in c.why) for c in found] == [(False, True)]
        child.communicate(b"\n")


def test_the_reason_that_the_library_left_is_found() -> None:
    maps = (
        b"7f00-7f01 r--s 00000000 00:01 9 /memfd:locktop: cannot make /dev/shm/x: no\x1b space "
        b"(deleted)\n7f02-7f03 r-xp 0 fe:00 1 /usr/lib/liblocktop.so\n"
    )
    assert discover.reason_left(maps) == "cannot make /dev/shm/x: no? space"
    assert discover.reason_left(b"7f02-7f03 r-xp 0 fe:00 1 /usr/lib/liblocktop.so\n") == ""


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        ("cannot make /nodir/x: no such directory (errno 2)", "LOCKTOP_DIR"),
        ("cannot reserve memory in /dev/shm/x: no space left (errno 28)", "make room"),
        ("cannot make /dev/shm/x: file size limit (ulimit -f) (errno 27)", "`ulimit -f unlimited`"),
        # LOCKTOP_MEMORY is too small.
        ("cannot make /dev/shm/x: file size limit (ulimit -f) (errno 27)", "raise LOCKTOP_MEMORY"),
        ("cannot make /dev/shm/x: too many open files (errno 24)", "`ulimit -n`"),
        ("cannot make /dev/shm/x: error (errno 9999)", "LOCKTOP_DIR"),
        ("no room for the first tables", "LOCKTOP_DIR"),
    ],
)
def test_each_reason_has_a_remedy(reason: str, word: str) -> None:
    assert word in discover.remedy(reason)
    assert discover.remedy(reason).endswith("start the program again")


def test_names_with_blanks_and_parentheses_are_read_from_stat() -> None:
    line = b"7 (a) b (c) S 1 " + b"0 " * 9 + b"250 50 " + b"0 " * 6 + b"12345 0 0"
    stat = procfs.parse_stat(line)
    assert (stat.comm, stat.state, stat.start_time) == ("a) b (c", "S", 12345)
    assert stat.cpu_s == pytest.approx(300 * procfs.CLOCK_TICK_S)
