"""Looks at a process without a screen, and gives alarm while it is happening."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from types import FrameType

from locktop.collector.export.files import NotWrittenError
from locktop.collector.model import Snapshot
from locktop.collector.sources.base import Source
from locktop.collector.watch import alert_line
from locktop.collector.watch.alert_command import AlertCommand
from locktop.collector.watch.alert_snapshots import AlertSnapshots
from locktop.collector.watch.alerts import Alert, AlertKind, Alerts
from locktop.collector.watch.rate_limit import RateLimit
from locktop.collector.watch.scan_policy import ScanPolicy

#: At a command that may finish.
_SCAN_S = 0.05
_WHAT = {AlertKind.DEADLOCK: "deadlock", AlertKind.WAIT: "long wait"}


class Watcher:
    """One process under watch.

    Lines about alarms go to the output, everything else to the standard error.
    """

    def __init__(
        self,
        source: Source,
        alerts: Alerts,
        commands: Mapping[AlertKind, AlertCommand],
        limits: Mapping[AlertKind, RateLimit],
        snapshots: AlertSnapshots | None,
        once: bool = False,
    ) -> None:
        self._source = source
        self._alerts = alerts
        self._scan_or_not = ScanPolicy(alerts.wait_s)
        self._commands = commands
        self._limits = limits
        self._snapshots = snapshots
        self._once = once
        self._stop = threading.Event()
        self._said_missed = dict.fromkeys(AlertKind, 0)
        self.count = 0  # alarms given

    def run(self, every_s: float) -> None:
        """Look each ``every_s`` seconds until the process ends, a signal says so, or ``once`` an
        alarm was given. Raises LocktopError when it cannot be looked at any more."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._told_to_stop)
        try:
            while not self._stop.is_set():
                began = time.monotonic()
                if self._scan():
                    break
                self._stop.wait(max(0.0, began + every_s - time.monotonic()))
        finally:
            for command in self._commands.values():
                command.stop()

    def _told_to_stop(self, number: int, frame: FrameType | None) -> None:
        self._stop.set()
        self._source.hurry()

    def _scan(self) -> bool:
        """Look once; return whether that was the last look."""
        for command in self._commands.values():
            _tell(command.scan())
        now = time.monotonic()
        if not self._scan_or_not.due(self._source.waits(), now) and not self._held_back(now):
            return False
        snapshot = self._source.scan(resolve=self._scan_or_not.needs_names)
        due = [alert for alert in self._alerts.due(snapshot) if self._allowed(alert)]
        given = bool(due) and self._give(due)
        over = snapshot.ended or (self._once and given)
        if over:
            self._finish(snapshot)
        return over

    def _held_back(self, now: float) -> bool:
        """Whether there is what the rate did not allow, and does by now."""
        return any(
            self._alerts.is_pending(kind) and limit.has_room(now)
            for kind, limit in self._limits.items()
        )

    def _allowed(self, alert: Alert) -> bool:
        """What is not allowed now is due in the next look, if it still goes on."""
        return self._limits[alert.kind].allows(time.monotonic())

    def _give(self, due: list[Alert]) -> bool:
        """Tell those of ``due`` that are none for work now that all names are known; return whether
        there were any."""
        before, snapshot = self.count, self._source.scan(resolve=True)
        for alert in due:
            if self._alerts.is_idle(alert, snapshot):
                continue
            self.count += 1
            self._alerts.told(alert)
            line = alert_line.line(alert, snapshot)
            path = self._saved(snapshot, alert)
            where = f"; snapshot {path}" if path else ""
            print(f"{_now()} {line}{where}{self._missed(alert.kind)}", flush=True)
            command = self._commands.get(alert.kind)
            # One that is started now would be ended at once.
            if command is not None and not self._stop.is_set():
                _tell(command.start(_variables(alert, snapshot, path), line))
        return self.count > before

    def _saved(self, snapshot: Snapshot, alert: Alert) -> str:
        """An alarm without its snapshot is still an alarm."""
        if self._snapshots is None:
            return ""
        try:
            return str(self._snapshots.save(snapshot, alert.kind))
        except NotWrittenError as error:
            _tell(f"no snapshot: {error}")
            return ""

    def _missed(self, kind: AlertKind) -> str:
        """What came and went since the last alarm while no more were allowed."""
        count = self._alerts.missed[kind] - self._said_missed[kind]
        self._said_missed[kind] += count
        if not count:
            return ""
        return f"; {count} {_WHAT[kind]}{'s' * (count > 1)} before it not told, to keep the rate"

    def _finish(self, snapshot: Snapshot) -> None:
        self._alerts.give_up()
        for command in self._commands.values():
            _tell(self._patiently(command))
        for kind in AlertKind:
            _tell(self._missed(kind).lstrip("; "))
        if snapshot.ended:
            notes = "".join(f"; {note}" for note in snapshot.notes[-1:])
            process = snapshot.process
            _tell(f"{process.comm} {process.pid} has ended{notes}")

    def _patiently(self, command: AlertCommand) -> str:
        """The last alarm's command may finish, unless we are told to stop."""
        while command.running and not self._stop.wait(_SCAN_S):
            if said := command.scan():
                return said
        return ""


def _tell(text: str) -> None:
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
