"""The data of a process that survives from scan to scan, whatever program the process executes."""

from __future__ import annotations

import socket
from collections.abc import Collection

from locktop.collector.analysis.recent_waits import RecentWaits
from locktop.collector.analysis.sampled_queues import QueueSamples
from locktop.collector.linux.process_info import ProcessFigures
from locktop.collector.linux.target import find_process
from locktop.collector.linux.threads import KernelThreads
from locktop.collector.model import Snapshot
from locktop.collector.sanitize import clean
from locktop.collector.sources.probes.followed_thread import FollowedThread
from locktop.collector.sources.probes.hang_probe import HangProbe
from locktop.collector.sources.probes.hold_lengths import HoldLengths
from locktop.collector.sources.probes.lost_owners import LostOwners
from locktop.collector.sources.probes.owners_elsewhere import OwnersElsewhere
from locktop.collector.sources.probes.static_initialisers import StaticInitialisers

#: Share of locktop's descriptors for the files of threads.
_FILES_SHARE = 0.75


class WatchedProcess:
    """One process, as both sources keep it between scans."""

    def __init__(self, pid: int, files_share: float = _FILES_SHARE) -> None:
        """Args:
            pid: the process, in locktop's own pid namespace.
            files_share: share of locktop's descriptors for the files of threads.

        Raises:
            LocktopError: there is no such process, or locktop may not see the process.
        """
        self.target = find_process(pid)
        self.tasks = KernelThreads(pid, self.target.own_pid, files_share)
        self.followed_thread = FollowedThread(pid, self.tasks)
        self.hang = HangProbe(pid, self.tasks)
        self.lost_owners = LostOwners(pid, self.target.own_pid)
        self.owners_elsewhere = OwnersElsewhere(pid)
        self.initialisers = StaticInitialisers()
        self.figures = ProcessFigures(self.target)
        self.host = clean(socket.gethostname())
        self.last: Snapshot | None = None
        self.scanned_at = 0.0  # time.monotonic() of the last scan
        self.hurried = False  # do not wait for names any more
        self.followed_locks: Collection[int] | None = None  # ids; None: all
        self.hold_lengths = HoldLengths(self.tasks)
        self.queues = QueueSamples()  # of a process without the library
        self.recent_lock_waits = RecentWaits()
        self.recent_thread_waits = RecentWaits()
        self.reads_names = True  # the user may stop the reading of names
        self.wanted_sections: frozenset[str] = frozenset()  # of those that are on request alone

    def want_section(self, name: str, wanted: bool) -> None:
        """See Source."""
        others = self.wanted_sections - {name}
        self.wanted_sections = others | {name} if wanted else others

    def close(self) -> None:
        """Close the files of the process."""
        self.followed_thread.close()
        self.tasks.close()
