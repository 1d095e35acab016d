"""The waits that are charged to holders: the lists of the C reader against plain ones."""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path

from support.shared_file import SharedFile

from locktop.collector.native import lib
from locktop.collector.shm import layout
from locktop.collector.shm.clock import Clock
from locktop.collector.shm.reader import Reader, Reading
from locktop.collector.shm.segment import SharedMemory

THREADS, LOCKS, STACKS = 90, 60, 3
#: By lock, stack and tid of the holder: ticks.
Ticks = Counter[tuple[int, int, int]]


def crowd(file: SharedFile, chance: random.Random) -> tuple[Ticks, Ticks]:
    """Fill a file with a crowd; return its charges, and its own waits with a tid of 0."""
    locks = [file.add_lock(lib.LT_KIND_MUTEX, 0x1000 * n) for n in range(1, LOCKS + 1)]
    stacks = [file.add_stack([0x10 * n]) for n in range(1, STACKS + 1)]
    charges, waits = Ticks(), Ticks()
    for tid in range(1, THREADS + 1):
        sites: list[dict[str, int]] = []
        for lock in locks:
            for stack in stacks:
                ticks, is_charge = chance.randrange(1, 1000), chance.random() < 0.8
                number = lock | lib.LT_SITE_BLAME * is_charge
                sites.append({"lock": number, "stack": stack, "count": 1, "wait_ticks": ticks})
                (charges if is_charge else waits)[lock, stack, tid * is_charge] += ticks
        file.give_sites(file.add_thread(tid), 256, sites)
    for lock in locks:
        for stack in stacks:
            file.add_retired_site(lock, stack, count=2, wait_ticks=7)
            is_charge = chance.random() < 0.5
            file.struct_at("struct lt_retired_site", file.lock(lock).sites).blame = is_charge
            (charges if is_charge else waits)[lock, stack, 0] += 7
    return charges, waits


def read(file: SharedFile, directory: Path) -> Reading:
    path = file.save(directory)
    memory = SharedMemory(os.open(path, os.O_RDWR), str(path))
    reader = Reader(memory, Clock(memory.header()))
    wanted = range(LOCKS + 2)
    first, second = reader.read(wanted), reader.read(wanted)
    memory.close()
    assert first.charges == second.charges
    assert first.sites == second.sites
    return second


def test_each_charge_is_listed_with_its_lock(tmp_path: Path) -> None:
    file = SharedFile(size=1 << 22)
    charges, waits = crowd(file, random.Random(7))
    reading = read(file, tmp_path)
    found, summed = Ticks(), Ticks()
    for lock, of_lock in reading.charges.items():
        for one in layout.CHARGE.each(of_lock.packed):
            assert one.lock == lock
            found[lock, one.stack, one.holder] += one.wait_ticks
        for by_stack in of_lock.by_stack:
            summed[lock, by_stack.stack, by_stack.living] += by_stack.wait_ticks
    assert found == charges
    expected = Ticks()
    for (lock, stack, tid), ticks in charges.items():
        expected[lock, stack, int(tid > 0)] += ticks
    assert summed == expected
    of_waits = {
        (lock, one.stack, 0): one.wait_ticks for lock, all_ in reading.sites.items() for one in all_
    }
    assert of_waits == waits


def test_charges_of_a_lock_that_does_not_exist_are_left_out(tmp_path: Path) -> None:
    file = SharedFile()
    lock, stack = file.add_lock(lib.LT_KIND_MUTEX, 0x1000), file.add_stack([0x10])
    forged = [
        {"lock": number | lib.LT_SITE_BLAME, "stack": stack, "count": 1, "wait_ticks": 5}
        for number in (lock, lib.LT_SITE_BLAME - 1, 123_456)
    ]
    file.give_sites(file.add_thread(1), 8, forged)
    reading = read(file, tmp_path)
    assert list(reading.charges) == [lock]
    assert len(reading.charges[lock].packed) == layout.CHARGE.size
