"""Watches a process without a screen and reports alerts while they happen."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Protocol

from msgspec import Struct

from locktop.collector.analysis.alerts import Alert, AlertKind, Alerts
from locktop.collector.analysis.rate_limit import RateLimit
from locktop.collector.extensions.watch import alert_line
from locktop.collector.extensions.watch.alert_command import AlertCommand
from locktop.collector.extensions.watch.alert_snapshots import RECORDING, AlertSnapshots
from locktop.collector.extensions.watch.scan_policy import ScanPolicy
from locktop.collector.linux.signal_wakeup import SignalWakeup
from locktop.collector.model import Snapshot
from locktop.collector.render.files import NotWrittenError
from locktop.collector.render.snapshot_signal import SnapshotSignal
from locktop.collector.sources.base import Source

#: The interval at which the end of a command is polled.
_POLL_S = 0.05
_NAMES = {AlertKind.DEADLOCK: "deadlock", AlertKind.WAIT: "long wait"}


class Memory(Protocol):
    """Keeps scans, and writes a recording of them."""

    def keep(self, snapshot: Snapshot) -> None:
        """Keep a scan."""
        ...

    def save(self, path: Path) -> None:
        """Write all that is kept to a new file. Raises NotWrittenError."""
        ...


class WatchOptions(Struct, frozen=True):
    """The wishes of the user who starts a watch."""

    on_deadlock: str | None = None  # the command of an alert, a line for sh
    on_wait: str | None = None
    wait_s: float | None = None  # a wait of so many seconds is an alert; None: no wait is
    command_limit_s: float = 60.0  # such a command may take
    alert_rate: tuple[int, float] = (1, 60.0)  # so many alerts of a kind in so many seconds
    directory: Path | None = None  # of the snapshots of alerts; None: nothing is saved
    kept_snapshots: int = 20  # the newest ones of a kind that stay
    once: bool = False  # whether to end after the first alert


def watcher_of(source: Source, options: WatchOptions, memory: Memory | None = None) -> Watcher:
    """Return the watcher of a process.

    Args:
        source: the process.
        options: the wishes of the user.
        memory: saves a recording beside the snapshot of each alert; None: no recording.
    """
    lines = {AlertKind.DEADLOCK: options.on_deadlock, AlertKind.WAIT: options.on_wait}
    directory = options.directory.absolute() if options.directory is not None else None
    return Watcher(
        source,
        Alerts(options.wait_s),
        {kind: AlertCommand(line, options.command_limit_s) for kind, line in lines.items() if line},
        {kind: RateLimit(*options.alert_rate) for kind in AlertKind},
        AlertSnapshots(directory, options.kept_snapshots) if directory is not None else None,
        options.once,
        directory,
        memory,
    )


class Watcher:
    """Watches one process.

    The lines of alerts go to the standard output, all other lines to the standard error.
    """

    def __init__(
        self,
        source: Source,
        alerts: Alerts,
        commands: Mapping[AlertKind, AlertCommand],
        limits: Mapping[AlertKind, RateLimit],
        snapshots: AlertSnapshots | None,
        once: bool = False,
        directory: Path | None = None,
        memory: Memory | None = None,
    ) -> None:
        """Make the watcher.

        Args:
            source: the process.
            alerts: finds the alerts.
            commands: what to run, by the kind of an alert.
            limits: how many alerts of a kind are allowed.
            snapshots: keeps a snapshot of each alert; None: nothing is saved.
            once: whether to end after the first alert.
            directory: of the snapshots that SIGUSR2 asks for; None: the working directory.
            memory: saves a recording beside the snapshot of each alert; None: no recording.
        """
        self._source = source
        self._alerts = alerts
        self._policy = ScanPolicy(alerts.wait_s)
        self._commands = commands
        self._limits = limits
        self._snapshots = snapshots
        self._once = once
        self._memory = memory
        self._is_stopping = False
        self._wakeup = SignalWakeup()
        self._on_demand = SnapshotSignal(self._wakeup.wake, directory)
        self._reported_missed = dict.fromkeys(AlertKind, 0)
        self.count = 0  # reported alerts

    def run(self, every_s: float) -> None:
        """Scan until the process ends, a signal arrives, or with ``once`` an alert was reported.

        Args:
            every_s: The interval between two scans in seconds.

        Raises:
            LocktopError: The process cannot be scanned any more.
        """
        self.handle_signals()
        try:
            while not self._is_stopping:
                began = time.monotonic()
                if self._scan():
                    break
                self._wakeup.sleep(began + every_s - time.monotonic())
                if self._on_demand.is_pending:
                    _log(self._on_demand.save(self._source.scan(resolve=True)))
        finally:
            for command in self._commands.values():
                command.stop()

    def handle_signals(self) -> None:
        """Handle the signals that end the watch, and the one that asks for a snapshot."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._note_signal)
        self._on_demand.install()

    def _note_signal(self, number: int, frame: FrameType | None) -> None:
        self._is_stopping = True
        self._wakeup.wake()
        self._source.hurry()

    def _scan(self) -> bool:
        """Scan once if that is due; return whether that was the last scan."""
        for command in self._commands.values():
            _log(command.poll())
        now = time.monotonic()
        if not self._policy.due(self._source.waits(), now) and not self._held_back(now):
            return False
        snapshot = self._source.scan(resolve=self._policy.needs_names)
        self._keep(snapshot)
        due = [alert for alert in self._alerts.due(snapshot) if self._is_allowed(alert)]
        reported = bool(due) and self._report(due)
        is_last = snapshot.ended or (self._once and reported)
        if is_last:
            self._finish(snapshot)
        return is_last

    def _held_back(self, now: float) -> bool:
        """Return whether the rate limit did not allow a pending alert before and allows it now."""
        return any(
            self._alerts.is_pending(kind) and limit.has_room(now)
            for kind, limit in self._limits.items()
        )

    def _is_allowed(self, alert: Alert) -> bool:
        """Return whether the rate limit allows an alert now. A refused alert is due again in the
        next scan, if it still goes on."""
        return self._limits[alert.kind].allows(time.monotonic())

    def _report(self, due: list[Alert]) -> bool:
        """Report the alerts that are not idle now that all names are known; return whether there
        was such an alert."""
        before, snapshot = self.count, self._source.scan(resolve=True)
        self._keep(snapshot)
        for alert in due:
            if self._alerts.is_idle(alert, snapshot):
                continue
            self.count += 1
            self._alerts.mark_reported(alert)
            line = alert_line.line(alert, snapshot)
            path = self._save(snapshot, alert)
            where = f"; snapshot {path}" if path else ""
            print(f"{_now()} {line}{where}{self._missed_note(alert.kind)}", flush=True)
            command = self._commands.get(alert.kind)
            # After a signal, a new command would be killed at once.
            if command is not None and not self._is_stopping:
                _log(command.start(_variables(alert, snapshot, path), line))
        return self.count > before

    def _save(self, snapshot: Snapshot, alert: Alert) -> str:
        """Save the snapshot of an alert and return its path, "" if that fails. An alert without a
        snapshot is still reported."""
        if self._snapshots is None:
            return ""
        try:
            path = self._snapshots.save(snapshot, alert.kind)
        except NotWrittenError as error:
            _log(f"no snapshot: {error}")
            return ""
        try:
            if self._memory is not None:
                self._memory.save(path.with_suffix(RECORDING))
        except NotWrittenError as error:
            _log(f"no recording: {error}")
        return str(path)

    def _keep(self, snapshot: Snapshot) -> None:
        if self._memory is not None:
            self._memory.keep(snapshot)

    def _missed_note(self, kind: AlertKind) -> str:
        """Return a note about the alerts that came and went while the limit allowed no more."""
        count = self._alerts.missed[kind] - self._reported_missed[kind]
        self._reported_missed[kind] += count
        if not count:
            return ""
        return f"; {count} {_NAMES[kind]}{'s' * (count > 1)} before it not reported: rate limit"

    def _finish(self, snapshot: Snapshot) -> None:
        self._alerts.give_up()
        for command in self._commands.values():
            _log(self._wait_for(command))
        for kind in AlertKind:
            _log(self._missed_note(kind).lstrip("; "))
        if snapshot.ended:
            notes = "".join(f"; {note}" for note in snapshot.notes[-1:])
            process = snapshot.process
            _log(f"{process.comm} {process.pid} has ended{notes}")

    def _wait_for(self, command: AlertCommand) -> str:
        """Wait for the command of the last alert, unless a signal arrives; return its message."""
        while command.running and not self._is_stopping:
            self._wakeup.sleep(_POLL_S)
            if message := command.poll():
                return message
        return ""


def _log(text: str) -> None:
    if text:
        print(f"{_now()} {text}", file=sys.stderr, flush=True)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _variables(alert: Alert, snapshot: Snapshot, path: str) -> dict[str, str]:
    return {
        "LOCKTOP_ALARM": str(alert.kind),
        "LOCKTOP_PID": str(snapshot.process.pid),
        "LOCKTOP_SNAPSHOT": path,
        "LOCKTOP_LOCK": alert_line.lock_name(alert.lock, snapshot),
        "LOCKTOP_WAITED": f"{alert.waited_s:.3f}",
        "LOCKTOP_TID": str(alert.tid),
    }
