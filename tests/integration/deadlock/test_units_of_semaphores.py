"""The takers of a semaphore's units, compared with what the program itself says."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from support import tool
from support.eventually import until
from support.screen import Screen
from support.targets import Compiler, StartTarget

from locktop.collector.analysis.semaphore_ownership import taken_units
from locktop.collector.model import Snapshot
from locktop.collector.sources.attach import attach


def settled(pid: int, name: str, waiters: int) -> Snapshot:
    """Return a scan in which so many threads have waited for a second for the semaphore."""
    found: list[Snapshot] = []
    with closing(attach(pid)) as source:

        def have_waited() -> bool:
            seen = source.scan(resolve=True)
            ids = {lock.id for lock in seen.locks if lock.name == name}
            waits = [thread.waiting_for for thread in seen.threads]
            long = [one for one in waits if one is not None and one.duration_s > 1.0]
            found.append(seen)
            return sum(one.lock in ids for one in long) == waiters

        until(have_waited, f"{waiters} threads wait for {name}")
    return found[-1]


def test_threads_that_kept_a_unit_are_known_and_those_that_ended_too(
    start_target: StartTarget, need: Callable[..., Path]
) -> None:
    target = start_target("semaphore_units_kept", "leak")
    truth = target.truth()
    seen = settled(target.pid, "g_slots", 2)
    (taken,) = taken_units(seen).values()
    alive = {thread.tid for thread in seen.threads if thread.alive}
    takers = {taker.tid: taker.units for taker in taken.takers}
    assert taken.all == 3
    assert {tid: units for tid, units in takers.items() if tid in alive} == dict.fromkeys(
        truth["keepers"], 1
    )
    # The counts of a thread that ended stay with the thread, or are added to those of others.
    assert taken.ended + takers.get(truth["leaver"], 0) == 1
    text = tool.run("check", "-p", str(target.pid)).stdout
    says = (
        r"sem g_slots: all 3 units taken in borrow"
        r" \(semaphore_units_kept.c:\d+\), not given back: "
    )
    assert re.search(says + "keeper-0, keeper-1, ", joined(text))
    with Screen(need("tmux"), "-p", target.pid, width=80, height=24) as screen:
        says = "all 3 units taken in borrow"
        screen.until(lambda text: f"g_slots: {says}" in text, "the banner")
        screen.until(
            lambda text: "not given back: keeper-0, keeper-1" in joined(text), "the takers"
        )
        screen.press("4")
        screen.until(lambda text: f"{says} (semaphore_units_kept.c:" in text, "the blocking tree")
        screen.press("q")


def test_two_semaphores_without_units_are_both_named(
    start_target: StartTarget, need: Callable[..., Path]
) -> None:
    target = start_target("semaphore_units_leaked", "two")
    target.expect("ready")
    settled(target.pid, "g_slots", 6)
    settled(target.pid, "g_tokens", 4)
    done = tool.run("check", "-p", str(target.pid))
    assert done.returncode == 1
    first = done.stdout.splitlines()[0]
    names = "sem g_slots or sem g_tokens|sem g_tokens or sem g_slots"
    assert re.search(rf"^deadlock: 10 threads of \S+ \d+ wait for ({names}), for ", first)
    line = r"\(semaphore_units_leaked.c:\d+\), not given back: "
    assert re.search(rf"sem g_slots: all 3 units taken in borrow_connection {line}client", first)
    assert re.search(rf"sem g_tokens: all 3 units taken in take_token {line}caller", first)
    assert "wait for themselves" not in done.stdout
    with Screen(need("tmux"), "-p", target.pid, width=80, height=24) as screen:
        says = r"10 threads wait for (g_slots or g_tokens|g_tokens or g_slots)"
        screen.until(lambda text: bool(re.search(says, text)), "the title")
        screen.until(
            lambda text: "g_slots: all 3 units" in text and "g_tokens: all 3 units" in text, "both"
        )
        screen.press("q")


def joined(text: str) -> str:
    return " ".join(text.split())


def test_each_call_site_is_named_and_the_first_of_several(start_target: StartTarget) -> None:
    target = start_target("semaphore_units_by_function", "functions")
    leaver = target.truth()["leaver"]
    seen = settled(target.pid, "g_slots", 1)
    (lock,) = (lock for lock in seen.locks if lock.taken_units is not None)
    assert lock.taken_units is not None
    call_sites = {
        taker.tid: (taker.units, seen.sites[taker.site].function, taker.took_more)
        for taker in lock.taken_units.takers
    }
    names = {thread.tid: thread.name for thread in seen.threads}
    assert {
        names[tid] if tid != leaver else "leaver": call_site
        for tid, call_site in call_sites.items()
    } == {
        "twice": (2, "store_row", False),
        "nester": (1, "fetch_row", True),
        "leaver": (1, "fetch_row", False),
    }
    words = joined(tool.run("check", "-p", str(target.pid)).stdout)
    line = r" \(semaphore_units_by_function.c:\d+\)"
    says = (
        f"g_slots: all 4 units taken, not given back: twice x2 in store_row{line},"
        rf" nester first in fetch_row{line}, {leaver} \(ended\) in fetch_row{line}"
    )
    assert re.search(says, words), words
    document = json.loads(tool.run("snapshot", "-p", str(target.pid)).stdout)
    (taken,) = (one["taken_units"] for one in document["locks"] if one["taken_units"])
    assert (taken["all"], taken["ended"]) == (4, 0)
    assert {one["tid"]: document["sites"][one["site"]]["function"] for one in taken["takers"]} == {
        tid: function for tid, (_, function, _) in call_sites.items()
    }


def test_the_code_of_another_library_took_nothing(
    start_target: StartTarget, compiler: Compiler, tmp_path: Path
) -> None:
    paths = []
    for name in ("first", "other"):
        path = tmp_path / name / "plugin.so"  # the name of the file does not tell them apart
        path.parent.mkdir()
        flags = ("-shared", "-fPIC", f"-DTAKE={name}_take")
        shutil.copy(compiler.program("plugin_with_units", *flags), path)
        paths.append(str(path))
    target = start_target("semaphore_units_by_function", "plugin", *paths)
    truth = target.truth()
    settled(target.pid, "g_slots", 1)
    words = joined(tool.run("check", "-p", str(target.pid)).stdout)
    assert "not given back: keeper in first_take (" in words
    target.go_on()
    assert target.truth() == truth  # both at the same address
    words = joined(tool.run("check", "-p", str(target.pid)).stdout)
    assert "not given back: keeper, other in fetch_row (" in words
    assert "_take" not in words


def test_a_semaphore_that_others_post_has_no_takers(start_target: StartTarget) -> None:
    target = start_target("semaphore_units_kept", "buffer")
    target.truth()
    seen = settled(target.pid, "g_slots", 1)
    assert taken_units(seen) == {}
    assert "not given back" not in tool.run("check", "-p", str(target.pid)).stdout


def test_a_sampled_process_says_nothing_of_takers(start_unprepared: StartTarget) -> None:
    target = start_unprepared("semaphore_units_kept", "leak")
    target.truth()
    assert "not given back" not in tool.run("check", "-p", str(target.pid)).stdout
