"""Where the units of a semaphore were taken."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from support.shared_file import SharedFile
from unit.builders import records

from locktop.collector.model import Draft, Kind, LockUse, ThreadState, UnitTaker
from locktop.collector.native import lib
from locktop.collector.shm.segment import SharedMemory
from locktop.collector.shm.unloaded_code import UnloadedCode
from locktop.collector.sources.preload import unit_takers
from locktop.collector.sources.preload.stack_table import StackFrames
from locktop.collector.symbols.resolver import Resolver

SLOTS = 7
UNLOADED = 1 << lib.LT_UNLOADED_BIT


class Scanned:
    """A draft in which a thread took all units of a semaphore, and the file of its process."""

    def __init__(self, directory: Path) -> None:
        file = SharedFile()
        file.header.unloaded.count = 1
        file.header.unloaded.ranges[0].start, file.header.unloaded.ranges[0].end = 0x1000, 0x2000
        self.stack = file.add_stack([0x5500, 0x5600])
        self.unloaded_stack = file.add_stack([UNLOADED | 0x1500, 0x5600])
        path = file.save(directory)
        self._memory = SharedMemory(os.open(path, os.O_RDONLY), str(path))

    def taker(self, acquired: int = 22, **call_site: Any) -> UnitTaker | None:
        """Return the thread that took the units; None if it is not known."""
        draft = self._draft(acquired, call_site)
        frames = StackFrames(self._memory, Resolver(os.getpid()))
        found = unit_takers.annotate(draft, frames, UnloadedCode(self._memory))
        (lock,) = draft.locks
        assert found is (lock.taken_units is not None)
        if lock.taken_units is None:
            return None
        (taker,) = lock.taken_units.takers
        return taker

    def _draft(self, acquired: int, call_site: dict[str, Any]) -> Draft:
        use = LockUse(lock=SLOTS, acquisitions=acquired, signals=20, **call_site)
        user = replace(records.thread(2, "user", ThreadState.RUNNING), uses=(use,))
        wait = records.wait(SLOTS, Kind.SEM, 5.0)
        waiter = records.thread(1, "waiter", ThreadState.WAITING, waiting_for=wait)
        slots = records.lock(
            SLOTS, "g_slots", Kind.SEM, waiters=(1,), used_as_lock=True, first_value=2,
            life_acquisitions=acquired, life_signals=20,
        )  # fmt: skip
        return records.snapshot((waiter, user), (slots,)).draft()


@pytest.fixture
def scanned(tmp_path: Path) -> Scanned:
    return Scanned(tmp_path)


def test_the_call_site_is_known_with_or_without_a_stack(scanned: Scanned) -> None:
    assert scanned.taker(site=0x5500, took_more=True) == UnitTaker(2, 2, 0x5500, 0, True)
    stack = scanned.stack
    assert scanned.taker(stack=stack) == UnitTaker(2, 2, 0x5500, stack)
    assert scanned.taker() == UnitTaker(2, 2)


def test_a_call_site_in_unloaded_code_may_be_of_other_code(scanned: Scanned) -> None:
    assert scanned.taker(site=0x1500) == UnitTaker(2, 2)
    stack = scanned.unloaded_stack  # its frames say that their code is gone
    assert scanned.taker(stack=stack) == UnitTaker(2, 2, 0, stack)


def test_while_a_unit_is_left_nobody_is_a_taker(scanned: Scanned) -> None:
    assert scanned.taker(acquired=21, site=0x5500) is None
