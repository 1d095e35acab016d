"""The report of a deadlock: advice, the threads behind the cycle, text, JSON, DOT and Mermaid."""

from __future__ import annotations

import json
import re
import subprocess
import xml.etree.ElementTree as xml
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from unit.builders import records, scenarios

from locktop.collector.analysis.deadlock_report import reports
from locktop.collector.analysis.lock_ordering_advice import OrderingAdvice
from locktop.collector.model import (
    ActivityState,
    Avoidance,
    BlockReason,
    Deadlock,
    DeadlockEdge,
    DeadlockReport,
    Frame,
    Held,
    Kind,
    OrderCycle,
    OrderEdge,
    Remedy,
    Snapshot,
    Thread,
    ThreadActivity,
    ThreadState,
    Wait,
)
from locktop.collector.render.documents import deadlock_json
from locktop.collector.render.graph import dot, mermaid
from locktop.collector.render.text import deadlock
from locktop.collector.render.words import verdict
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.tui.views.deadlock_details import deadlock_details
from locktop.tui.views.styled_line import line_text

HOSTILE = 'a"b\\N\\n<b>&amp;|{x} end`--> subgraph; %% 線程 #quot;'


def site(address: int) -> Frame:
    return Frame(address, f"f{address}", "a.c", address, "x", address)


def member(tid: int, wants: int, holder: int, duration_s: float = 5.0, **more: object) -> Thread:
    """A thread that took lock ``tid`` at line 100 + tid and wants ``wants`` at line 200 + tid."""
    kind = more.pop("kind", Kind.MUTEX)
    assert isinstance(kind, Kind)
    wait = Wait(wants, kind, duration_s, (holder,), tid, 200 + tid, 1, **more)  # type: ignore[arg-type]
    held = (Held(tid, 100 + tid, 9.0),)
    return Thread(tid, f"t{tid}", True, ThreadState.WAITING, wait, held, {}, 0.0, 1, 1)


def seen(
    *threads: Thread,
    circle: int,
    kinds: dict[int, Kind] | None = None,
    how: dict[int, BlockReason] | None = None,
) -> Snapshot:
    """A ring of ``circle`` threads; the other threads wait behind the ring."""
    ring = threads[:circle]
    cycle = tuple(
        DeadlockEdge(
            one.tid,
            one.waiting_for.lock,
            one.waiting_for.holders[0],
            one.tid,
            100 + one.waiting_for.holders[0],
            (how or {}).get(one.tid, BlockReason.HELD),
        )
        for one in ring
        if one.waiting_for
    )
    locks = tuple(records.lock(n, f"g_{n}", (kinds or {}).get(n, Kind.MUTEX)) for n in range(1, 9))
    return records.snapshot(
        threads,
        locks,
        deadlocks=(Deadlock(True, 3.0, cycle, stuck=tuple(one.tid for one in threads[circle:])),),
        stacks={one.tid: (site(200 + one.tid),) for one in threads},
        sites={n: site(n) for n in range(101, 300)},
    )


def found_for(snapshot: Snapshot) -> Avoidance:
    return OrderingAdvice(snapshot).avoidance(snapshot.deadlocks[0])


def page(snapshot: Snapshot) -> str:
    (report,) = reports(snapshot)
    return "\n".join(deadlock.lines(report))


RING = (member(1, 2, 2), member(2, 3, 3, 4.0), member(3, 1, 1))


def test_the_advised_order_is_that_of_all_threads_but_the_last() -> None:
    found = found_for(seen(*RING, circle=3))
    assert found.remedy is Remedy.ORDER
    assert found.order == (3, 1, 2)
    assert found.change is not None
    assert (found.change.tid, found.change.has, found.change.wants) == (2, 2, 3)
    assert set(found.others) == {1, 3}
    said = page(seen(*RING, circle=3))
    assert "    Take mutex g_3, then mutex g_1, then mutex g_2.\n" in said
    assert (
        "    t3 (3) and t1 (1) do. t2 (2) takes mutex g_2 first (in f102 at a.c:102) and then wants"
        " mutex g_3 (in f202 at a.c:202). This thread would have to take mutex g_3 before mutex"
        " g_2, or release mutex g_2 before it wants mutex g_3.\n" in said
    )
    assert "This thread's wait closed the cycle. The order of another" in said


def test_threads_beside_the_cycle_show_the_usual_order() -> None:
    other = member(4, 1, 1)
    assert found_for(seen(*RING, other, circle=3)).change == found_for(seen(*RING, circle=3)).change
    first_one, then_three = Held(1, 1, None), Held(3, 1, None)
    rule = replace(other, holds=(first_one, then_three), waiting_for=None)
    found = found_for(seen(*RING, rule, circle=3))
    assert found.change is not None
    assert (found.change.tid, found.elsewhere) == (3, 1), "the last thread takes 3 before 1"
    assert found.order == (1, 2, 3)
    assert "1 thread outside the cycle takes these two in that order as well." in page(
        seen(*RING, rule, circle=3)
    )


def test_earlier_lock_orders_count_for_the_advice() -> None:
    past = OrderCycle((3, 1), (OrderEdge(1, 3, 77, 1), OrderEdge(3, 1, 3, 1)))
    snapshot = replace(seen(*RING, circle=3), lock_order=(past,))
    found = found_for(snapshot)
    assert found.change is not None
    assert (found.change.tid, found.elsewhere) == (3, 1)


def test_a_thread_that_requests_its_own_lock_is_advised_to_take_the_lock_once() -> None:
    snapshot = seen(member(1, 1, 1), circle=1)
    assert found_for(snapshot).remedy is Remedy.ONCE_ONLY
    said = page(snapshot)
    assert said.startswith("DEADLOCK: 1 thread waits for itself, for 3.00 s already")
    assert "t1 (1) took mutex g_1 (in f101 at a.c:101) and wants it again (in f201 at" in said


def test_a_waiting_writer_before_readers_holds_nothing() -> None:
    both = seen(
        member(1, 1, 2, kind=Kind.RWLOCK, shared=True),
        replace(member(2, 1, 1, kind=Kind.RWLOCK), holds=()),
        circle=2,
        kinds={1: Kind.RWLOCK},
    )
    edges = both.deadlocks[0].cycle
    cycle = (replace(edges[0], reason=BlockReason.BEHIND, site=0), edges[1])
    snapshot = replace(both, deadlocks=(Deadlock(True, 3.0, cycle),))
    assert found_for(snapshot).remedy is Remedy.ONCE_ONLY
    said = page(snapshot)
    assert "t1 (1) waits for rwlock g_1 (to read) for 5.00 s" in said
    assert "    behind t2 (2), which waits to write and goes first\n" in said


def test_a_joining_thread_is_advised_to_release_first() -> None:
    snapshot = seen(
        member(1, 2, 2, kind=Kind.JOIN),
        member(2, 1, 1),
        circle=2,
        kinds={2: Kind.JOIN},
        how={1: BlockReason.LIVES},
    )
    found = found_for(snapshot)
    assert found.remedy is Remedy.RELEASE
    assert found.change is not None
    assert found.change.tid == 1
    said = page(snapshot)
    assert "t1 (1) waits for the end of t2 (2) for 5.00 s, in f201" in said
    assert "Release mutex g_1 before that wait." in said
    kinds = {1: Kind.JOIN, 2: Kind.JOIN}
    joins = seen(
        member(1, 2, 2, kind=Kind.JOIN), member(2, 1, 1, kind=Kind.JOIN), circle=2, kinds=kinds
    )
    assert found_for(joins).remedy is Remedy.NONE
    assert "No order of locks would" in page(joins)
    # Only the source location distinguishes joins, if at all.
    joins = seen(
        member(1, 1, 2, kind=Kind.JOIN), member(2, 1, 1, kind=Kind.JOIN), circle=2, kinds=kinds
    )
    assert found_for(joins).remedy is Remedy.NONE


def test_locks_that_several_threads_of_the_cycle_hold_have_no_order() -> None:
    readers = (member(1, 1, 2), member(2, 2, 3), member(3, 1, 4), member(4, 2, 1))
    assert found_for(seen(*readers, circle=4)) == Avoidance(Remedy.NONE)


def test_no_advice_asks_to_release_a_once_routine() -> None:
    kinds = {1: Kind.ONCE, 2: Kind.JOIN}
    joins = member(1, 2, 2, kind=Kind.JOIN)
    snapshot = seen(joins, member(2, 1, 1, kind=Kind.ONCE), circle=2, kinds=kinds)
    assert "A once routine should not wait for a thread that may call the routine" in page(snapshot)


def test_one_call_site_that_takes_all_locks_needs_an_order_by_address() -> None:
    found = found_for(scenarios.deadlock())
    assert (found.remedy, found.order) == (Remedy.ONE_LOCATION, (10, 11, 12))


def test_threads_behind_the_cycle_are_sorted_by_wait() -> None:
    snapshot = seen(*RING, member(5, 1, 1, 1.0), member(6, 5, 5, 2.0), circle=3)
    (report,) = reports(snapshot)
    assert [one.tid for one in report.behind] == [6, 5]
    said = page(snapshot)
    assert "; 2 threads more are stuck behind them\n" in said
    assert "  STUCK BEHIND THEM\n    t6 (6) waits for mutex g_5 for 2.00 s, in f206" in said
    assert "nor the threads stuck behind" in said


def test_threads_stuck_in_the_same_way_share_a_line() -> None:
    one = member(5, 1, 1, 1.0)
    other = replace(one, tid=7, name="t7")
    snapshot = seen(*RING, member(6, 5, 5, 2.0), one, other, circle=3)
    said = page(snapshot)
    assert "    2 threads (t#: 5, 7) wait for mutex g_1 for up to 1.00 s, in f205" in said
    assert "    t6 (6) waits for mutex g_5 for 2.00 s, in f206" in said
    (details,) = (
        line
        for line in map(line_text, deadlock_details(SnapshotIndex(snapshot)))
        if line.startswith("  2 threads")
    )
    assert details.startswith("  2 threads (t#: 5, 7) wait for mutex g_1 for up to 1.00 s")


def test_a_lock_of_an_ended_thread_is_named_as_abandoned() -> None:
    snapshot = seen(member(1, 2, 9), member(3, 1, 1), circle=1, how={1: BlockReason.ABANDONED})
    gone = replace(member(9, 1, 1), alive=False, waiting_for=None, holds=())
    snapshot = replace(snapshot, threads=(*snapshot.threads, gone))
    found = found_for(snapshot)
    assert (found.remedy, found.change) == (Remedy.GIVE_BACK, None)
    said = page(snapshot)
    assert said.startswith(
        "DEADLOCK: 1 thread waits for what no thread is left to give, for 3.00 s"
    )
    assert "\n  t1 -> t9 (9), which has ended\n" in said
    assert "    not given back by t9 (9), which has ended, taken in f109 at a.c:109\n" in said
    assert "t9 (9) took mutex g_2 (in f109 at a.c:109) and ended. A thread should" in said
    line = "deadlock: 1 thread of store 4711 waits for what no thread is left to give, for 3.00 s: "
    assert verdict.line(snapshot) == f"{line}t1 -> t9 (9), which has ended"
    drawing = dot.render(reports(snapshot))
    assert 'thread_9 [label="t9\\nthread 9\\nhas ended"' in drawing
    assert "lock_2 -> thread_9" in drawing


def test_a_wait_that_no_thread_can_end_has_no_holder() -> None:
    kinds = {2: Kind.BARRIER}
    snapshot = seen(
        member(1, 2, 0, kind=Kind.BARRIER), circle=1, kinds=kinds, how={1: BlockReason.ABSENT}
    )
    said = page(snapshot)
    assert "\n  t1 -> nobody\n" in said
    assert "    and no thread is left that could end that wait\n" in said
    assert "thread_0" not in dot.render(reports(snapshot))
    assert found_for(snapshot).remedy is Remedy.NONE


@pytest.mark.parametrize("how", list(BlockReason))
def test_each_block_reason_has_a_sentence(how: BlockReason) -> None:
    snapshot = seen(*RING, circle=3, how={1: how})
    said = page(snapshot)
    words = ("held by t2", "behind t2", "taken by t2", "run by t2", "the end of t2",
             "t2 (2) has not arrived", "which t2 (2) would have", "given back by t2",
             "got before the fork, and t2 (2) alone")  # fmt: skip
    assert sum(word in said for word in words) == 1
    assert check_mermaid(mermaid.render(reports(snapshot))) == 6


def test_the_advised_action_depends_on_certainty_and_on_the_end_of_the_process() -> None:
    snapshot = seen(*RING, circle=3)
    assert "The only way out is to end the process" in page(snapshot)
    assert f"`locktop snapshot -p {records.PID} -o FILE`" in page(snapshot)
    doubted = replace(snapshot.deadlocks[0], certain=False, doubt="who knows")
    possible = page(replace(snapshot, deadlocks=(doubted,)))
    assert possible.startswith("POSSIBLE DEADLOCK: ")
    assert "  not certain: who knows\n" in possible
    assert "The only way out" not in possible
    gone = page(replace(snapshot, ended=True))
    assert "3 threads waited for each other, for 3.00 s (since" in gone
    assert "The only way out" not in gone


def test_a_saved_snapshot_without_a_time_shows_no_time() -> None:
    (report,) = reports(replace(seen(*RING, circle=3), taken_at="yesterday"))
    assert report.since == ""
    (report,) = reports(seen(*RING, circle=3))
    assert report.since == "2026-11-21T03:12:42Z"


def test_the_json_document_has_the_whole_report() -> None:
    (report,) = reports(seen(*RING, member(5, 1, 1), circle=3))
    document = json.loads(json.dumps(deadlock_json.document(report)))
    first = document["threads"][0]
    assert (first["tid"], first["held_by"], first["waits_for"]["name"]) == (1, 2, "g_2")
    assert (first["at"], first["taken_at"]) == ("f201 at a.c:201", "f102 at a.c:102")
    assert first["has"][0]["lock"] == {"id": 1, "kind": "mutex", "name": "g_1"}
    assert document["behind"][0]["tid"] == 5
    assert document["order"] == [3, 1, 2]
    assert document["change"]["tid"] == 2
    assert document["headline"].startswith("DEADLOCK: 3 threads")


def test_the_line_names_the_oldest_of_several_deadlocks() -> None:
    snapshot = seen(*RING, circle=3)
    older = replace(snapshot.deadlocks[0], since_s=90.0)
    line = verdict.line(replace(snapshot, deadlocks=(snapshot.deadlocks[0], older)))
    assert line.endswith("2 cycles, the oldest for 90.0 s: t1 -> t2 -> t3 -> t1")


def hostile() -> tuple[DeadlockReport, ...]:
    """Hostile names, and a thread behind the ring."""
    snapshot = seen(*RING, member(5, 1, 1), circle=3)
    threads = tuple(replace(one, name=HOSTILE) for one in snapshot.threads)
    locks = tuple(replace(one, name=HOSTILE) for one in snapshot.locks)
    frames = {k: replace(v, function=HOSTILE, file=HOSTILE) for k, v in snapshot.sites.items()}
    return reports(replace(snapshot, threads=threads, locks=locks, sites=frames))


def drawn(dot: Path, text: str) -> list[str]:
    """The texts in the drawing that Graphviz makes."""
    done = subprocess.run(
        [dot, "-Tsvg"], input=text, capture_output=True, text=True, check=True, encoding="utf-8"
    )
    assert done.stderr == "", "Graphviz must not even warn"
    texts = xml.fromstring(done.stdout).iter("{http://www.w3.org/2000/svg}text")
    return [(text.text or "").replace("\xa0", " ") for text in texts]


def test_graphviz_draws_every_name_unchanged(need: Callable[..., Path]) -> None:
    graphviz = need("dot", "graphviz")
    texts = drawn(graphviz, dot.render(hostile()))
    assert texts.count(HOSTILE) == 4, "threads"
    assert {f"thread {tid}" for tid in (1, 2, 3, 5)} <= set(texts)
    assert sum(text.startswith("mutex a") for text in texts) == 3
    assert texts.count("waits 5.00 s") == 3
    assert texts.count("held by") == 4
    plain = drawn(graphviz, dot.render(reports(scenarios.deadlock())))
    assert {"mutex fork[0]", "mutex fork[1]", "mutex fork[2]"} <= set(plain)
    assert drawn(graphviz, dot.render(())) == ["no deadlock"]


#: The part of Mermaid that the drawing uses.
_TEXT = r'"(?:[A-Za-z0-9 _.,:/+=?-]|#\d+;|<br>)+"'
_LINES = (
    rf"\w+(?:\[{_TEXT}\]|\(\[{_TEXT}\]\))(?::::(?:circle|behind|lock))?",
    rf"(\w+) -->\|{_TEXT}\| (\w+)",
    r"classDef \w+ [a-z-]+:#?\w+(?:,[a-z-]+:#?\w+)*",
)


def check_mermaid(text: str) -> int:
    """Check every line against the grammar, and that arrows join declared nodes.

    Returns: the number of arrows.
    """
    first, *lines = text.removesuffix("\n").split("\n")
    assert first == "flowchart LR"
    known, arrows = set(), 0
    for line in lines:
        assert any(re.fullmatch("  " + pattern, line) for pattern in _LINES), line
        arrow = re.fullmatch("  " + _LINES[1], line)
        if arrow is None:
            known.add(line.split("[")[0].strip(" ("))
            continue
        assert {arrow[1], arrow[2]} <= known
        arrows += 1
    return arrows


def rendered(text: str) -> str:
    """A Mermaid text as a reader sees the text."""
    return re.sub(r"#(\d+);", lambda found: chr(int(found[1])), text)


def test_mermaid_text_is_valid_for_any_name() -> None:
    text = mermaid.render(hostile())
    assert check_mermaid(text) == 8
    assert rendered(text).count(f'["{HOSTILE}<br>thread ') == 4
    assert check_mermaid(mermaid.render(reports(scenarios.deadlock()))) == 6
    assert check_mermaid(mermaid.render(())) == 0


def test_no_line_of_a_drawing_reads_as_a_list_item() -> None:
    assert mermaid.quoted(["1. worker", "- x"]) == '"#49;. worker<br>#45; x"'


@pytest.mark.parametrize("count", [40])
def test_a_drawing_counts_the_threads_that_are_left_out(count: int) -> None:
    many = [replace(member(5, 1, 1), tid=100 + n) for n in range(count)]
    found = reports(seen(*RING, *many, circle=3))
    assert f"{count - 30} threads more behind" in dot.render(found)
    assert f"    {count} threads (t5: 100, " in "\n".join(deadlock.lines(found[0]))
    different = [replace(one, name=chr(0x100 + n)) for n, one in enumerate(many)]
    found = reports(seen(*RING, *different, circle=3))
    assert f"    and {count - 20} more" in "\n".join(deadlock.lines(found[0]))


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (
            ThreadActivity(4731, ActivityState.WAITING, duration_s=3.0),
            "now waiting for mutex fork[2]",
        ),
        (ThreadActivity(4731, ActivityState.STOPPED), "now stopped"),
        (ThreadActivity(4731, ActivityState.RUNNING, cpu=0.97), "now running (97% of a CPU)"),
        (
            ThreadActivity(4731, ActivityState.BLOCKED, "read", "read(3 -> pipe:[7])", 2.0),
            "now in read(3 ->",
        ),
        (ThreadActivity(4731, ActivityState.ENDED), ""),
        (ThreadActivity(4732, ActivityState.STOPPED), ""),  # of another thread
    ],
)
def test_the_report_says_the_activity_of_each_holder(now: ThreadActivity, said: str) -> None:
    made = scenarios.deadlock()
    locks = tuple(replace(one, holder_activity=now) if one.id == 11 else one for one in made.locks)
    (report,) = reports(replace(made, locks=locks))
    first = deadlock_json.document(report)["threads"][0]
    page = " ".join(" ".join(deadlock.lines(report)).split())
    assert (first["holder_now"] is not None) == (now.tid == first["held_by"])
    assert said in page
    assert page.count(", now ") == bool(said)


def test_nobody_is_advised_to_take_the_lock_of_the_loader_in_another_order() -> None:
    snapshot = seen(*RING, circle=3)
    locks = tuple(
        replace(lock, name="loader's lock (_rtld_global+0x988)") if lock.id == 1 else lock
        for lock in snapshot.locks
    )
    found = found_for(replace(snapshot, locks=locks))
    assert found.remedy is Remedy.RELEASE
    assert found.order == ()
    assert found.change is not None
    assert (found.change.has, found.change.wants) == (3, 1)
    assert "Release mutex g_3 before that wait." in page(replace(snapshot, locks=locks))
