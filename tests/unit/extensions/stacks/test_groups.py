"""Threads are grouped by their stacks; one without a stack says why."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace
from unit.builders import scenarios
from unit.builders.records import frame, lock, snapshot, thread, wait

from locktop.collector.extensions.stacks import groups
from locktop.collector.extensions.stacks.formats import STACKS_FORMATS
from locktop.collector.extensions.stacks.model import GroupState
from locktop.collector.model import (
    ActivityState,
    Frame,
    Held,
    Kind,
    Snapshot,
    Thread,
    ThreadActivity,
    ThreadState,
)

HOLDER = 4720
BUSY = lock(1, "g_cache", waiters=(4712, 4713), holders=(HOLDER,))


def worker(tid: int, duration_s: float = 1.0, stack: int = 1) -> Thread:
    waits = wait(1, Kind.MUTEX, duration_s, HOLDER, stack=stack)
    return thread(tid, f"worker-{tid}", ThreadState.WAITING, waiting_for=waits)


def idle(tid: int, stack: int = 3) -> Thread:
    waits = wait(5, Kind.COND, 9.0, stack=stack)
    return thread(tid, f"pool-{tid}", ThreadState.IDLE, waiting_for=waits)


def active(tid: int, doing: ActivityState, **more: object) -> Thread:
    state = ThreadState.RUNNING if doing is ActivityState.RUNNING else ThreadState.IDLE
    now = replace(ThreadActivity(tid=tid, doing=doing), **more)
    return thread(tid, "holder", state, now=now)


def text(of: Snapshot) -> str:
    return STACKS_FORMATS.render("text", groups.find(of), 100).decode()


def test_threads_without_names_have_their_ids() -> None:
    """The kernel writes no names of threads to a core."""
    nameless = tuple(replace(worker(tid), name="") for tid in (4713, 4712))
    assert "2 threads, waiting: 4712\n" in text(snapshot(nameless, (BUSY,)))
    assert "thread 4712, waiting\n" in text(snapshot(nameless[1:], (BUSY,)))


def test_threads_with_equal_stacks_are_one_group() -> None:
    stacks = groups.find(
        snapshot((worker(4712), worker(4713, 3.0), worker(4714, stack=2), idle(4715)), (BUSY,))
    )
    members = [[member.tid for member in group.threads] for group in stacks.groups]
    assert members == [[4713, 4712], [4714], [4715]]
    assert [group.state for group in stacks.groups] == ["waiting", "waiting", "idle"]
    assert stacks.groups[0].name == "worker-#"
    assert stacks.count == 4


def test_stacks_with_other_ids_and_the_same_frames_are_equal() -> None:
    threads = (worker(4712, stack=1), worker(4713, stack=70))
    of = snapshot(threads, (BUSY,))
    same = replace(of, stacks={**of.stacks, 70: tuple(of.stacks[1])})
    assert len(groups.find(same).groups) == 1
    other = replace(of, stacks={**of.stacks, 70: (frame("cache_get", "cache.c", 43),)})
    assert len(groups.find(other).groups) == 2


def test_a_group_says_what_it_waits_for_since_when_and_who_has_it() -> None:
    holds = (Held(1, 0x401100, 5.0),)
    holder = replace(
        active(HOLDER, ActivityState.BLOCKED, call="write", what="write(7)", stack=7), holds=holds
    )
    page = text(snapshot((worker(4712), worker(4713, 3.0), holder), (BUSY,)))
    assert "2 threads, waiting: worker-#" in page
    assert (
        "wait for mutex g_cache for up to 3.00 s, held by thread 4720 (holder) for 5.00 s" in page
    )
    assert "cache_get at /src/store/cache.c:42" in page
    assert "thread 4720 (holder), asleep" in page
    assert "in write(7)" in page


def test_deadlocked_threads_come_first_and_threads_without_a_stack_last() -> None:
    stacks = groups.find(scenarios.deadlock())
    assert stacks.groups[0].state is GroupState.DEADLOCKED
    known = [not group.missing for group in stacks.groups]
    assert known == sorted(known, reverse=True)
    assert [group.number for group in stacks.groups] == list(range(1, len(stacks.groups) + 1))


@pytest.mark.parametrize(
    ("member", "reason"),
    [
        (active(1, ActivityState.RUNNING), "it runs, and got no CPU while locktop took samples"),
        (active(1, ActivityState.STOPPED), "a signal or a debugger has stopped it"),
        (active(1, ActivityState.BLOCKED), "the kernel does not show its system call"),
        (
            active(1, ActivityState.BLOCKED, call="read", duration_s=1.0),
            "it could not be followed from outside",
        ),
        (active(1, ActivityState.BLOCKED, call="read"), "it went on while it was read"),
        (
            thread(1, "lives", ThreadState.RUNNING),
            "this snapshot has the stacks of waits for locks alone",
        ),
        (replace(thread(1, "dead", ThreadState.OTHER), alive=False), "the thread has ended"),
        (worker(1, stack=0), "called in cache_put cache.c:88"),
    ],
)
def test_a_thread_without_a_stack_has_the_reason_in_one_line(member: Thread, reason: str) -> None:
    (group,) = groups.find(snapshot((member,), (BUSY,))).groups
    assert reason in group.missing
    lines = text(snapshot((member,), (BUSY,))).splitlines()
    assert len([line for line in lines if "its stack is not known" in line]) == 1


def test_the_kernels_refusal_is_the_reason_of_a_running_thread() -> None:
    note = "the stacks of running threads are not known: perf_event_paranoid is 4"
    of = snapshot((active(1, ActivityState.RUNNING),), (), notes=(note,))
    assert groups.find(of).groups[0].missing == "it runs, and perf_event_paranoid is 4"


def test_a_level_without_stacks_is_the_reason() -> None:
    of = snapshot((worker(1, stack=0),), (BUSY,), level="counting")
    assert "keeps no stacks at the level counting" in groups.find(of).groups[0].missing


def test_a_recorded_scan_has_the_stacks_of_holders() -> None:
    now = ThreadActivity(tid=HOLDER, doing=ActivityState.BLOCKED, call="read", stack=7)
    holder = thread(HOLDER, "holder", ThreadState.IDLE)
    (group,) = groups.find(snapshot((holder,), (replace(BUSY, holder_activity=now),))).groups
    assert group.frames[0].function == "journal_flush"
    earlier = replace(BUSY, holder_activity=replace(now, stack_age_s=2.0))
    (group,) = groups.find(snapshot((holder,), (earlier,))).groups
    assert group.missing


def test_threads_of_other_processes_are_left_out() -> None:
    stacks = groups.find(snapshot((worker(1), replace(worker(2), pid=99)), (BUSY,)))
    assert stacks.count == 1


def test_python_functions_that_nobody_read_are_one_line() -> None:
    frames = (
        Frame(1, "take_gil", None, None, "libpython3.11.so.1.0", 1),
        Frame(2, "_PyEval_EvalFrameDefault", None, None, "libpython3.11.so.1.0", 2),
    )
    of = replace(snapshot((worker(1, stack=80),), (BUSY,)), stacks={80: frames})
    page = text(of)
    assert "(Python functions were not read)" in page
    assert "_PyEval" not in page
    read = groups.find(of, {1: (frame("burns", "work.py", 3),)})
    assert [entry.function for entry in read.groups[0].frames] == ["burns"]
    assert read.groups[0].is_later


def test_a_thread_that_went_on_shows_no_wait_beside_its_later_stack() -> None:
    later = {
        4712: (frame("serve_get", "serve.c", 130),),
        4713: (frame("cache_get", "cache.c", 42),),
    }
    of = snapshot((worker(4712, 0.01, stack=0), worker(4713, 3.0, stack=0)), (BUSY,))
    lasting, brief = groups.find(of, later).groups
    assert (lasting.state, lasting.is_later) == (GroupState.WAITING, True)
    assert (brief.state, brief.is_later) == (GroupState.ACTIVE, True)
    assert brief.threads[0].waiting_for is None
    page = STACKS_FORMATS.render("text", groups.find(of, later), 100).decode()
    assert page.count("read a moment after the other stacks") == 2
    assert page.count("wait for") + page.count("waits for") == 1


def test_several_locks_of_a_class_have_no_single_holder() -> None:
    locks = tuple(lock(number, f"shards[{number}].mu") for number in (1, 2))
    threads = tuple(
        thread(
            tid,
            "worker",
            ThreadState.WAITING,
            waiting_for=wait(number, Kind.MUTEX, 1.0, HOLDER + number),
        )
        for tid, number in ((4712, 1), (4713, 2))
    )
    page = " ".join(text(snapshot(threads, locks)).split())
    assert "shards[].mu, 2 locks for up to 1.00 s, held by thread 4721, thread 4722" in page


def test_hostile_names_reach_no_terminal() -> None:
    bad = frame("f\x1b[31m\n", "a.c", 1)
    member = replace(worker(1, stack=90), name="n\x1b]0;x\x07\u202e")
    of = replace(snapshot((member,), (replace(BUSY, name="l\x9b2J"),)), stacks={90: (bad,)})
    page = text(of)
    assert all(character.isprintable() or character == "\n" for character in page)
    assert all(len(line) <= 100 for line in page.splitlines())


def test_json_has_each_thread_and_each_frame() -> None:
    of = snapshot((worker(4712), worker(4713, 3.0), idle(4715, stack=0)), (BUSY,))
    document = json.loads(STACKS_FORMATS.render("json", groups.find(of), 100))
    assert (document["format"], document["version"]) == ("locktop.stacks", 1)
    assert (document["threads"], document["unknown"]) == (3, 1)
    first, last = document["groups"]
    assert [member["tid"] for member in first["threads"]] == [4713, 4712]
    assert first["threads"][0]["waiting_for"] == {
        "lock": "g_cache",
        "address": f"{BUSY.address:#x}",
        "kind": "mutex",
        "since_s": 3.0,
        "is_lower_bound": False,
        "idle": False,
        "holders": [HOLDER],
    }
    assert first["stack"][0]["function"] == "cache_get"
    assert first["stack"][0]["line"] == 42
    assert last["stack"] is None
    assert last["unknown_because"]
