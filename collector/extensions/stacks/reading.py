"""Reads all stacks of a process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from locktop.collector.extensions.stacks import groups, late_stacks, running_python
from locktop.collector.extensions.stacks.model import AllStacks

if TYPE_CHECKING:
    from locktop.collector.sources.attach import Source


def read(source: Source) -> AllStacks:
    """Return the stacks of all threads now. The call takes as long as a scan with all names.

    Raises:
        LocktopError: locktop can no longer read the process.
    """
    snapshot = source.scan(resolve=True)
    pid = snapshot.process.pid
    later = late_stacks.read(snapshot, pid)
    return groups.find(snapshot, later | running_python.read(snapshot, pid, later))
