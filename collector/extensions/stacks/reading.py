"""Reads all stacks of a process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from locktop.collector.extensions.stacks import groups
from locktop.collector.extensions.stacks.model import AllStacks
from locktop.collector.sources.thread_stacks import scanned_stacks

if TYPE_CHECKING:
    from locktop.collector.sources.attach import Source


def read(source: Source) -> AllStacks:
    """Return the stacks of all threads now. The call takes as long as a scan with all names.

    Raises:
        LocktopError: locktop can no longer read the process.
    """
    snapshot = source.scan(resolve=True)
    return groups.find(snapshot, scanned_stacks.read_later(snapshot))
