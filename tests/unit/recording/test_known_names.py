"""Names of later snapshots: what gets them, and what must not."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from unit.builders import records

from locktop.collector.model import Frame, Kind, Lock, Snapshot, ThreadState, WaitStack
from locktop.collector.recording.known_names import KnownNames, LoadedCode
from locktop.collector.symbols.stack_frames import UNLOADED

_ADDRESS = 0x7000
_SECOND_NS = 1_000_000_000
_UNNAMED = Frame(_ADDRESS, "", None, None, "store", 0x1000)
_FUNCTION = replace(_UNNAMED, function="cache_get")
_LINE = replace(_FUNCTION, file="cache.c", line=5, directory="/src")
_INLINED = replace(_LINE, function="inner", line=9, inlined=True)


def lock(name: str = "", **more: object) -> Lock:
    """Return a lock; without a name one that goes by its address."""
    made = records.lock(7, name, **more)
    return made if name else replace(made, name=f"mutex {made.address:#x}")


def snapshot(*frames: Frame, locks: tuple[Lock, ...] = (), **more: object) -> Snapshot:
    """Return a snapshot with one stack, of which a wait is."""
    made = records.snapshot((), locks)
    return replace(made, stacks={3: frames}, sites={}, **more)


def after(first: Snapshot, *later: Snapshot) -> Snapshot:
    """Return the first snapshot with the names of later ones, of which one comes each second."""
    names = KnownNames()
    wanted = names.wanted(first, 0)
    for second, one in enumerate(later, 1):
        wanted = names.learn(one, second * _SECOND_NS, wanted)
    return names.apply(first)


def test_frames_get_the_function_and_then_the_line() -> None:
    first = snapshot(_UNNAMED)
    assert after(first, snapshot(_FUNCTION)).stacks[3] == (_FUNCTION,)
    assert after(first, snapshot(_FUNCTION, names_left=1), snapshot(_LINE)).stacks[3] == (_LINE,)
    assert after(snapshot(_LINE), snapshot(_FUNCTION)).stacks[3] == (_LINE,)


def test_inlined_functions_come_before_their_caller_in_each_turn_of_a_recursion() -> None:
    first = snapshot(_UNNAMED, _UNNAMED)
    found = after(first, snapshot(_INLINED, _LINE, _INLINED, _LINE)).stacks[3]
    assert found == (_INLINED, _LINE, _INLINED, _LINE)


def test_a_call_site_gets_one_frame() -> None:
    first = replace(snapshot(), sites={_ADDRESS: _UNNAMED})
    assert after(first, snapshot(_INLINED, _LINE)).sites == {_ADDRESS: _INLINED}


def test_frames_beyond_the_begin_of_a_thread_go() -> None:
    outer = replace(_UNNAMED, address=0x8000)
    begin = replace(outer, function="clone", file="clone.S", line=1)
    beyond = replace(_UNNAMED, address=0x9000)
    found = after(snapshot(_UNNAMED, outer, beyond), snapshot(_LINE, begin)).stacks[3]
    assert found == (_LINE, begin)


def test_another_module_or_no_file_at_the_address_gives_no_name() -> None:
    for module in ("plugin", "", UNLOADED):
        unnamed = replace(_UNNAMED, module=module)
        assert after(snapshot(unnamed), snapshot(_LINE)).stacks[3] == (unnamed,)
        assert after(snapshot(_UNNAMED), snapshot(replace(_LINE, module=module))).stacks[3] == (
            _UNNAMED,
        )


def test_an_unloaded_library_or_another_program_is_other_code() -> None:
    first = snapshot(_UNNAMED)
    assert LoadedCode.from_snapshot(first) == LoadedCode.from_snapshot(snapshot(_LINE))
    later = replace(first.process, counted_since="2026-01-01T00:00:00Z")
    for other in (replace(first, unloads=1), replace(first, process=later)):
        assert LoadedCode.from_snapshot(first) != LoadedCode.from_snapshot(other)


def test_what_two_snapshots_leave_without_a_name_is_searched_in_no_third_one() -> None:
    names = KnownNames()
    first = snapshot(_UNNAMED, locks=(lock(),))
    wanted = names.wanted(first, 0)
    assert len(wanted) == 2
    assert names.learn(replace(first, names_left=1), 1, wanted) == wanted
    assert names.learn(first, 2, wanted) == wanted, "a lock may get its name one scan later"
    assert names.learn(first, 2, wanted) == wanted, "this is the same scan"
    assert names.learn(first, 3, wanted) == set()
    assert names.apply(first) == first


def test_searches_for_a_name_that_never_comes_get_rare_but_do_not_end() -> None:
    names, first, searches = KnownNames(), snapshot(_UNNAMED), []
    for second in range(60):
        if wanted := names.wanted(first, second * _SECOND_NS):
            names.note_search(wanted, second * _SECOND_NS)
            searches.append(second)
    assert searches == [0, 1, 2, 4, 8, 16, 26, 36, 46, 56]


def test_a_lock_gets_the_name_of_its_variable() -> None:
    first = snapshot(_UNNAMED, locks=(lock(),))
    assert after(first, snapshot(locks=(lock("g_cache"),))).locks[0].name == "g_cache"
    given = snapshot(locks=(lock("before"),))
    assert after(given, snapshot(locks=(lock("g_cache"),))).locks[0].name == "before"


def test_another_lock_at_the_address_gives_no_name() -> None:
    first = snapshot(locks=(lock(),))
    other = lock("g_cache")
    for life in (
        replace(other, generation=1),
        replace(other, id=8),
        replace(other, address=other.address + 8),
        replace(other, kind=Kind.RWLOCK),
    ):
        assert after(first, snapshot(locks=(life,))) == first


def test_the_function_of_a_wait_names_a_lock_only_if_the_moment_has_such_a_wait() -> None:
    name = "mutex in cache_get (cache.c:5)"
    waits = (WaitStack(stack=3, count=1, wait_s=1.0),)
    later = snapshot(_LINE, locks=(lock(name, wait_stacks=waits),))
    waited = snapshot(_UNNAMED, locks=(lock(wait_stacks=waits),))
    assert after(waited, later).locks[0].name == name
    unused = snapshot(_UNNAMED, locks=(lock(wait_stacks=()),))
    assert after(unused, later).locks[0].name == unused.locks[0].name
    wait = records.wait(7, Kind.MUTEX, 1.0, stack=3)
    waiting = replace(
        unused,
        threads=(records.thread(2, "worker", ThreadState.WAITING, waiting_for=wait),),
    )
    assert after(waiting, later).locks[0].name == name


def test_a_lock_made_in_a_function_needs_no_wait() -> None:
    name = "mutex made in cache_new (cache.c:1)"
    assert after(snapshot(locks=(lock(),)), snapshot(locks=(lock(name),))).locks[0].name == name


@pytest.mark.parametrize("word", ["Lock", "Lock of an object"])
@pytest.mark.parametrize("source", ["preload", "proc"])
def test_a_sampled_moment_must_show_the_wait_that_names_a_lock_of_python(
    source: str, word: str
) -> None:
    # Samples do not show that the memory of one lock became another one.
    name = f"{word} in put (queue.py:5)"
    plain = records.lock(7, "", Kind.SEM)
    plain = replace(plain, name=f"sem {plain.address:#x}")
    put = replace(_LINE, function="put", file="queue.py", module="python")
    waits = (WaitStack(stack=3, count=1, wait_s=1.0),)
    later = snapshot(put, locks=(replace(plain, name=name, wait_stacks=waits),), source=source)
    unused = snapshot(put, locks=(plain,), source=source)
    waited = snapshot(put, locks=(replace(plain, wait_stacks=waits),), source=source)
    assert after(waited, later).locks[0].name == name
    expected = plain.name if source == "proc" else name
    assert after(unused, later).locks[0].name == expected
