"""Snapshots of alerts in a directory, up to a number: the oldest are deleted."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from pathlib import Path

from locktop.collector.analysis.alerts import AlertKind
from locktop.collector.model import Snapshot
from locktop.collector.render import files, rendered_files
from locktop.collector.render.formats import SNAPSHOT_FORMATS

#: The limit of all files together: a snapshot of a million locks has some hundred megabytes.
_MAX_BYTES = 500_000_000
_NAME = re.compile(
    rf"locktop-.+-\d+-\d{{8}}T\d{{6}}Z-({'|'.join(kind.value for kind in AlertKind)})(-\d+)?\.json"
)


#: The recording of an alert has the name of the snapshot, and this suffix.
RECORDING = ".recording"


class AlertSnapshots:
    """Keeps the newest ``keep`` snapshots in ``directory``, with those of earlier runs.

    A recording beside a snapshot is deleted with that snapshot.
    """

    def __init__(self, directory: Path, keep: int) -> None:
        self._directory = directory
        self._keep = keep

    def save(self, snapshot: Snapshot, kind: AlertKind) -> Path:
        """Write a new file and return its path.

        Raises:
            NotWrittenError: The file cannot be written, see export/files.py.
        """
        name = f"{rendered_files.snapshot_name(snapshot, '')}-{kind}"
        json = SNAPSHOT_FORMATS["json"]
        path = files.save_new(name, json.suffix, json.render(snapshot), self._directory)
        self._delete_old(path)
        return path

    def _delete_old(self, newest: Path) -> None:
        """Delete old snapshots: only regular files of this user with such a name."""
        kept, size = 0, 0
        for path, status in sorted(self._own_snapshots(), key=lambda item: -item[1].st_mtime_ns):
            beside = path.with_suffix(RECORDING)
            kept, size = kept + 1, size + status.st_size + _size(beside)
            if path != newest and (kept > self._keep or size > _MAX_BYTES):
                for old in (path, beside):
                    with contextlib.suppress(OSError):
                        old.unlink()

    def _own_snapshots(self) -> list[tuple[Path, os.stat_result]]:
        snapshots = []
        with contextlib.suppress(OSError), os.scandir(self._directory) as entries:
            for entry in entries:
                status = entry.stat(follow_symlinks=False)
                own = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
                if own and _NAME.fullmatch(entry.name):
                    snapshots.append((Path(entry.path), status))
        return snapshots


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0
