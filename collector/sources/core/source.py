"""The core source: one snapshot of a process that a core has saved.

The stages are those of a sampled process, and so is all that reads memory, mappings and registers:
saved_process.py answers from the core. No stage asks what only a living process can tell.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from msgspec.structs import replace

from locktop.collector.analysis.idle.rules import Rules
from locktop.collector.errors import LocktopError, reason_of
from locktop.collector.linux import saved_process
from locktop.collector.linux.process_info import iso
from locktop.collector.model import Draft, Kind, Snapshot
from locktop.collector.sources.base import OngoingWait
from locktop.collector.sources.core.compressed_core import unpacked
from locktop.collector.sources.core.core_process import CoreProcess
from locktop.collector.sources.sampling.scan import UNKNOWN_FUTEX, SamplingScan
from locktop.collector.sources.sampling.session import SamplingSession
from locktop.collector.sources.watched_process import WatchedProcess

_NOTE = (
    "a core tells no times: since when threads wait is not known, nor how often locks were taken"
)


class CoreScan(SamplingScan):
    """One scan of a core."""

    first_pause_s = 0.0  # nothing moves between two samples

    def __init__(self, session: SamplingSession, process: CoreProcess) -> None:
        """Args:
        session: the session of the saved process.
        process: the process.
        """
        super().__init__(session, 0.0, "", resolve=True)
        self._process = process

    def _new_draft(self, interval_s: float) -> Draft:
        session, process = self.session, self._process
        unknown = tuple(sorted(
            tid for tid, wait in session.waits.items() if wait.sync_object.kind is Kind.FUTEX
        ))  # fmt: skip
        when = iso(process.core.file.about.st_mtime)
        figures = self.watched.figures.scan(process.facts.name)
        session.taken = 0
        return Draft(
            taken_at=when,
            host=self.watched.host,
            source="core",
            duration_s=0.0,
            interval_s=0.0,
            process=replace(figures, pid=process.pid, started_at="", counted_since=""),
            threads=(),
            locks=(),
            unobserved_waiters=unknown,
            level="sampled",
            complete=not process.core.missing_bytes,
            notes=(
                f"core of {process}, taken at {when}",
                _NOTE,
                *process.warnings,
                *([UNKNOWN_FUTEX] if unknown else ()),
                *session.resolver.notes(),
                *session.python.notes(),
            ),
        )

    def find_hang(self) -> None:
        """Leave that out: files, signals and timers could still end a wait of the process."""

    def find_owners_elsewhere(self) -> None:
        """Leave that out: another process of today says nothing."""


class CoreSource:
    """The process of one core; see Source. All its scans are the same."""

    def __init__(self, path: str, rules: Rules | None = None) -> None:
        """Args:
            path: of the core.
            rules: see attach().

        Raises:
            LocktopError: the file is no core that locktop understands.
        """
        self._unpacked = unpacked(path)
        self._process = CoreProcess(self._unpacked.name if self._unpacked is not None else path)
        self.number = saved_process.register(self._process)
        self._watched = WatchedProcess(self.number)
        self._session = SamplingSession(self._watched, rules, stop_threads=False)
        self._snapshot: Snapshot | None = None

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences about what the core lacks, and which files here do not fit it."""
        return tuple(self._process.warnings)

    def close(self) -> None:
        """Release the core."""
        self._session.close()
        self._watched.close()
        saved_process.unregister(self.number)
        if self._unpacked is not None:
            self._unpacked.close()

    def scan(self, resolve: bool = False) -> Snapshot:
        if self._snapshot is None:
            try:
                self._snapshot = CoreScan(self._session, self._process).run()
            except OSError as error:
                raise LocktopError(f"{self._process.path}: {reason_of(error)}") from None
        return self._snapshot

    def waits(self) -> Mapping[int, OngoingWait] | None:
        return None

    def hurry(self) -> None:
        self._watched.hurried = True
        self._session.hurry()

    def follow(self, tid: int, locks: Collection[int] | None = None) -> None:
        """See Source. The one scan has all that a core tells of each thread."""

    def want_section(self, name: str, wanted: bool) -> None:
        """See Source. Parts of extensions read the memory of the library alone."""

    def set_reading_names(self, wanted: bool) -> None:
        """See Source. The one scan reads all names."""

    def set_level(self, name: str) -> str:
        raise LocktopError("a core has no level to set: the process does not run")

    def drain(self, first_calls: int = 0) -> None:
        """See Source. Nothing comes any more."""
        return None

    def start_part(self, name: str, *arguments: Any) -> None:
        raise LocktopError(f"{name} needs a process that runs, and this is a core")

    def end_part(self, name: str) -> None:
        """See Source. No part is at work."""
