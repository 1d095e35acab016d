"""Opens a file with a call tree: a snapshot, or a report of another profiler."""

from __future__ import annotations

from locktop.collector.analysis.idle.rules import Rules
from locktop.collector.errors import LocktopError, reason_of
from locktop.collector.model import Snapshot
from locktop.collector.render.documents import snapshot_codec
from locktop.collector.render.input_file import open_input
from locktop.collector.render.profiles import vsperf_report
from locktop.collector.render.profiles.profile import Profile, ReportProfile, SnapshotProfile
from locktop.collector.render.words import units

#: Bytes of a file, which is read as a whole.
MAX_BYTES = 1 << 30


def open_profile(path: str, rules: Rules | None = None) -> Profile:
    """Read a file and return its profile.

    Args:
        path: A snapshot as JSON or msgpack, or a caller/callee report.
        rules: The rules that classify the waits of a snapshot; None for the shipped rules.

    Raises:
        LocktopError: The file cannot be read, is not regular, has neither format, or is too large.
    """
    data = _read(path)
    if snapshot_codec.is_snapshot(data):
        return SnapshotProfile(snapshot_codec.parse(data, path, rules))
    return ReportProfile(vsperf_report.parse(data, path), path)


def open_snapshot(path: str, rules: Rules | None = None) -> Snapshot:
    """Read a file with a snapshot as JSON or msgpack. For the rest see ``open_profile``."""
    return snapshot_codec.parse(_read(path), path, rules)


def _read(path: str) -> bytes:
    try:
        with open_input(path) as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise LocktopError(f"{path}: {reason_of(error)}") from None
    if not data:
        raise LocktopError(f"{path}: an empty file")
    if len(data) > MAX_BYTES:
        raise LocktopError(f"{path} is larger than {units.size(MAX_BYTES)}")
    return data
