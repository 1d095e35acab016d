"""A killed reader does not disturb its target, and a reader of a killed target says so."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

from support import tool
from support.screen import Screen
from support.targets import StartTarget

Need = Callable[[str], Path]


def shows_lock(name: str) -> Callable[[str], bool]:
    return lambda text: name in text


def test_a_killed_screen_disturbs_neither_the_target_nor_another_screen(
    start_target: StartTarget, need: Need
) -> None:
    tmux = need("tmux")
    target = start_target("nested_locks_one_order")
    target.expect("ready")
    with (
        Screen(tmux, "-p", target.pid) as first,
        Screen(tmux, "-p", target.pid, width=80, height=24) as second,
    ):
        first.until(shows_lock("g_middle_lock"), "the lock on the first screen")
        second.until(shows_lock("g_middle_lock"), "the lock on the second screen")
        before = tool.lock_named(tool.snapshot(target.pid), "g_middle_lock")
        os.kill(first.pid, signal.SIGKILL)
        first.until(lambda _: first.ended, "the end of the first screen")

        def moved_on(document: dict[str, object]) -> bool:
            return bool(
                tool.lock_named(document, "g_middle_lock")["acquisitions"]
                > before["acquisitions"] + 1000
            )

        tool.scan_until(target.pid, moved_on, "1,000 further acquisitions")
        assert not second.ended
        os.kill(second.pid, signal.SIGKILL)
        second.until(lambda _: second.ended, "the end of the second screen")
    assert tool.run("check", "-p", target.pid).returncode == 0
    assert target.finish() == (0, [])


def test_the_screen_keeps_the_last_snapshot_of_a_killed_target(
    start_target: StartTarget, need: Need
) -> None:
    target = start_target("nested_locks_one_order")
    target.expect("ready")
    with Screen(need("tmux"), "-p", target.pid) as screen:
        screen.until(shows_lock("g_middle_lock"), "the lock")
        target.kill()
        text = screen.until(lambda seen: "ENDED" in seen, "the end of the target")
        assert "g_middle_lock" in text, "the last snapshot stays"
        screen.press("q")
        assert screen.status() == 0


def test_the_screen_writes_nothing_to_stderr(
    start_target: StartTarget, need: Need, tmp_path: Path
) -> None:
    target = start_target("nested_locks_one_order")
    target.expect("ready")
    with Screen(need("tmux"), "-p", target.pid, errors=tmp_path / "errors") as screen:
        screen.until(shows_lock("g_middle_lock"), "the lock")
        screen.press("q")
        assert screen.status() == 0
    assert (tmp_path / "errors").read_text() == ""


def test_the_banner_shows_a_deadlock_with_its_call_sites(
    start_target: StartTarget, need: Need
) -> None:
    target = start_target("ring_of_three")
    target.expect("ready")
    with Screen(need("tmux"), "-p", target.pid, width=160, height=60) as screen:
        screen.until(shows_lock("THREAD"), "the screen")
        screen.press("i")  # shows idle waits: the threads wait for their turn
        text = screen.until(shows_lock("alice"), "the threads")
        assert "DEADLOCK" not in text
        target.go_on()
        target.truth()
        sites = [
            f"{name}_{what}"
            for name in ("alice", "bob", "carol")
            for what in ("takes_first", "wants_second")
        ]
        screen.until(lambda seen: "DEADLOCK" in seen, "the banner")
        screen.until(lambda seen: all(site in seen for site in sites), "all six call sites")
        screen.press("q")
        assert screen.status() == 0


def test_a_snapshot_of_a_target_that_dies_meanwhile_shows_its_last_state(
    start_target: StartTarget,
) -> None:
    target = start_target("nested_locks_one_order")
    target.expect("ready")
    command = ("snapshot", "-p", target.pid, "-d", "3", "--format", "text")
    reader = tool.start(*command)
    try:
        opened = f"locktop-{target.pid}-"
        while not any(opened in link for link in open_files(reader.pid)):
            assert reader.poll() is None, "the command ended before its first scan"
        target.kill()
        output, errors = reader.communicate(timeout=tool.PATIENCE_S)
    finally:
        reader.kill()
        reader.communicate()
    assert (reader.returncode, errors) == (0, "")
    # The target may have died before the command read its mappings. Locks then have no names.
    assert "mutex" in output, "the report has the last locks"
    assert "ended" in output or "exited" in output, "the report says that the target has ended"


def open_files(pid: int) -> list[str]:
    found = []
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found.append(os.readlink(link))
        except OSError:
            pass  # closed meanwhile
    return found
