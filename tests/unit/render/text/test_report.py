"""Hostile text is sanitized; snapshots become JSON and plain text."""

from __future__ import annotations

import json
import unicodedata

import msgpack
import pytest
from msgspec.structs import replace
from unit.builders import python_waits, records, scenarios
from unit.builders.records import PID

from locktop.collector.analysis.idle.classifier import Classifier
from locktop.collector.model import (
    BlockReason,
    Deadlock,
    DeadlockEdge,
    Frame,
    Held,
    Kind,
    Lock,
    Process,
    Snapshot,
    Thread,
    ThreadState,
    UnobservedWait,
    Wait,
    WaitStack,
)
from locktop.collector.render.documents import snapshot_codec
from locktop.collector.render.text import report
from locktop.collector.sanitize import clean


@pytest.mark.parametrize(
    ("raw", "harmless"),
    [
        ("worker-1", "worker-1"),
        (b"caf\xc3\xa9 \xff", "café �"),
        ("\x1b[31mred\x07", "?[31mred?"),
        ("a\nb\tc\r\u2028d", "a b c  d"),
        ("\u202eevil\u200b", "?evil?"),
        ("\x9b31m", "?31m"),
        ("\ud800", "?"),
    ],
)
def test_clean_replaces_harmful_characters(raw: str | bytes, harmless: str) -> None:
    assert clean(raw) == harmless


def test_clean_shortens_in_the_middle() -> None:
    assert clean("a" * 10 + "b" * 10, 7) == "aaa…bbb"
    assert [len(clean("x" * 1000, n)) for n in (0, 1, 2, 50)] == [0, 1, 2, 50]


def test_clean_leaves_no_harmful_character() -> None:
    for number in range(0x11000):
        for character in clean(chr(number)):
            assert unicodedata.category(character)[0] != "C"
            assert character not in "\u2028\u2029"


classified = Classifier().classify


def snapshot(contended: int = 7, wait_s: float = 0.8, duration_s: float = 10.0) -> Snapshot:
    waiter = Thread(
        tid=PID + 1, name="worker", alive=True, state=ThreadState.WAITING,
        waiting_for=Wait(7, Kind.MUTEX, 1.2, (PID,), 5, 0x99, 4), holds=(),
        wait_s={Kind.MUTEX: wait_s, Kind.COND: 3.1}, cpu_s=0.2, acquisitions=100,
        contended=contended,
    )  # fmt: skip
    holder = Thread(
        tid=PID, name="main", alive=True, state=ThreadState.RUNNING, waiting_for=None,
        holds=(Held(7, 0x88, None),), wait_s={}, cpu_s=0.1, acquisitions=1, contended=0,
    )  # fmt: skip
    lock = Lock(
        id=7, address=0x55AA, kind=Kind.MUTEX, name="g_cache_lock", acquisitions=100,
        contended=contended, trylock_failed=0, wait_s=wait_s, wait_max_s=0.1, hold_s=0.4,
        hold_timed=60, hold_max_s=0.05, holders=(PID,), waiters=(PID + 1,),
        wait_stacks=(WaitStack(5, contended, wait_s),),
    )  # fmt: skip
    return Snapshot(
        taken_at="2026-11-21T10:00:00.123Z", host="db1", source="preload", duration_s=duration_s,
        interval_s=1.0,
        process=Process(PID, "x", ("x", "-v"), "/usr/bin/x", "2026-11-21T09:00:00Z"),
        threads=(holder, waiter), locks=(lock,),
        stacks={5: (Frame(0x55BB, "put", "cache.c", 42, "x", 0xBB),
                    Frame(0x55CC, "", None, None, "libz.so.1", 0xCC))},
        sites={0x88: Frame(0x88, "take", "cache.c", 7, "x", 0x88)},
    )  # fmt: skip


def test_the_document_has_the_keys_that_users_rely_on() -> None:
    document = snapshot_codec.document(classified(snapshot()))
    assert {
        "format", "version", "taken_at", "host", "source", "duration_s", "lost_events", "process",
        "threads", "locks", "deadlocks", "lock_order", "stacks",
    } <= document.keys()  # fmt: skip
    assert (document["format"], document["version"]) == ("locktop.snapshot", 1)
    assert {"pid", "comm", "cmdline", "exe", "started_at"} <= document["process"].keys()
    assert document["threads"][1]["waiting_for"] | {"site": 0, "timed": 0, "shared": 0} == {
        "lock": 7, "kind": "mutex", "since_s": 1.2, "at_least": False, "holders": [PID], "stack": 5,
        "site": 0, "timed": 0, "shared": 0, "idle": False, "why": "mutex",
    }  # fmt: skip
    assert document["complete"] is True
    assert document["threads"][0]["waiting_for"] is None
    assert document["threads"][0]["holds"] == [7]
    assert document["threads"][1]["wait_s"] == {"mutex": 0.8, "cond": 3.1}
    assert {
        "tid", "name", "alive", "state", "waiting_for", "holds", "wait_s", "cpu_s", "acquisitions",
        "contended",
    } <= document["threads"][0].keys()  # fmt: skip
    assert {
        "id", "address", "kind", "name", "acquisitions", "contended", "trylock_failed", "wait_s",
        "wait_max_s", "hold_s", "hold_timed", "hold_max_s", "holders", "waiters", "wait_stacks",
        "blame", "signals",
    } <= document["locks"][0].keys()  # fmt: skip
    assert document["locks"][0]["address"] == "0x55aa"
    assert document["locks"][0]["wait_stacks"] == [
        {"stack": 5, "count": 7, "wait_s": 0.8, "idle": False}
    ]
    frame = document["stacks"]["5"][0]
    assert (frame["function"], frame["file"], frame["line"]) == ("put", "cache.c", 42)
    assert (frame["module"], frame["address"]) == ("x", "0x55bb")


def test_the_document_survives_json_and_msgpack() -> None:
    document = snapshot_codec.document(snapshot(), snapshot(duration_s=5.0))
    assert json.loads(json.dumps(document)) == document
    assert msgpack.unpackb(msgpack.packb(document)) == document


def test_an_interval_has_the_differences_of_two_scans() -> None:
    document = snapshot_codec.document(snapshot(9, 1.0), snapshot(4, 0.25, 5.0))
    assert document["duration_s"] == 5.0
    interval = document["locks"][0]["interval"]
    assert (interval["contended"], interval["wait_s"]) == (5, 0.75)
    assert document["locks"][0]["wait_stacks"][0]["interval"] == {"count": 5, "wait_s": 0.75}
    assert document["threads"][1]["interval"]["wait_s"] == {"mutex": 0.75, "cond": 0.0}
    assert "interval" not in snapshot_codec.document(snapshot())["locks"][0]


SIGNAL_TABLE = "SEMAPHORES AND CONDITIONS WAITED FOR NOW, and how often this process signalled them"


def waited_for(*waiters: int, signals: int, name: str = "g_ready", id: int = 8) -> Lock:
    return replace(
        snapshot().locks[0], id=id, kind=Kind.COND, name=name, waiters=waiters, signals=signals
    )


def test_an_interval_counts_signals() -> None:
    seen, before = snapshot(), snapshot(duration_s=5.0)
    seen = replace(seen, locks=(waited_for(signals=12),))
    before = replace(before, locks=(waited_for(signals=9),))
    (lock,) = snapshot_codec.document(seen, before)["locks"]
    assert (lock["signals"], lock["interval"]["signals"]) == (12, 3)


def test_a_new_lock_counts_whole_in_an_interval() -> None:
    before = replace(snapshot(), threads=(), locks=())
    document = snapshot_codec.document(snapshot(), before)
    assert document["locks"][0]["interval"]["contended"] == 7
    assert document["threads"][1]["interval"]["acquisitions"] == 100


def test_the_text_report_names_waiter_lock_and_holder() -> None:
    page = report.render(snapshot(), width=120)
    assert "g_cache_lock" in page
    assert f"thread {PID + 1} (worker) for 1.20 s: mutex g_cache_lock" in page
    assert f"held by thread {PID} (main), taken at take cache.c:7" in page
    assert "put at cache.c:42" in page
    assert "libz.so.1+0xcc" in page


def test_the_text_report_says_the_wait_of_a_holder() -> None:
    """The wait of the holder counts even for another object than a lock."""
    shot = snapshot()
    slots = replace(shot.locks[0], id=8, kind=Kind.SEM, name="g_slots", holders=())
    holder = replace(shot.threads[0], waiting_for=Wait(8, Kind.SEM, 1.5, (), 6, 0x99, 4))
    stacks = {**shot.stacks, 6: (Frame(0x55DD, "get_slot", "slots.c", 9, "x", 0xDD),)}
    page = report.render(
        replace(shot, threads=(holder, shot.threads[1]), locks=(*shot.locks, slots), stacks=stacks),
        width=200,
    )
    assert "taken at take cache.c:7, itself waiting for sem g_slots for 1.50 s" in page
    waits = page[page.index("THREADS WAITING") :]
    assert f"thread {PID} (main) for 1.50 s: sem g_slots\n      get_slot at slots.c:9\n" in waits


def test_an_inlined_frame_is_marked() -> None:
    shot = snapshot()
    inner = Frame(0x55BB, "find", "cache.c", 9, "x", 0xBB, inlined=True)
    shot = replace(shot, stacks={5: (inner, *shot.stacks[5])})
    assert "      find at cache.c:9 (inlined)\n      put at cache.c:42\n" in report.render(shot)
    frames = snapshot_codec.document(shot)["stacks"]["5"]
    assert [frame["inlined"] for frame in frames] == [True, False, False]


def test_deadlocks_come_before_the_locks() -> None:
    edges = (DeadlockEdge(PID, 7, PID + 1, 5, 0x88), DeadlockEdge(PID + 1, 7, PID, 5, 0x88))
    page = report.render(replace(snapshot(), deadlocks=(Deadlock(True, 4.0, edges),)))
    assert page.index("DEADLOCK: 2 threads wait for each other, for 4.00 s") < page.index("LOCKS")
    assert "take at cache.c:7" in page


def test_the_text_report_has_call_sites_of_past_waits() -> None:
    calm = replace(snapshot(), threads=snapshot().threads[:1])
    page = report.render(calm)
    assert "THREADS WAITING" not in page
    title = "  mutex g_cache_lock, 100 % of its wait: 800 ms in 7 waits\n"
    assert f"WHERE THE WAITS WERE\n{title}      put at cache.c:42\n" in page
    before = snapshot(contended=5, wait_s=0.5, duration_s=5.0)
    assert "100 % of its wait: 300 ms in 2 waits" in report.render(calm, before)
    # Ongoing waits are in the section of the threads.
    unchanged = replace(calm, duration_s=12.0)
    assert "WHERE" not in report.render(unchanged, calm)


def test_the_text_report_counts_with_nouns() -> None:
    assert "\n2 threads (1 running, 1 waiting), 1 lock\n" in report.render(snapshot())
    one = replace(snapshot(), threads=snapshot().threads[:1], locks=(), lost_events=3)
    said = "\n1 thread (1 running), 0 locks, 3 records overwritten (counted all the same)\n"
    assert said in report.render(one)


def test_no_line_exceeds_the_width_and_no_word_is_lost() -> None:
    wide, narrow = report.render(snapshot(), width=1000), report.render(snapshot(), width=40)
    assert max(map(len, narrow.splitlines())) <= 40
    assert wide.split() == narrow.split()
    assert all(line.isprintable() for line in narrow.splitlines())


def test_a_possible_deadlock_names_its_doubt() -> None:
    edges = (DeadlockEdge(PID, 7, PID, 5, 0x88),)
    seen = replace(snapshot(), deadlocks=(Deadlock(False, 4.0, edges, "who knows"),))
    assert "POSSIBLE DEADLOCK: 1 thread waits" in report.render(seen)
    assert "not certain: who knows" in report.render(seen)
    (found,) = snapshot_codec.document(seen)["deadlocks"]
    assert (found["certain"], found["doubt"]) == (False, "who knows")


def test_a_reader_behind_a_waiting_writer_names_no_holder() -> None:
    edges = (
        DeadlockEdge(PID, 7, PID + 1, 5, 0, BlockReason.BEHIND),
        DeadlockEdge(PID + 1, 7, PID, 5, 0x88),
    )
    page = report.render(replace(snapshot(), deadlocks=(Deadlock(True, 4.0, edges),)), width=200)
    assert f"    behind worker ({PID + 1}), which waits to write" in page
    assert f"    held by main ({PID})" in page


def test_the_text_report_without_waits_claims_only_observed_facts() -> None:
    seen = snapshot()
    calm = replace(seen, threads=seen.threads[:1], locks=())
    page = report.render(calm)
    assert "no thread waited for a mutex or rwlock" in page
    assert "nothing was waited for" not in page


def test_the_text_report_has_waits_of_every_kind() -> None:
    seen = snapshot()
    futex = replace(seen.locks[0], id=8, kind=Kind.FUTEX, wait_s=2.5)
    other = replace(futex, id=9, wait_s=0.5)
    page = report.render(classified(replace(seen, threads=(), locks=(*seen.locks, futex, other))))
    assert "g_cache_lock" in page
    assert "for work: futex 3.00 s" in page
    page = report.render(classified(replace(seen, threads=(), locks=(futex,))))
    assert "no thread waited for a mutex or rwlock" in page
    assert "for work: futex 2.50 s" in page


def test_the_text_report_counts_signals_of_a_semaphore() -> None:
    assert "SEMAPHORES AND CONDITIONS" not in report.render(snapshot())
    some = waited_for(PID + 1, signals=31)
    more = waited_for(PID + 1, PID, signals=0, name="g_never", id=9)
    left = waited_for(signals=5, name="g_left", id=10)
    seen = snapshot()
    seen = classified(replace(seen, locks=(*seen.locks, some, more, left)))
    lines = report.render(seen).splitlines()
    at = lines.index(SIGNAL_TABLE)
    table = [line.split() for line in lines[at + 1 : at + 4]]
    assert table == [
        ["waiting", "longest", "signals", "kind", "lock"],
        ["2", "1.20", "s", "0", "cond", "g_never"],
        ["1", "1.20", "s", "31", "cond", "g_ready"],
    ]
    assert "g_left" not in "".join(lines[at:])


def test_the_interval_report_counts_signals_of_the_interval_and_in_all() -> None:
    seen, before = snapshot(), snapshot(duration_s=5.0)
    seen = replace(seen, locks=(waited_for(PID + 1, signals=31),))
    before = replace(before, locks=(waited_for(signals=31),))
    lines = report.render(seen, before).splitlines()
    at = lines.index(SIGNAL_TABLE)
    assert lines[at + 1].split() == ["waiting", "longest", "signals", "since", "start", "kind",
                                     "lock"]  # fmt: skip
    assert lines[at + 2].split() == ["1", "1.20", "s", "0", "31", "cond", "g_ready"]


def test_the_text_report_names_unobserved_waiters() -> None:
    page = report.render(replace(snapshot(), unobserved_waiters=(PID,)))
    assert f"thread {PID} (main) waits for something unknown" in page
    assert "unobserved" not in report.render(snapshot())


def test_the_text_report_names_object_and_call_site_of_unobserved_waits() -> None:
    """Waits at one call site share a line; idle waits are last."""
    calm = snapshot()
    stack = next(iter(calm.stacks))
    function = calm.stacks[stack][0].function
    waits = (
        UnobservedWait(8, 0x7F10, "", 9.0, 0, "OpenMP barrier", True, "openmp-barrier"),
        UnobservedWait(9, 0x7F00, "", 1.5, stack, "OpenMP lock", False, "openmp-lock"),
        UnobservedWait(10, 0x7F00, "", 2.5, stack, "OpenMP lock", False, "openmp-lock"),
        UnobservedWait(11),
    )
    seen = replace(calm, unobserved_waiters=tuple(range(8, 13)), unobserved_waits=waits)
    named = replace(waits[1], name="g_slots")
    page = report.render(replace(seen, unobserved_waits=(named,)), width=200)
    assert "for at least 1.50 s: g_slots (OpenMP lock) (counts as a wait for a lock" in page
    lines = report.render(seen, width=200).splitlines()
    at = lines.index("THREADS IN UNOBSERVED WAITS, longest first")
    assert lines[at + 1] == (
        "  2 threads (9, 10) for at least 2.50 s: OpenMP lock, futex 0x7f00 (counts as a wait"
        " for a lock, idle rule openmp-lock)"
    )
    assert lines[at + 2].startswith(f"      {function}")
    rest = [line for line in lines[at + 3 :] if line.startswith("  ") and line[2] != " "][:3]
    assert rest == [
        "  thread 11: an unknown object (not known whether for work)",
        "  thread 8 for at least 9.00 s: OpenMP barrier, futex 0x7f10 (counts as a wait"
        " for work, idle rule openmp-barrier)",
        "  and 1 more",
    ]


def test_the_text_report_says_the_type_of_a_named_futex() -> None:
    calm = snapshot()
    (first, *rest) = calm.locks
    named = replace(first, kind=Kind.FUTEX, type="Rust Once")
    assert f"{first.name} (Rust Once)" in report.render(replace(calm, locks=(named, *rest)))


def test_the_text_report_has_the_figures_of_an_interval() -> None:
    page = report.render(snapshot(9, 1.0), snapshot(4, 0.25, 5.0))
    assert "in this time" in page
    assert "750 ms" in page
    assert "counted over 5.00 s" in page
    assert "max since start" in page
    assert "max wait" not in page


def test_the_report_of_one_scan_says_since_when_it_counts() -> None:
    page = report.render(snapshot())
    assert "counting for 10.0 s" in page
    assert "max wait" in page


def test_the_text_report_says_how_long_a_lock_is_held() -> None:
    seen = snapshot()
    holder = replace(seen.threads[0], holds=(Held(7, 0x88, 65.0),))
    page = report.render(replace(seen, threads=(holder, seen.threads[1])), width=120)
    assert f"held by thread {PID} (main) for 65.0 s, taken at take cache.c:7" in page


def test_an_ongoing_first_wait_counts_as_a_wait() -> None:
    table = report.render(snapshot(0)).split("LOCKS, most wait first")[1]
    row = next(line for line in table.splitlines() if "g_cache_lock" in line)
    assert row.split()[2:4] == ["1", "waiting"]
    assert row.count("waiting") == 1


def test_the_report_of_an_ended_process_lists_its_threads() -> None:
    seen = snapshot()
    dead = tuple(replace(thread, alive=False) for thread in seen.threads)
    page = report.render(replace(seen, threads=dead, ended=True))
    assert "2 threads, " in page
    assert "THREADS WAITING AT THE END" in page


def test_a_class_of_locks_is_one_line_with_its_worst_lock() -> None:
    page = report.render(scenarios.fleet())
    table = page.split("LOCKS, most wait first")[1].split("\n\n")[0]
    rows = [line for line in table.splitlines() if "conn::mu" in line]
    assert len(rows) == 1
    figures = ["33", "min", "30", "s", "21200", "500", "ms", "212000", "424", "s", "mutex"]
    assert rows[0].split()[: len(figures)] == figures
    joined = " ".join(table.split())
    assert "conn::mu, 212 locks (53 destroyed), 2 waiting, the worst 0x55d000010a00 with" in joined
    assert "with 20.0 s, held by thread 4714 (worker-2)" in joined
    assert "cache.c: shards[].mu, 8 locks, the worst cache.c: shards[7].mu with 570 ms" in joined
    assert "mutex conn::mu, 212 locks, 50 % of its wait: 16 min 50 s in 10600 waits" in page
    joined = " ".join(page.split())
    assert (
        "2 threads (worker-#: 4712, 4713) for up to 100 ms: mutex conn::mu at 0x55d000010a00, "
        "held by thread 4714" in joined
    ), "the waiter of the class"
    assert all(len(line) <= 100 for line in page.splitlines())


def test_a_lock_has_percentiles() -> None:
    seen = snapshot()
    lengths = records.histogram(*[1000] * 98, 50_000, 2_000_000)
    lock = replace(seen.locks[0], wait_histogram=lengths)
    assert "lengths" not in report.render(seen)
    page = report.render(replace(seen, locks=(lock,)))
    (row,) = [line for line in page.splitlines() if "958 ns" in line]
    assert row.split() == [
        "958", "ns", "53.1", "us", "-", "-", "mutex", "g_cache_lock",
    ]  # fmt: skip
    assert "hold p99" in page


def test_a_class_of_locks_has_figures_of_an_interval() -> None:
    page = report.render(scenarios.fleet(tick=3), scenarios.fleet())
    row = next(line for line in page.splitlines() if "shards[].mu, 8 locks" in line)
    assert row.split()[:5] == ["0", "0", "100", "ms", "0"]
    row = next(line for line in page.splitlines() if "conn::mu, 212 locks" in line)
    assert row.split()[:6] == ["0", "2", "waiting", "500", "ms", "636"]
    assert row.endswith("conn::mu, 212 locks (53 destroyed)")


def test_conditions_of_a_class_are_one_line() -> None:
    made = tuple(
        records.lock(50 + i, "conn::ready", Kind.COND, waiters=(60 + i,), signals=2)
        for i in range(3)
    )
    idle = tuple(
        records.thread(
            60 + i, "idler", ThreadState.IDLE, waiting_for=records.wait(50 + i, Kind.COND, i + 1.0)
        )
        for i in range(3)
    )
    page = report.render(records.snapshot(idle, made))
    row = next(line for line in page.splitlines() if "conn::ready, 3 locks" in line)
    assert row.split()[:4] == ["3", "3.00", "s", "6"]


def test_the_json_has_classes_of_locks() -> None:
    found = snapshot_codec.document(scenarios.fleet(tick=3), scenarios.fleet())
    connections, shards = found["lock_classes"]
    assert (connections["name"], connections["kind"]) == ("conn::mu", "mutex")
    assert (connections["instances"], connections["destroyed"]) == (212, 53)
    assert connections["locks"] == list(range(1000, 1064)), "sorted by wait, at most 64"
    assert (connections["acquisitions"], connections["contended"]) == (212 * 1003, 21_200)
    assert (connections["holders"], connections["waiters"]) == ([4714], [4712, 4713])
    assert connections["interval"]["acquisitions"] == 212 * 3
    assert (shards["name"], shards["instances"]) == ("cache.c: shards[].mu", 8)
    names = {lock["name"]: lock.get("class") for lock in found["locks"]}
    assert names["conn::mu"] == "conn::mu"
    assert names["cache.c: shards[3].mu"] == "cache.c: shards[].mu"
    assert names["g_cache_lock"] is None


def test_waits_in_python_are_divided_with_one_note_on_the_estimate() -> None:
    page = report.render(python_waits.divided())
    assert "mutex g_orders, about 60 % of its wait: 60.0 s\n      price at price.py:3\n" in page
    assert "mutex g_orders, about 20 % of its wait: 20.0 s\n      refund at refund.py:3\n" in page
    assert page.count("an estimate from 40 waits that locktop saw while they lasted") == 1


def test_the_verdict_and_the_worst_lock_come_first() -> None:
    calm, stuck = report.render(scenarios.normal()), report.render(scenarios.deadlock())
    assert calm.startswith("no deadlock found: store 4711, 9 threads, 3 waiting for a lock\n")
    assert calm.splitlines()[1].startswith("worst lock now: reader waits for rwlock g_table_lock")
    assert stuck.startswith("deadlock: 3 threads of store 4711 wait for each other")
    over = tuple(replace(thread, waiting_for=None) for thread in scenarios.normal().threads)
    quiet = report.render(replace(scenarios.normal(), threads=over))
    assert quiet.splitlines()[1].startswith("most waited for: mutex g_cache_lock, 1 h 26 min")
