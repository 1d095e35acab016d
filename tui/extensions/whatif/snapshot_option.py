"""The option ``--whatif`` of ``locktop snapshot``."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from locktop.collector.errors import LocktopError
from locktop.tui.commands import recorded
from locktop.tui.extensions.whatif import predictions

if TYPE_CHECKING:
    from locktop.collector.model import Snapshot
    from locktop.collector.sources.attach import Source

#: Seconds between the recording and the snapshot. The shares of a snapshot are of the time since
#: the scan before. The last two scans of a recording are only some milliseconds apart.
_SHARES_S = 1.0


def check(arguments: argparse.Namespace) -> None:
    """Raise LocktopError if other options do not go with --whatif."""
    if getattr(arguments, "inside", False) or arguments.session:
        raise LocktopError("--whatif excludes --inside and --session: make two snapshots")
    if arguments.file is not None and not recorded.is_recording(arguments.file):
        raise LocktopError("--whatif needs -p PID or a recording; a saved snapshot stays as it is")
    predictions.check_duration(arguments.duration)


def from_process(source: Source, arguments: argparse.Namespace) -> Snapshot:
    """Return a scan of a process with predictions, made from records of some seconds."""
    from locktop.collector.extensions.whatif.question import WantedChanges

    scans = []

    def scan() -> None:
        time.sleep(_SHARES_S)
        scans.append(source.scan(resolve=True))

    # The scan is before the replays, so that the interval has no time of them.
    duration_s = arguments.duration
    answered = predictions.predict_process(source, arguments.pid, duration_s, WantedChanges(), scan)
    return answered.annotate(scans[0])


def from_recording(snapshot: Snapshot, arguments: argparse.Namespace) -> Snapshot:
    """Return the snapshot with predictions, made from the span of the recording."""
    from locktop.collector.extensions.whatif.question import WantedChanges

    return predictions.predict_file(arguments, WantedChanges()).annotate(snapshot)
