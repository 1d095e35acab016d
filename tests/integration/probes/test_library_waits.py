"""Waits for locks of TBB and Boost are contended, and waits for work beside them are idle."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from support import requirements
from support.targets import Compiler, Target
from support.unprepared import all_wait, scan_until, wait_of

from locktop.collector.model import Snapshot

_PACKAGES = {
    "libtbb-dev": "/usr/include/oneapi/tbb/mutex.h",
    "libboost-thread-dev": "/usr/include/boost/thread/shared_mutex.hpp",
}
_LIBRARIES = ("-ltbb", "-lboost_thread")
_MIN_WAIT_S = 0.2


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_waits_for_locks_are_contended_and_others_idle(level: str, compiler: Compiler) -> None:
    for package, header in _PACKAGES.items():
        if not Path(header).exists():
            requirements.missing(header, package, optional=True)
    with Target([compiler.program("cxx_library_waits", level, *_LIBRARIES)]) as target:
        truth = target.truth()
        holders = {int(tid): holder for tid, holder in truth["lock"].items()}
        are_asleep = all_wait([*holders, *truth["work"]])
        seen = scan_until(target.pid, lambda seen: are_asleep(seen) and _last(seen, holders))
    waits = {tid: wait_of(seen, tid) for tid in [*holders, *truth["work"]]}
    idle = {tid for tid, wait in waits.items() if wait is not None and wait.idle}
    assert idle == set(truth["work"])
    assert {tid: _holders(seen, tid) for tid in holders} == {
        tid: {holder} for tid, holder in holders.items()
    }


def _last(seen: Snapshot, tids: Iterable[int]) -> bool:
    """Return whether waits have lasted: the holder of a short wait is not sought."""
    waits = [wait_of(seen, tid) for tid in tids]
    return all(wait is not None and wait.duration_s > _MIN_WAIT_S for wait in waits)


def _holders(seen: Snapshot, tid: int) -> set[int]:
    wait = wait_of(seen, tid)
    assert wait is not None
    lock = next(lock for lock in seen.locks if lock.id == wait.lock)
    return {*wait.holders, *(holder.tid for holder in lock.holders_probable)}
