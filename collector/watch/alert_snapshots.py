"""Snapshots that alarms leave in a directory: so many, the oldest go."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from pathlib import Path

from locktop.collector.export import files
from locktop.collector.model import Snapshot
from locktop.collector.watch.alerts import AlertKind

#: All together, whatever their number: one of a million locks has some hundred megabytes.
_MAX_BYTES = 500_000_000
_NAME = re.compile(
    rf"locktop-.+-\d+-\d{{8}}T\d{{6}}Z-({'|'.join(kind.value for kind in AlertKind)})(-\d+)?\.json"
)


class AlertSnapshots:
    """Keeps the newest ``keep`` in ``directory``, those of earlier runs counted."""

    def __init__(self, directory: Path, keep: int) -> None:
        self._directory = directory
        self._keep = keep

    def save(self, snapshot: Snapshot, kind: AlertKind) -> Path:
        """Write a new file and give its path. Raises saving.NotWrittenError."""
        name = f"{files.snapshot_name(snapshot, '')}-{kind}"
        path = files.save_new(name, ".json", files.render(snapshot, "json"), self._directory)
        self._forget_old(path)
        return path

    def _forget_old(self, newest: Path) -> None:
        """Only what has such a name, is a file and our own."""
        kept, size = 0, 0
        for path, status in sorted(self._ours(), key=lambda one: -one[1].st_mtime_ns):
            kept, size = kept + 1, size + status.st_size
            if path != newest and (kept > self._keep or size > _MAX_BYTES):
                with contextlib.suppress(OSError):
                    path.unlink()

    def _ours(self) -> list[tuple[Path, os.stat_result]]:
        found = []
        with contextlib.suppress(OSError), os.scandir(self._directory) as entries:
            for entry in entries:
                status = entry.stat(follow_symlinks=False)
                own = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
                if own and _NAME.fullmatch(entry.name):
                    found.append((Path(entry.path), status))
        return found
