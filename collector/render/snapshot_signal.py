"""SIGUSR2 to the tool saves a snapshot."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

from locktop.collector.model import Snapshot
from locktop.collector.render.files import NotWrittenError
from locktop.collector.render.rendered_files import save_snapshot


class SnapshotSignal:
    """Remembers the signal, until a scan can answer it with a file."""

    def __init__(self, wake: Callable[[], object], directory: Path | None = None) -> None:
        """Args:
        wake: called in the signal handler.
        directory: of the files; None: the working directory.
        """
        self._wake = wake
        self._directory = directory
        self.is_pending = False

    def install(self) -> None:
        """Handle the signal, unless locktop was started with the signal ignored."""
        if signal.getsignal(signal.SIGUSR2) is not signal.SIG_IGN:
            signal.signal(signal.SIGUSR2, self._on_signal)

    def _on_signal(self, number: int, frame: object) -> None:
        self.is_pending = True
        self._wake()

    def save(self, snapshot: Snapshot) -> str:
        """Write ``snapshot`` as JSON if the signal has come, and return a line about the file.

        The line is "" without a signal.
        """
        if not self.is_pending:
            return ""
        self.is_pending = False
        try:
            return f"snapshot {save_snapshot(snapshot, 'json', self._directory)}"
        except NotWrittenError as error:
            return f"no snapshot: {error}"
