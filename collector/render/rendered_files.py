"""The names of files with snapshots and call trees; a snapshot saved to a new file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from locktop.collector.render.files import plain_name, save_new
from locktop.collector.render.formats import SNAPSHOT_FORMATS

if TYPE_CHECKING:
    from locktop.collector.model import Snapshot
    from locktop.collector.render.profiles.profile import Profile


def snapshot_name(snapshot: Snapshot, suffix: str) -> str:
    """Return a name that tells the content: locktop-mysqld-4711-20261121T100000Z.json."""
    comm = plain_name(snapshot.process.comm).lstrip(".") or "process"
    taken = re.sub(r"[^0-9TZ]", "", snapshot.taken_at.split(".")[0]) + "Z"
    return f"locktop-{comm}-{snapshot.process.pid}-{taken}{suffix}"


def call_tree_name(profile: Profile) -> str:
    """Return a name for a file with a call tree: locktop-callers-mysqld-4711, locktop-calls-x-1."""
    process = profile.process
    owner = f"-{process.comm}-{process.pid}" if process.pid else ""
    return plain_name(f"locktop-{profile.name}{owner}")


def save_snapshot(snapshot: Snapshot, form: str, directory: Path | None = None) -> Path:
    """Save a snapshot to a new file and return its path.

    Args:
        snapshot: the scan.
        form: the name of a format in ``SNAPSHOT_FORMATS``.
        directory: the directory of the file; None for the working directory.

    Raises:
        NotWrittenError: the file cannot be written.
    """
    output_format = SNAPSHOT_FORMATS[form]
    return save_new(
        snapshot_name(snapshot, ""), output_format.suffix, output_format.render(snapshot), directory
    )
