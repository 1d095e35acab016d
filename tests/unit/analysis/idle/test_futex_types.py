"""The type of a futex from scan to scan."""

from __future__ import annotations

from msgspec.structs import replace
from unit.builders import records

from locktop.collector.analysis.idle.futex_types import FutexTypes
from locktop.collector.analysis.idle.rules import Rules
from locktop.collector.model import Frame, Kind, Lock, Snapshot, ThreadState, UnobservedWait
from locktop.collector.render.words import unobserved_waits

_MODULES = {"GOMP_critical_start": "libgomp.so.1"}


def waiting_in(*functions: str) -> Snapshot:
    frames = tuple(
        Frame(0x1000 + at, name, None, None, _MODULES.get(name, "program"), at)
        for at, name in enumerate(functions)
    )
    wait = records.wait(1, Kind.FUTEX, 1.0, stack=9)
    made = records.snapshot(
        (records.thread(5, "a", ThreadState.WAITING, waiting_for=wait),),
        (records.lock(1, "futex 0x7000", Kind.FUTEX),),
    )
    return replace(made, stacks={9: frames} if frames else {})


def test_a_futex_keeps_its_type_until_a_stack_contradicts() -> None:
    types = FutexTypes(Rules())

    def type_after(*functions: str) -> str:
        draft = waiting_in(*functions).draft()
        types.annotate(draft)
        return draft.locks[0].type

    assert type_after("GOMP_critical_start", "main") == "OpenMP lock"
    assert type_after() == "OpenMP lock", "an unknown stack changes nothing"
    assert type_after("", "main") == "OpenMP lock", "a stack without all names changes nothing"
    assert type_after("something_else", "main") == "", "another futex lies at the address by now"


def unobserved_wait(tid: int, address: int) -> UnobservedWait:
    return UnobservedWait(tid, address, "", 1.0, 9, "lock", idle=False, why="r")


def test_unobserved_waits_of_one_sort_share_a_description() -> None:
    waits = [
        unobserved_wait(1, 0x100),
        unobserved_wait(2, 0x100),
        unobserved_wait(3, 0x200),
    ]
    assert unobserved_waits.what(waits[:2]) == "lock, futex 0x100"
    assert unobserved_waits.what(waits) == "lock, 2 futexes"
    assert unobserved_waits.what(waits[1:]) == "lock, one futex each"
    waits[1] = replace(waits[1], idle=None, why="")
    seen = replace(waiting_in(), unobserved_waits=tuple(waits), unobserved_waiters=(1, 2, 3))
    page = list(unobserved_waits.lines(seen, lambda tid: f"thread {tid}", lambda _: iter(())))
    assert len(page) == 3
    assert "thread 2 for at least 1.00 s: lock, futex 0x100 (not known whether for work)" in page[2]


def test_a_typed_lock_stays_the_same_object_while_nothing_changes() -> None:
    types = FutexTypes(Rules())
    seen = waiting_in("GOMP_critical_start", "main")

    def typed(snapshot: Snapshot) -> Lock:
        draft = snapshot.draft()
        types.annotate(draft)
        return draft.locks[0]

    first = typed(seen)
    assert first.name == "OpenMP lock 0x7000"
    assert typed(seen) is first
    assert typed(replace(seen, locks=(replace(seen.locks[0], contended=5),))).contended == 5
