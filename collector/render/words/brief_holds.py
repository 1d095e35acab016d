"""Sampled locks whose unknown holder changes all the time.

Their waits are too short for a search of the holder, and the thread of one scan would say little.
"""

from __future__ import annotations

from locktop.collector.model import Kind, Lock
from locktop.collector.render.words.snapshot_index import SnapshotIndex

#: Waits that ended, for each present one: fewer may have ended by one release of a slow holder.
_MIN_ENDED = 4
#: Seconds. A longer wait may be one hold, and a person calls that long.
_MAX_WAIT_S = 0.25
#: The present waits are of the usual length.
_MAX_OF_MEAN = 3.0


def phrase(index: SnapshotIndex, lock: Lock) -> str:
    """Return "no thread keeps it long" of a lock without a named holder, else "".

    Each sampled wait that is over ended by a release. The present waits are as short as these.
    """
    waits = [
        thread.waiting_for for thread in index.waiters_of(lock.id) if thread.waiting_for is not None
    ]
    can_be_kept = lock.kind is not Kind.COND and not lock.idle and not lock.readers
    if not waits or not can_be_kept or not index.snapshot.is_sampled:
        return ""
    total = lock.contended or 0
    longest_s = max(wait.duration_s for wait in waits)
    is_brief = max(longest_s, lock.wait_max_s) < _MAX_WAIT_S
    is_usual = is_brief and longest_s * total <= lock.wait_s * _MAX_OF_MEAN
    is_certain = not any(wait.is_lower_bound or wait.timed for wait in waits)
    have_ended = total - len(waits) >= _MIN_ENDED * len(waits)
    changes_hands = is_usual and is_certain and have_ended and index.holder_of(lock) is None
    return "no thread keeps it long" if changes_hands else ""
