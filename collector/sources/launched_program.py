"""A program that locktop started with the library: its output, its end, its exit status."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from locktop.collector.errors import LocktopError, reason_of
from locktop.collector.sources import launch

if TYPE_CHECKING:
    from locktop.collector.analysis.idle.rules import Rules
    from locktop.collector.sources.base import Source

_ATTACH_WITHIN_S = 10.0
_ATTACH_EVERY_S = 0.02
_END_WITHIN_S = 5.0


class EndedEarlyError(LocktopError):
    """The program ended before locktop could attach."""


class LaunchedProgram:
    """Runs a program from ``with`` to its end, or leaves it running after ``with``."""

    def __init__(
        self,
        program: str,
        command: list[str],
        level: str | None = None,
        output: str | None = None,
        keep: bool = False,
        ends_with_screen: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Args:
        program: the file to run.
        command: its arguments, beginning with the name.
        level: one of levels.NAMES; None: the library's default.
        output: path of a new file, os.devnull, or None for a temporary file.
        keep: whether the program goes on after ``with``.
        ends_with_screen: whether SIGHUP, a lost terminal, ends the program.
        environment: further variables, beside those of locktop itself.
        """
        self._program = program
        self._command = command
        variables = {**os.environ, **(environment or {})}
        preloaded = variables.get("LD_PRELOAD", "")
        self._environment = {**variables, **launch.preload_environment(level, preloaded)}
        self._wanted_output = output
        self._keep = keep
        self._ends_with_screen = ends_with_screen
        self._ended_by_us = False
        self._end_signal: int | None = None
        self._obeyed = False  # whether the program knows of the signal, or is left running
        self._may_leave = False

    @property
    def pid(self) -> int:
        """The process id of the program."""
        return self._process.pid

    @property
    def status(self) -> int:
        """The exit status for locktop; see `locktop run --help`."""
        code = self._process.returncode
        if self._ended_by_us or code is None:
            return 0
        return 128 - code if code < 0 else code

    def __enter__(self) -> Self:
        """Start the program.

        Raises:
            LocktopError: the program cannot start, or the output file exists.
        """
        self._log, self.output = _open_output(self._command[0], self._wanted_output)
        self._handlers = self._handle_end_signals()
        # Ctrl-C too waits until the process id is known.
        on_ctrl_c = self._handle(signal.SIGINT)
        try:
            self._process = subprocess.Popen(
                self._command,
                executable=self._program,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=subprocess.STDOUT,
                # Keys at locktop's screen are not for the program.
                start_new_session=True,
            )
        except OSError as error:
            _restore(on_ctrl_c)
            _restore(self._handlers)
            self._close_output()
            raise LocktopError(f"cannot start {self._program}: {reason_of(error)}") from None
        try:
            _restore(on_ctrl_c)
            self._may_leave = True
            if self._end_signal == signal.SIGINT:
                raise KeyboardInterrupt
            if self._end_signal is not None:
                self.on_end_signal(self._end_signal)
                raise SystemExit(128 + self._end_signal)
        except (SystemExit, KeyboardInterrupt):
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """End the program, unless it is to be kept."""
        self._end_unless_kept()
        _restore(self._handlers)
        self._close_output()

    def leave_running(self) -> None:
        """Let the program go on after ``with``."""
        self._keep = True

    def on_end_signal(self, number: int) -> None:
        """Ask the program to end, or leave it running after SIGHUP. Only the first signal counts.

        Args:
            number: the signal that locktop got.
        """
        if self._obeyed:
            return
        self._obeyed = True
        if number == signal.SIGHUP and not self._ends_with_screen:
            self.leave_running()
        elif not self._keep:
            self._ask_to_end()

    def has_ended(self) -> bool:
        """Return whether the program has ended."""
        return self._process.poll() is not None

    def kill(self) -> None:
        """End the program at once, unless it is left running."""
        if not self._keep:
            self._send(signal.SIGKILL)

    def source(
        self, rules: Rules | None = None, on_wait: Callable[[], None] = lambda: None
    ) -> Source:
        """Attach as soon as its library is ready.

        Args:
            rules: see attach().
            on_wait: is called again and again while the program starts.

        Raises:
            EndedEarlyError: the program is over by then.
            LocktopError: the library is not there in time.
        """
        from locktop.collector.sources.attach import attach

        tries = int(_ATTACH_WITHIN_S / _ATTACH_EVERY_S)
        for last in (n == tries - 1 for n in range(tries)):
            try:
                return attach(self.pid, rules, only_exact=True)
            except LocktopError:
                if last:
                    raise
            on_wait()
            if self._ended_within(_ATTACH_EVERY_S):
                break
        raise EndedEarlyError(self.ending("before the first scan"))

    def ending(self, when: str = "") -> str:
        """Return how the program has ended, with the last line of its output, if any.

        Args:
            when: further words: ``in run 3``.
        """
        ending = _how_ended(self._process.returncode)
        return f"{self._command[0]} {ending}{' ' * bool(when)}{when}{self._output_end()}"

    def messages(self) -> list[str]:
        """Return the messages for the user at the end, one line each."""
        lines = []
        code = self._process.returncode
        if code is None:
            lines.append(f"{self._command[0]} goes on as process {self.pid}")
        elif not self._ended_by_us:
            lines.append(f"{self._command[0]} {_how_ended(code)}")
        return lines + self.output_messages()

    def output_messages(self) -> list[str]:
        """Return the message about the output file, if there is output. Call it after the end of
        ``with``.
        """
        if self.output.exists() and self._wanted_output != os.devnull:
            return [f"its output is in {self.output}"]
        return []

    def _end_unless_kept(self) -> None:
        for number in self._handlers:
            signal.signal(number, signal.SIG_IGN)  # the first signal is enough
        if self._process.poll() is not None or self._keep:
            return
        self._ask_to_end()
        if not self._ended_within(_END_WITHIN_S):
            self.kill()
            self._ended_within(_END_WITHIN_S)

    def _ask_to_end(self) -> None:
        """Send SIGTERM once: for some programs a second one means to drop all work."""
        if not self._ended_by_us:
            self._ended_by_us = self._send(signal.SIGTERM)

    def _send(self, number: signal.Signals) -> bool:
        """Send a signal to the program and its children; return False if it has ended."""
        if self._process.poll() is not None:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)
        return True

    def _ended_within(self, seconds: float) -> bool:
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _handle_end_signals(self) -> dict[int, Any]:
        """Make signals that end locktop unwind, so that the program is not left behind.

        The screen handles such signals itself, but only once it is there. Returns the handlers
        before.
        """
        return self._handle(signal.SIGTERM) | self._handle(signal.SIGHUP)

    def _handle(self, number: int) -> dict[int, Any]:
        """Leave on a signal, unless it is ignored. Returns the handler before."""
        handler = signal.getsignal(number)
        if handler is signal.SIG_IGN:
            return {}
        signal.signal(number, self._leave)
        return {number: handler}

    def _leave(self, number: int, _: object) -> None:
        # Not while the program starts: it might run already before its process id is known.
        self._end_signal = number
        if self._may_leave:
            self.on_end_signal(number)
            # End the program here: the exception may hit __exit__ and interrupt it.
            self._end_unless_kept()
            raise SystemExit(128 + number)

    def _close_output(self) -> None:
        self._log.close()
        if self._wanted_output is None and self.output.exists() and not self.output.stat().st_size:
            self.output.unlink()

    def _output_end(self) -> str:
        """Return the last line of the output, the most likely reason of the end."""
        if self._wanted_output == os.devnull:
            return ""
        written = self.output.read_bytes()[-400:].decode("utf-8", "replace").strip()
        return f": {written.splitlines()[-1]}" if written else ""


def _open_output(name: str, output: str | None) -> tuple[IO[bytes], Path]:
    if output is None:
        descriptor, path = tempfile.mkstemp(prefix=f"locktop-{Path(name).name}-", suffix=".log")
        return os.fdopen(descriptor, "wb"), Path(path)
    try:
        return open(output, "wb" if output == os.devnull else "xb"), Path(output)
    except FileExistsError:
        raise LocktopError(f"{output} exists; give --output a new file") from None


def _restore(handlers: Mapping[int, Any]) -> None:
    for number, handler in handlers.items():
        signal.signal(number, handler)


def _how_ended(code: int) -> str:
    if code >= 0:
        return f"exited with status {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"
