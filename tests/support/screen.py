"""The real screen in a real terminal: tmux draws it, and the test reads the text."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from support.tool import COMMAND, PATIENCE_S


class Screen:
    """``locktop ARGUMENTS`` in a terminal of its own."""

    def __init__(
        self,
        tmux: Path,
        *arguments: str | int,
        width: int = 120,
        height: int = 40,
        errors: Path | None = None,
    ):
        """Start locktop; ``errors`` is a file that receives its standard error."""
        self._directory = tempfile.TemporaryDirectory()
        self._pid = Path(self._directory.name, "pid")
        self._status = Path(self._directory.name, "status")
        self._tmux = [str(tmux), "-S", f"{self._directory.name}/tmux", "-f", "/dev/null", "-u"]
        # The inner shell becomes the tool, and the outer shell outlives it. The variable
        # of tmux for the status of a dead pane stays empty now and then.
        tool = f"echo $$ > {self._pid}; exec {shlex.join([COMMAND, *map(str, arguments)])}"
        if errors is not None:
            tool += f" 2> {shlex.quote(str(errors))}"
        command = f"sh -c {shlex.quote(tool)}; echo $? > {self._status}"
        environment = {**os.environ, "TERM": "xterm-256color", "LANG": "C.UTF-8"}
        environment.pop("TMUX", None)
        size = ["-x", str(width), "-y", str(height)]
        stay = ["set-option", "-g", "remain-on-exit", "on"]  # keeps the last frame readable
        subprocess.run(
            [*self._tmux, "start-server", ";", *stay, ";", "new-session", "-d", *size, command],
            env=environment,
            check=True,
        )

    def __enter__(self) -> Screen:
        return self

    def __exit__(self, *_: object) -> None:
        subprocess.run([*self._tmux, "kill-server"], check=False, capture_output=True)
        self._directory.cleanup()

    def _ask(self, *command: str) -> str:
        done = subprocess.run(
            [*self._tmux, *command], check=True, capture_output=True, encoding="utf-8"
        )
        return done.stdout

    @property
    def pid(self) -> int:
        """The process id of the tool."""
        return int(self._pid.read_text())

    @property
    def ended(self) -> bool:
        """Whether the tool has ended."""
        return self._status.exists() and self._status.read_text().endswith("\n")

    def status(self) -> int:
        """Wait for the tool's end and return its exit status."""
        self.until(lambda _: self.ended, "the tool's end")
        return int(self._status.read_text())

    def text(self) -> str:
        """Return the visible text, and the text that has scrolled away above it."""
        return self._ask("capture-pane", "-p", "-J", "-S", "-")

    def press(self, *keys: str) -> None:
        """Press keys, by tmux's names."""
        self._ask("send-keys", *keys)

    def until(self, seen: Callable[[str], bool], what: str) -> str:
        """Return the text as soon as ``seen`` is true of it; ``what`` is for the error message."""
        deadline = time.monotonic() + PATIENCE_S
        while not seen(text := self.text()):
            assert time.monotonic() < deadline, f"never seen: {what}\n{text}"
            time.sleep(0.05)  # only the pause between two reads
        return text
