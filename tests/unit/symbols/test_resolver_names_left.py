"""How many names are not read yet, and what a lock is called meanwhile."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Iterator
from threading import Event, Thread
from types import SimpleNamespace

import pytest
from msgspec.structs import replace
from unit.builders import scenarios

from locktop.collector.analysis import lock_classes
from locktop.collector.model import Frame, Kind
from locktop.collector.symbols import memory_map, modules
from locktop.collector.symbols import resolver as resolver_module
from locktop.collector.symbols.lock_naming import LockIdentity, LockNames, LockStacks
from locktop.collector.symbols.resolver import Resolver

#: Return addresses within functions of libc. Of a Python that is not position-independent,
#: CDLL(None) would give entries of its own table of calls.
IN_LIBC = tuple(
    (ctypes.cast(getattr(ctypes.CDLL("libc.so.6"), name), ctypes.c_void_p).value or 0) + 1
    for name in ("getpid", "malloc", "free", "read")
)


@pytest.fixture
def resolver() -> Iterator[Resolver]:
    found = Resolver(os.getpid())
    yield found
    found.close()


def test_names_are_left_until_the_thread_has_read_them(resolver: Resolver) -> None:
    with resolver.pause_reading():
        for address in IN_LIBC:
            assert resolver.frame(address).function == ""
            resolver.frame(address)  # requested once
        assert resolver.count_left() == len(IN_LIBC)
        assert not resolver.wait(0.0)
    assert resolver.wait()
    assert resolver.count_left() == 0
    assert all(resolver.frame(address).function for address in IN_LIBC)


def test_names_that_each_scan_requests_are_not_left(resolver: Resolver) -> None:
    with resolver.pause_reading():
        resolver.frame(IN_LIBC[0])
        assert resolver.count_left(with_new=False) == 0, "the thread had no time for it"
        assert resolver.count_left(with_new=False) == 1
        resolver.frame(IN_LIBC[1])
        assert resolver.count_left(with_new=False) == 2, "one of them is old"


def test_addresses_of_the_heap_are_one_name_to_read(
    resolver: Resolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A library may be loaded since the memory map was read.
    later = SimpleNamespace(monotonic=lambda: time.monotonic() + 60.0)
    monkeypatch.setattr(resolver_module, "time", later)
    with resolver.pause_reading():
        for address in range(0x10, 0x1010, 0x10):
            assert resolver.data(address) is None
        assert resolver.count_left() == 1
    assert resolver.wait()
    assert {resolver.data(address) for address in range(0x10, 0x1010, 0x10)} == {""}


def test_a_lock_on_a_stack_keeps_its_name_while_maps_are_read_again(
    resolver: Resolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = LockNames(resolver, generations=False)
    native = (Frame(1, "_PyParkingLot_Park", "parking_lot.c", 330, "python3.13", 1),)
    merged = (Frame(3, "task", "app.py", 23, "python", 0),)

    def name() -> str:
        stacks = LockStacks(most_wait=lambda: native, waiter=lambda: merged)
        return names.name(LockIdentity(1, 0, Kind.SEM, 0x10), stacks)

    resolver.data(0x20)
    assert resolver.wait(), "the memory map was read"
    assert name() == "Lock in task (app.py:23)"
    monkeypatch.setattr(resolver_module, "MAPS_AGE_S", 0.0)
    assert name() == "Lock in task (app.py:23)"


@pytest.mark.parametrize(
    ("functions", "name"),
    [
        (("_PySemaphore_Wait", "lock_PyThread_acquire_lock"), "Lock in task (app.py:23)"),
        (("_PySemaphore_Wait", "PyMutex_Lock", "_PyCriticalSection_BeginSlow"),
         "Lock of an object in task (app.py:23)"),
        (("_PySemaphore_Wait", "tstate_wait_attach", "PyEval_RestoreThread"), "pause of Python"),
    ],
)  # fmt: skip
def test_a_lock_of_python_is_called_by_what_the_interpreter_waits_for(
    resolver: Resolver, functions: tuple[str, ...], name: str
) -> None:
    native = tuple(Frame(1, function, "a.c", 1, "python3.13t", 1) for function in functions)
    merged = (Frame(3, "task", "app.py", 23, "python", 0),)
    stacks = LockStacks(most_wait=lambda: native, waiter=lambda: merged)
    resolver.data(0x10)
    assert resolver.wait()
    lock = LockIdentity(1, 0, Kind.SEM, 0x10)
    assert LockNames(resolver, generations=False).name(lock, stacks) == name


def test_a_file_is_opened_once_for_all_its_addresses(
    resolver: Resolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded, load = [], modules.load

    def count(pid: int, mapping: memory_map.Mapping) -> modules.Module:
        loaded.append(mapping)
        return load(pid, mapping)

    monkeypatch.setattr(modules, "load", count)
    for address in IN_LIBC:
        resolver.frame(address)
    assert resolver.wait()
    assert len(loaded) == 1


def test_only_the_last_form_of_a_frame_is_final(resolver: Resolver) -> None:
    with resolver.pause_reading():
        unnamed = resolver.frame(IN_LIBC[0])
        assert not resolver.is_final(unnamed)
    assert resolver.wait()
    assert not resolver.is_final(unnamed), "a stack of before may still have it"
    assert resolver.is_final(resolver.frame(IN_LIBC[0]))


def test_locks_of_one_function_are_no_class_before_their_lines_are_known(
    resolver: Resolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Frame(0x10, "make", None, None, "program", 1)
    is_final = False
    monkeypatch.setattr(resolver, "is_final", lambda frame: is_final)
    monkeypatch.setattr(resolver, "data", lambda address: "")
    names, whole = LockNames(resolver), scenarios.normal()

    def named() -> list[str]:
        stacks = LockStacks(most_wait=lambda: (made,))
        return [names.name(LockIdentity(n, 0, Kind.MUTEX, n << 8), stacks) for n in (1, 2)]

    def classes(found: list[str]) -> int:
        locks = [replace(whole.locks[0], id=n, name=name) for n, name in enumerate(found)]
        return len(lock_classes.find(locks))

    assert named() == ["mutex in make 0x100", "mutex in make 0x200"]
    assert classes(named()) == 0
    is_final = True
    assert named() == ["mutex in make"] * 2
    assert classes(named()) == 1


def test_a_name_that_is_being_read_is_not_one_of_the_next_map(
    resolver: Resolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library was unloaded meanwhile, and another one may have its addresses."""
    begun, may_end, load = Event(), Event(), modules.load

    def slow(pid: int, mapping: memory_map.Mapping) -> modules.Module:
        begun.set()
        assert may_end.wait(60)
        return load(pid, mapping)

    monkeypatch.setattr(modules, "load", slow)
    resolver.frame(IN_LIBC[0])
    assert begun.wait(60)
    anew = Thread(target=resolver.reread)
    anew.start()
    anew.join(0.1)  # it waits for the name
    may_end.set()
    anew.join()
    assert resolver.wait()
    assert resolver.frame(IN_LIBC[0]).function == ""
    assert resolver.wait()
    assert resolver.frame(IN_LIBC[0]).function != ""
