"""The judge: compares the probable holders of a snapshot with what the program says itself."""

from __future__ import annotations

import time
from collections.abc import Collection
from contextlib import closing

from msgspec import Struct
from support.targets import PATIENCE_S, Target
from support.unprepared import wait_of

from locktop.collector.model import Snapshot
from locktop.collector.sources.attach import attach
from probable.programs import Command

#: A wait that has just begun is not asked about.
_MIN_WAIT_S = 0.2


class Verdict(Struct):
    """How many waits of a scenario have all their holders named, and how many a wrong one."""

    waits: int = 0
    named: int = 0
    wrong: int = 0
    doubts: tuple[str, ...] = ()

    def __add__(self, other: Verdict) -> Verdict:
        return Verdict(
            self.waits + other.waits,
            self.named + other.named,
            self.wrong + other.wrong,
            self.doubts + other.doubts,
        )


def judge(command: Command, scenario: str) -> Verdict:
    """Run a scenario; return whether the holders of its locks are named."""
    with Target([*command, scenario]) as target:
        said = target.truth()["waiters"]
        truth = {int(tid): set(holders) for tid, holders in said.items()}
        seen = settled(target.pid, truth)
        verdict = Verdict()
        for tid, holders in truth.items():
            verdict += _verdict(seen, tid, holders, scenario)
        return verdict


def settled(pid: int, tids: Collection[int]) -> Snapshot:
    """Return a scan in which the waits of these threads have lasted."""
    deadline = time.monotonic() + PATIENCE_S
    with closing(attach(pid)) as source:
        while True:
            seen = source.scan(resolve=True)
            waits = [wait_of(seen, tid) for tid in tids]
            if all(wait is not None and wait.duration_s > _MIN_WAIT_S for wait in waits):
                return seen
            assert time.monotonic() < deadline, waits


def _verdict(seen: Snapshot, tid: int, holders: set[int], scenario: str) -> Verdict:
    wait = wait_of(seen, tid)
    assert wait is not None
    lock = next(lock for lock in seen.locks if lock.id == wait.lock)
    named = {holder.tid for holder in lock.holders_probable} | set(wait.holders)
    wrong, missing = named - holders, holders - named
    doubts: tuple[str, ...] = ()
    if wrong or missing:
        doubts = (f"{scenario}: {lock.type or lock.kind} of {holders} by {named}",)
    return Verdict(1, int(not missing), int(bool(wrong)), doubts)
