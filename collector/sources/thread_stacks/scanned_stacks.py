"""The stacks that a snapshot has, and those that only a read after it can have."""

from __future__ import annotations

from collections.abc import Sequence

from locktop.collector.model import Frame, Snapshot, Thread
from locktop.collector.sources.thread_stacks import late_reads, running_python
from locktop.collector.sources.thread_stacks.scanned_ids import stack_id


def read_later(snapshot: Snapshot) -> dict[int, tuple[Frame, ...]]:
    """Return by tid the stacks that the snapshot lacks, and that can be read now.

    Args:
        snapshot: a scan of this moment, with all names.
    """
    pid = snapshot.process.pid
    later = late_reads.read(snapshot, pid)
    return later | running_python.read(snapshot, pid, later)


def frames(
    snapshot: Snapshot, thread: Thread, later: dict[int, tuple[Frame, ...]]
) -> Sequence[Frame]:
    """Return the stack of a thread, innermost first; () if it is not known."""
    return later.get(thread.tid) or snapshot.stacks.get(stack_id(snapshot, thread), ())
