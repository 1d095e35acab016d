"""Sessions: the figures of a process between a start and a stop of the user.

A session is a small recording: the first snapshot is its baseline, a second one its end. The file
lies in a directory of the user, where the screen and all commands find it. Only processes with the
library have such files: the counters of a sampled process belong to one run of locktop.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import threading
import time
from itertools import islice
from pathlib import Path

from msgspec import Struct

from locktop.collector.analysis.figures_since import is_same_program, since
from locktop.collector.errors import LocktopError
from locktop.collector.linux import procfs
from locktop.collector.linux.private_directory import private_directory
from locktop.collector.linux.target import find_process
from locktop.collector.model import Snapshot
from locktop.collector.recording.recording import Recording
from locktop.collector.recording.recording_info import RecordingInfo
from locktop.collector.recording.recording_writer import RecordingEndedError, RecordingWriter
from locktop.collector.render.files import words
from locktop.collector.render.words.units import duration

_NAME = re.compile(r"session-(\d{1,10})-(\d{1,20})")
#: Files of the directory that are tried when ended processes are looked for.
_MAX_FILES = 1000
_Identity = tuple[int, int, int]


class Session(Struct, frozen=True):
    """The snapshots at both ends of a session."""

    baseline: Snapshot
    end: Snapshot | None  # None: the session goes on

    def is_of(self, snapshot: Snapshot) -> bool:
        """Return whether a later scan goes on with the counters of the baseline.

        A process that executes another program begins to count anew.
        """
        before = self.baseline
        return (
            is_same_program(before, snapshot)
            and before.source == snapshot.source
            and before.duration_s <= snapshot.duration_s
        )


def start(path: Path, snapshot: Snapshot) -> None:
    """Begin a session, in place of any session before.

    Args:
        path: the file, from ``path_of``.
        snapshot: the baseline.

    Raises:
        LocktopError: the file cannot be written.
    """
    _write(path, Session(baseline=snapshot, end=None))
    _forget_ended(path.parent)


def stop(path: Path, snapshot: Snapshot) -> Session:
    """End a session, and return it with its end.

    Raises:
        LocktopError: no session goes on, or the file cannot be written.
    """
    session = load(path)
    if session is None or session.end is not None or not session.is_of(snapshot):
        raise LocktopError("no session goes on; `locktop ctl -p PID --start` begins one")
    ended = Session(baseline=session.baseline, end=snapshot)
    _write(path, ended)
    return ended


def load(path: Path) -> Session | None:
    """Return the session of a file; None without a file.

    Raises:
        LocktopError: the file is damaged, or belongs to another user.
    """
    try:
        about = path.lstat()
    except OSError:
        return None
    if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid():
        raise LocktopError(f"{path}: no regular file of this user")
    with contextlib.closing(Recording(path)) as recording:
        times = recording.times_ns()
        if not 1 <= len(times) <= 2 or recording.damage:
            raise LocktopError(f"{path}: {recording.damage or 'no session'}")
        end = recording.snapshot_at(times[1]) if len(times) > 1 else None
        return Session(baseline=recording.snapshot_at(times[0]), end=end)


def path_of(pid: int) -> Path:
    """Return the path of the session's file of a process, which may not exist.

    Raises:
        LocktopError: there is no such process, or no directory for the file.
    """
    target = find_process(pid)
    return _directory() / f"session-{target.pid}-{target.start_time}"


class LiveSession:
    """The session of a screen: turns each scan into one with the figures of the session.

    One thread calls ``apply`` with the scans; another one may start and stop the session.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._newest: Snapshot | None = None
        self._session: Session | None = None
        self._path: Path | None = None
        self._is_known = False  # whether the path was looked for
        self._identity: _Identity | None = None

    def apply(self, snapshot: Snapshot) -> Snapshot:
        """Return the scan with the figures of the session; the same object without a session."""
        with self._lock:
            self._newest = snapshot
            self._read_again(snapshot)
            session = self._session
        if session is None or session.end is not None or not session.is_of(snapshot):
            return snapshot
        return since(snapshot, session.baseline)

    def start(self) -> str:
        """Begin a session at the newest scan; return a message. Raises LocktopError."""
        with self._lock:
            newest = self._newest_scan()
            if self._path is not None:
                start(self._path, newest)
                self._identity = _identity(self._path)
            goes_on = self._session is not None and self._session.end is None
            self._session = Session(baseline=newest, end=None)
        return "The session begins anew." if goes_on else "A session begins: figures from zero."

    def stop(self) -> str:
        """End the session; return a message. Raises LocktopError."""
        with self._lock:
            newest, session = self._newest_scan(), self._session
            if session is None or session.end is not None:
                raise LocktopError("no session goes on; R begins one")
            advice = ""
            if self._path is not None:
                stop(self._path, newest)
                self._identity = _identity(self._path)
                pid = newest.process.pid
                advice = f"; `locktop snapshot -p {pid} --session` has its figures"
            self._session = Session(baseline=session.baseline, end=newest)
        lasted = duration(newest.duration_s - session.baseline.duration_s)
        return f"The session ended after {lasted}{advice}"

    def _newest_scan(self) -> Snapshot:
        if self._newest is None:
            raise LocktopError("there is no scan yet")
        return self._newest

    def _read_again(self, snapshot: Snapshot) -> None:
        """Read the file if a command has changed it."""
        if snapshot.is_sampled or snapshot.ended:
            return
        with contextlib.suppress(LocktopError):
            if not self._is_known:
                self._is_known = True
                self._path = path_of(snapshot.process.pid)
            if self._path is not None and (identity := _identity(self._path)) != self._identity:
                self._identity = identity
                self._session = None
                self._session = load(self._path)


# ---- files ----


def _directory() -> Path:
    """Return the directory of the files, which belongs to this user alone."""
    return private_directory("sessions", "sessions")


def _write(path: Path, session: Session) -> None:
    """Write a file in one step."""
    new = path.with_name(f"{path.name}.{os.getpid()}.new")
    now_ns = time.time_ns()
    try:
        new.unlink(missing_ok=True)
        with contextlib.closing(
            RecordingWriter(new, RecordingInfo.from_snapshot(session.baseline, "session"), now_ns)
        ) as writer:
            writer.add_snapshot(session.baseline, now_ns)
            if session.end is not None:
                writer.add_snapshot(session.end, now_ns + 1)
            writer.finish("a session", now_ns + 1)
        new.rename(path)
    except (OSError, RecordingEndedError) as error:
        fault = error if isinstance(error, OSError) else error.error
        raise LocktopError(f"{path}: {words(fault)}") from None
    finally:
        with contextlib.suppress(OSError):
            new.unlink(missing_ok=True)


def _identity(path: Path) -> _Identity | None:
    try:
        about = path.lstat()
    except OSError:
        return None
    return about.st_ino, about.st_mtime_ns, about.st_size


def _forget_ended(directory: Path) -> None:
    """Remove the files of processes that have ended."""
    with contextlib.suppress(OSError), os.scandir(directory) as entries:
        for entry in islice(entries, _MAX_FILES):
            named = _NAME.match(entry.name)
            if named and not _runs(int(named[1]), int(named[2])):
                with contextlib.suppress(OSError):
                    os.unlink(entry.path)


def _runs(pid: int, start_time: int) -> bool:
    try:
        return procfs.stat(pid).start_time == start_time
    except (FileNotFoundError, ProcessLookupError):
        return False
    except (OSError, ValueError):
        return True
