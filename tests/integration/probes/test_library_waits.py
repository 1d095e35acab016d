"""Waits for locks of TBB and Boost are contended, and waits for work beside them are idle."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import requirements
from support.targets import Compiler, Target
from support.unprepared import all_wait, scan_until, wait_of

_PACKAGES = {
    "libtbb-dev": "/usr/include/oneapi/tbb/mutex.h",
    "libboost-thread-dev": "/usr/include/boost/thread/shared_mutex.hpp",
}
_LIBRARIES = ("-ltbb", "-lboost_thread")


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_waits_for_locks_are_contended_and_others_idle(level: str, compiler: Compiler) -> None:
    for package, header in _PACKAGES.items():
        if not Path(header).exists():
            requirements.missing(header, package, optional=True)
    with Target([compiler.program("cxx_library_waits", level, *_LIBRARIES)]) as target:
        truth = target.truth()
        seen = scan_until(target.pid, all_wait([*truth["lock"], *truth["work"]]))
    waits = {tid: wait_of(seen, tid) for tids in truth.values() for tid in tids}
    idle = {tid: wait is not None and wait.idle for tid, wait in waits.items()}
    assert idle == {tid: tid in truth["work"] for tid in waits}
    # The main thread holds them all and never releases them; no other thread may be named.
    assert not any(lock.holders_probable for lock in seen.locks)
