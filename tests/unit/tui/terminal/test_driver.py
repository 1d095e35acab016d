"""The driver: its thread for input, and its end."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys

import pytest
import textual
from support.pty_tool import PtyTool

#: The private parts of Textual that the driver uses: a module, and a name in it.
_PRIVATE_PARTS = (
    *(("textual._ansi_sequences", name) for name in ("SYNC_START", "SYNC_END")),
    *(("textual._xterm_parser", f"XTermParser.{name}") for name in ("feed", "tick")),
    *(
        ("textual.drivers.linux_driver", f"LinuxDriver.{name}")
        for name in (
            *("write", "run_input_thread", "process_message", "disable_input", "close"),
            *("start_application_mode", "stop_application_mode", "_get_terminal_size"),
            *("_request_terminal_sync_mode_support", "_sigtstp_application"),
            *("_sigcont_application", "_enable_mouse_support", "_disable_mouse_support"),
            *("_patch_lflag", "_patch_iflag"),
        )
    ),
)
_CHANGED = (
    f"Textual {textual.__version__} has changed {{}}, which tui/terminal/driver.py uses:"
    " see docs/internals/adr/0008-output-below-textual.md"
)


def _has(module: str, name: str) -> bool:
    try:
        part: object = importlib.import_module(module)
    except ImportError:
        return False
    for attribute in name.split("."):
        part = getattr(part, attribute, None)
    return part is not None


@pytest.mark.parametrize(("module", "name"), _PRIVATE_PARTS)
def test_textual_has_the_private_parts(module: str, name: str) -> None:
    assert _has(module, name), _CHANGED.format(f"{module}: {name}")


def test_textual_sends_and_parses_as_the_driver_expects() -> None:
    sequences = importlib.import_module("textual._ansi_sequences")
    parser = importlib.import_module("textual._xterm_parser").XTermParser
    sent = (sequences.SYNC_START, sequences.SYNC_END)
    assert sent == ("\x1b[?2026h", "\x1b[?2026l"), _CHANGED.format("SYNC_START or SYNC_END")
    assert list(inspect.signature(parser).parameters) == ["debug"], _CHANGED.format("XTermParser")
    keys = [event.key for event in parser(False).feed("a\x1b[A")]
    assert keys == ["a", "up"], _CHANGED.format("XTermParser.feed()")


def test_a_private_part_that_is_missing_is_noticed() -> None:
    assert not _has("textual._no_such_module", "SYNC_START")
    assert not _has("textual._xterm_parser", "XTermParser.no_such_method")


#: The writer handles its signal only after the end of the patience, as an unscheduled thread.
_LATE = """
import os, signal, threading, time
from locktop.tui.terminal import driver

blocked, sent, ended = threading.Event(), threading.Event(), threading.Event()

class File:
    dropping = abandoned = False
    def fileno(self):
        sent.set()
        return os.open(os.devnull, os.O_RDWR)

def late():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    blocked.set()
    ended.wait()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])

writer = threading.Thread(target=late)
writer.start()
blocked.wait()
patience = driver.Patience(File(), lambda: writer, patience_s=0.01)
patience.start()
while not sent.is_set():
    time.sleep(0.01)
patience.stop()
ended.set()
writer.join()
print("over", signal.getsignal(signal.SIGALRM) == signal.SIG_DFL)
"""


def test_a_late_signal_to_the_writer_does_not_end_the_process() -> None:
    child = [sys.executable, "-c", _LATE]
    done = subprocess.run(child, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "over True\n", "")


#: The rest of the end begins when keys have come for what runs next.
_TYPED_AHEAD = """
import select
from textual.app import App
from locktop.tui.terminal.driver import Meter, MeteredDriver

class Driver(MeteredDriver):
    meter = Meter()
    def stop_application_mode(self):
        super().stop_application_mode()
        select.select([0], [], [])

class Ends(App):
    def on_ready(self):
        self.exit()

Ends(driver_class=Driver).run()
print("typed", input())
"""


def test_keys_typed_after_the_screen_are_for_the_shell() -> None:
    with PtyTool([sys.executable, "-c", _TYPED_AHEAD]) as tool:
        tool.until(lambda _: b"\x1b[?1049l" in tool.since(0), "the screen of the shell")
        tool.press("these words\r")
        tool.shows("typed these words")


#: The screen ends when the thread for input has slept for a second. The escape key comes before.
_SLEEPS = """
import time
from textual.app import App
from locktop.tui.terminal.driver import Meter, MeteredDriver

class Driver(MeteredDriver):
    meter = Meter()

class Sleeps(App):
    def on_key(self, event):
        self.run_worker(self.wait, thread=True)

    def wait(self):
        before = None
        while before != (now := self.switches()):
            before = now
            time.sleep(1)
        self.exit()

    def switches(self):
        thread = self._driver._key_thread
        with open(f"/proc/self/task/{thread.native_id}/status") as file:
            return next(line for line in file if line.startswith("voluntary"))

Sleeps(driver_class=Driver).run()
print("slept", "a second")
"""


def test_without_keys_nothing_wakes_the_thread_for_input() -> None:
    with PtyTool([sys.executable, "-c", _SLEEPS]) as tool:
        tool.until(lambda _: b"\x1b[?1049h" in tool.since(0), "the screen of the app")
        tool.press("\x1b")
        tool.shows("slept a second")
