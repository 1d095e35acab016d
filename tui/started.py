"""A program that we started with the library: its output, its end, its exit status."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from locktop.collector import launch
from locktop.collector.errors import LocktopError

if TYPE_CHECKING:
    from locktop.collector.source import Source

_ATTACH_WITHIN_S = 10.0
_ATTACH_EVERY_S = 0.02
_END_WITHIN_S = 5.0


class EndedEarlyError(LocktopError):
    """The program was over before it could be looked at."""


class Started:
    """Runs a program from ``with`` to its end, or beyond it if that is wanted."""

    def __init__(
        self,
        program: str,
        command: list[str],
        level: str | None = None,
        output: str | None = None,
        keep: bool = False,
    ) -> None:
        """``output``: path of a new file, None for a temporary one, or os.devnull; ``keep``: do
        not end it.

        Raises LocktopError.
        """
        self._command = command
        self._keep = keep
        self._ended_by_us = False
        self._temporary = output is None
        self._discards = output == os.devnull
        environment = {**os.environ, **launch.preload_environment(level)}
        self._log, self.output = _open_output(command[0], output)
        self._handlers = _leave_when_told_to_end()
        try:
            self._process = subprocess.Popen(
                command,
                executable=program,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=subprocess.STDOUT,
                # Keys pressed at our screen are not for it.
                start_new_session=True,
            )
        except OSError as error:
            self._restore_handlers()
            self._close_output()
            raise LocktopError(f"cannot start {program}: {error.strerror}") from None

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def status(self) -> int:
        """What to exit with; see `locktop run --help`."""
        code = self._process.returncode
        if self._ended_by_us or code is None:
            return 0
        return 128 - code if code < 0 else code

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for number in self._handlers:
            signal.signal(number, signal.SIG_IGN)  # it has been said
        if self._process.poll() is None and not self._keep:
            self._end()
        self._restore_handlers()
        self._close_output()

    def source(self) -> Source:
        """Attach as soon as its library is ready.

        Raises EndedEarlyError when the program is over by then, else LocktopError.
        """
        from locktop.collector.attach import attach

        tries = int(_ATTACH_WITHIN_S / _ATTACH_EVERY_S)
        for last in (n == tries - 1 for n in range(tries)):
            try:
                return attach(self.pid)
            except LocktopError:
                if last:
                    raise
            if self._ended_within(_ATTACH_EVERY_S):
                break
        raise EndedEarlyError(
            f"{self._command[0]} {_how_ended(self._process.returncode)} before it could be looked "
            f"at{self._output_end()}"
        )

    def told(self) -> list[str]:
        """What the user should know at the end, one line each."""
        lines = []
        code = self._process.returncode
        if code is None:
            lines.append(f"{self._command[0]} goes on as process {self.pid}")
        elif not self._ended_by_us:
            lines.append(f"{self._command[0]} {_how_ended(code)}")
        return lines + self.output_told()

    def output_told(self) -> list[str]:
        """Where its output went, if there is any; after the end of ``with``."""
        if self.output.exists() and not self._discards:
            return [f"its output is in {self.output}"]
        return []

    def _end(self) -> None:
        self._ended_by_us = True
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.pid, number)
            except ProcessLookupError:
                pass
            if self._ended_within(_END_WITHIN_S):
                return

    def _ended_within(self, seconds: float) -> bool:
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _restore_handlers(self) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def _close_output(self) -> None:
        self._log.close()
        if self._temporary and self.output.exists() and not self.output.stat().st_size:
            self.output.unlink()

    def _output_end(self) -> str:
        """The last line that it wrote: most likely why it ended."""
        if self._discards:
            return ""
        written = self.output.read_bytes()[-400:].decode("utf-8", "replace").strip()
        return f": {written.splitlines()[-1]}" if written else ""


def _leave_when_told_to_end() -> dict[int, Any]:
    """From now on a signal to end unwinds, so that what was started is not left behind; the screen
    has ways of its own, but only once it is there. Gives the handlers before."""
    before: dict[int, Any] = {}
    for number in (signal.SIGTERM, signal.SIGHUP):
        handler = signal.getsignal(number)
        if handler is not signal.SIG_IGN:
            before[number] = handler
            signal.signal(number, _leave)
    return before


def _leave(number: int, _: object) -> None:
    raise SystemExit(128 + number)


def _open_output(name: str, output: str | None) -> tuple[IO[bytes], Path]:
    if output is None:
        descriptor, path = tempfile.mkstemp(prefix=f"locktop-{Path(name).name}-", suffix=".log")
        return os.fdopen(descriptor, "wb"), Path(path)
    try:
        return open(output, "wb" if output == os.devnull else "xb"), Path(output)
    except FileExistsError:
        raise LocktopError(f"{output} exists; give --output a new file") from None


def _how_ended(code: int) -> str:
    if code >= 0:
        return f"exited with status {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"
