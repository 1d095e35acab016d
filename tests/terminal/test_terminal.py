"""The screen on a pty: bytes for a frame, a terminal that does not read, keys."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path
from statistics import median

import pytest
from support.emulator import Emulator
from support.terminal import LONG_ENOUGH_S, Terminal

BUDGET_BYTES = 2 * 1024


def test_the_first_frame_shows_a_snapshot_not_an_empty_screen(terminal: Terminal) -> None:
    first, end, _ = terminal.since(0).partition(b"\x1b[m")  # a painting ends with the reset
    assert end
    assert b"shard0.mutex" in first


def test_a_frame_takes_few_bytes(
    terminal: Terminal, record_property: pytest.RecordProperty
) -> None:
    frames = [terminal.frame(f"tick {tick}") for tick in range(1, 21)]
    record_property("bytes a frame", sum(frames) / len(frames))
    assert all(frames), "each tick changes a visible figure"
    assert sum(frames) / len(frames) <= BUDGET_BYTES, frames


def lines_after(output: bytes) -> list[str]:
    """The lines that a terminal shows after ``output``."""
    emulator = Emulator(120, 40)
    emulator.feed(output)
    return emulator.text.split("\n")


def test_the_sent_bytes_add_up_to_the_text_of_the_screen(terminal: Terminal) -> None:
    """The screen sends changed cells alone; a forgotten cell would stay wrong for ever."""
    for tick, key in enumerate(["", "\t", "S", "j", "\t", "s", "i", "\x1b[6~", "p", "p"], start=1):
        terminal.press(key)
        terminal.frame("settle")
        answer = terminal.tell(f"tick {tick}")
        terminal.wait_bytes(answer["queued"])
        assert lines_after(terminal.since(0)) == answer["text"].split("\n")


def test_an_unchanged_snapshot_sends_nothing(terminal: Terminal) -> None:
    terminal.frame("tick 1")
    terminal.frame("same")
    assert [terminal.frame("same") for _ in range(5)] == [0] * 5


def test_the_call_tree_sends_changes_alone(terminal: Terminal) -> None:
    mark = terminal.received
    terminal.press("c")
    terminal.wait_text("Callers", mark)
    terminal.frame("settle")  # no frame is drawn before the terminal has read the last frame
    terminal.frame("calls 0")
    assert "step_0_0" in terminal.tell("settle")["text"]
    assert terminal.frame("same") == 0
    sizes = [terminal.frame(f"calls {tick}") for tick in range(1, 21)]
    assert 0 < median(sizes) <= BUDGET_BYTES


def test_the_sent_bytes_add_up_after_visits_to_the_call_tree(terminal: Terminal) -> None:
    walk = [
        ("c", "Callers"), ("\r", "Function"), ("\x1b", "Callers"), ("v", "by waits"),
        ("\x1b", "Locks"), ("c", "Callers"), ("\x1b", "Locks"),
    ]  # fmt: skip
    terminal.frame("calls 0")
    for tick, (key, seen) in enumerate(walk, start=1):
        mark = terminal.received
        terminal.press(key)
        terminal.wait_text(seen, mark)
        terminal.frame("settle")
        answer = terminal.tell(f"calls {tick}")
        terminal.wait_bytes(answer["queued"])
        assert lines_after(terminal.since(0)) == answer["text"].split("\n")


def test_a_terminal_of_unknown_size_is_painted_once() -> None:
    terminal = Terminal("child.py", (0, 0))
    try:
        terminal.wait_text("shard0.mutex", 0)
        terminal.tell("settle")
        assert [terminal.frame("settle") for _ in range(5)] == [0] * 5
    finally:
        terminal.close()


def test_a_key_paints_without_waiting_for_the_next_scan(
    terminal: Terminal, record_property: pytest.RecordProperty
) -> None:
    mark = terminal.received
    terminal.press("s")
    record_property("key to paint, s", terminal.wait_text("by contended", mark))


def test_an_unread_terminal_lowers_the_rate_and_blocks_nothing(
    terminal: Terminal,
) -> None:
    requested = terminal.tell("settle")["interval_s"]
    terminal.hold()
    mark = terminal.received
    slow = None
    # A pty takes some 64 KB before it blocks; then frames are skipped, not queued.
    for tick in range(1, 400):
        answer = terminal.tell(f"tick {tick}")
        if answer["interval_s"] > 4 * requested:
            slow = answer
            break
    assert slow is not None, "the rate was never lowered"
    more = [terminal.tell(f"tick {400 + tick}")["queued"] for tick in range(10)]
    assert more[-1] - slow["queued"] <= BUDGET_BYTES, "frames are still queued"
    # The event loop is not blocked: a key works although nobody reads the output.
    terminal.press("p")
    terminal.tell("settle")
    terminal.go_on()
    terminal.wait_text("PAUSED", mark)


def test_quitting_leaves_the_terminal_as_it_was(terminal: Terminal) -> None:
    mark = terminal.received
    terminal.press("q")
    assert terminal.process.wait(LONG_ENOUGH_S) == 0
    terminal.wait_text("\x1b[?1049l", mark)
    assert b"\x1b[?25h" in terminal.since(mark)


def test_sigterm_leaves_the_terminal_as_it_was(terminal: Terminal) -> None:
    mark = terminal.received
    terminal.process.send_signal(signal.SIGTERM)
    assert terminal.process.wait(LONG_ENOUGH_S) == 128 + signal.SIGTERM
    terminal.wait_text("\x1b[?1049l", mark)


def test_sigusr2_saves_a_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, terminal_here: Callable[[], Terminal]
) -> None:
    monkeypatch.chdir(tmp_path)
    terminal = terminal_here()
    mark = terminal.received
    terminal.process.send_signal(signal.SIGUSR2)
    terminal.wait_text("Saved ", mark)
    (path,) = tmp_path.glob("locktop-*.json")
    assert json.loads(path.read_text())["format"] == "locktop.snapshot"
    terminal.press("q")
    assert terminal.process.wait(LONG_ENOUGH_S) == 0


@pytest.mark.parametrize("keys", ["", "t" * 80], ids=["a full terminal", "a full queue too"])
def test_sigterm_ends_the_screen_of_an_unread_terminal(
    impatient_terminal: Terminal, keys: str
) -> None:
    terminal = impatient_terminal
    mark = terminal.received
    terminal.fill()
    terminal.press(keys)  # each key paints the whole screen
    terminal.process.send_signal(signal.SIGTERM)
    assert terminal.process.wait(LONG_ENOUGH_S) == 128 + signal.SIGTERM
    terminal.go_on()
    # A later reader finds the terminal restored.
    terminal.wait_text("\x1b[?1049l", mark)
    terminal.wait_text("\x1b[?25h", mark)


def test_quitting_ends_the_screen_of_an_unread_terminal(impatient_terminal: Terminal) -> None:
    terminal = impatient_terminal
    terminal.fill()
    terminal.press("q")
    assert terminal.process.wait(LONG_ENOUGH_S) == 0


def test_a_terminal_that_hangs_up_ends_the_screen(terminal: Terminal) -> None:
    """The terminal does not control the child, so the kernel sends no signal."""
    terminal.press("?")
    terminal.hang_up()
    assert terminal.process.wait(LONG_ENOUGH_S) == 128 + signal.SIGHUP


def test_after_a_stop_the_whole_screen_is_painted_again(terminal: Terminal) -> None:
    terminal.press("\x1a")
    _, status = os.waitpid(terminal.process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    mark = terminal.received
    terminal.process.send_signal(signal.SIGCONT)
    # From the first line to the last line, although no line has changed.
    for text in ("store", "WAITERS", "shard0.mutex", "Details", "sort"):
        terminal.wait_text(text, mark)


def test_the_mouse_stays_with_the_terminal_until_a_key_turns_it_on(terminal: Terminal) -> None:
    reporting = re.compile(rb"\x1b\[\?(9|100[02356]|101[56])h")
    assert not reporting.search(terminal.since(0))
    mark = terminal.received
    terminal.press("x")
    terminal.wait_text("\x1b[?1000h", mark)
    terminal.wait_text("The mouse chooses rows", mark)
    assert b"\x1b[?1003h" not in terminal.since(mark)
    row = next(
        number
        for number, line in enumerate(terminal.tell("settle")["text"].split("\n"), start=1)
        if "shard2.mutex" in line
    )
    mark = terminal.received
    terminal.press(f"\x1b[<0;5;{row}M\x1b[<0;5;{row}m")
    terminal.wait_text(" shard2.mutex", mark)
    mark = terminal.received
    terminal.press("x")
    terminal.wait_text("\x1b[?1000l", mark)
    mark = terminal.received
    terminal.press("q")
    assert terminal.process.wait(LONG_ENOUGH_S) == 0
    terminal.wait_text("\x1b[?1049l", mark)
    assert not reporting.search(terminal.since(mark))


def test_the_palette_sends_few_bytes(
    terminal: Terminal, record_property: pytest.RecordProperty
) -> None:
    sizes = []
    for key, seen in (("t", "Theme"), ("\x10", "Actions"), ("reverse", "reverse the order")):
        mark = terminal.received
        terminal.press(key)
        terminal.wait_text(seen, mark)
        terminal.frame("settle")
        sizes.append(terminal.received - mark)
    record_property("bytes of a theme, of the palette, and of seven letters", sizes)
    whole, opened, typed = sizes
    assert opened < whole, "the screen below the palette is painted too"
    assert typed < whole
    mark = terminal.received
    terminal.press("\r")
    terminal.wait_text("reversed", mark)


def test_the_sent_bytes_add_up_after_a_visit_to_the_palette(terminal: Terminal) -> None:
    for tick, keys in enumerate(["\x10", "sor", "\x7f\x7f", "\x1b", "\x10theme\r"], start=1):
        terminal.press(keys)
        terminal.frame("settle")
        answer = terminal.tell(f"tick {tick}")
        terminal.wait_bytes(answer["queued"])
        assert lines_after(terminal.since(0)) == answer["text"].split("\n")


def test_a_burst_of_keys_reaches_the_filter_of_the_picker_and_then_the_list(
    picker: Terminal,
) -> None:
    mark = picker.received
    picker.press("/qrt/x")
    picker.wait_text("with “qrt/x”", mark)
    mark = picker.received
    picker.press("\x1b")
    picker.wait_text("store --port", mark)
    mark = picker.received
    # A corrected typing error, the filter closed and opened again, and Enter on the last row.
    picker.press("/sx\x7f\r")
    picker.wait_text("with “s”", mark)
    mark = picker.received
    picker.press("/t\r\r")
    picker.wait_text("picked 312 status 0", mark)
    assert picker.process.wait(LONG_ENOUGH_S) == 0


@pytest.mark.parametrize("before", ["", "/", "/qw\r"])
def test_control_c_ends_the_picker_during_any_input(picker: Terminal, before: str) -> None:
    mark = picker.received
    picker.press(f"{before}\x03")
    picker.wait_text("picked None status 0", mark)
