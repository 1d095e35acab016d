"""The stack of a wait has all callers, with and without frame pointers."""

from __future__ import annotations

import pytest
from support.scans import full_scan
from support.targets import Compiler, StartTarget

from locktop.collector.model.frames import CUT_WHEN_RECORDED
from locktop.collector.sources.launch import preload_environment


@pytest.mark.parametrize("flags", [(), ("-O2", "-fomit-frame-pointer")], ids=["records", "none"])
def test_every_caller_is_in_the_stack(
    start_target: StartTarget, compiler: Compiler, flags: tuple[str, ...]
) -> None:
    plugin = compiler.program("plugin_that_locks", "-shared", "-fPIC")
    target = start_target("waits_called_in_every_way", str(plugin), flags=flags)
    truth = target.truth()
    snapshot = full_scan(target.pid)
    threads = {thread.tid: thread for thread in snapshot.threads}
    own = {function for functions in truth.values() for function in functions}
    for tid, functions in truth.items():
        wait = threads[int(tid)].waiting_for
        assert wait is not None
        frames = snapshot.stacks[wait.stack]
        names = [frame.function.removeprefix("(anonymous namespace)::") for frame in frames]
        assert [name for name in names if name in own] == functions
        assert (frames[-1] == CUT_WHEN_RECORDED) == ("enter" not in functions)


@pytest.mark.parametrize("flags", [(), ("-O2", "-fomit-frame-pointer")], ids=["records", "none"])
def test_two_callers_of_one_function_have_two_stacks(
    start_target: StartTarget, compiler: Compiler, flags: tuple[str, ...]
) -> None:
    beside = compiler.program("unwind_counter", "-shared", "-fPIC")
    preload = f"{preload_environment()['LD_PRELOAD']}:{beside}"
    # In a program at a fixed address, a weak reference stays NULL.
    pie = ("-fPIE", "-pie")
    target = start_target(
        "same_stack_two_callers", flags=(*flags, *pie), environment={"LD_PRELOAD": preload}
    )
    truth = target.truth()
    unwound = int(target.line())
    snapshot = full_scan(target.pid)
    (lock,) = [lock for lock in snapshot.locks if lock.name == "g_wanted"]
    counts: dict[str, int] = {}
    for waited in lock.wait_stacks:
        (caller,) = {frame.function for frame in snapshot.stacks[waited.stack]} & truth.keys()
        counts[caller] = counts.get(caller, 0) + waited.count
    assert counts == truth
    assert 2 <= unwound <= 10, "the library unwinds a known stack only once"
