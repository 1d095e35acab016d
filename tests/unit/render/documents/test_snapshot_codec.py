"""Snapshots read back from files: sound files, old files and damaged files."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack
import pytest
from msgspec.structs import replace
from support.seeds import seeds
from unit.builders import predicted, records, scenarios
from unit.builders.function_calls import function_calls
from unit.builders.self_profiles import self_profile

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.inside.model import InsideProfile, InsideStack, LockInside
from locktop.collector.extensions.whatif import json_document
from locktop.collector.extensions.whatif.model import ThroughputUnit, UnitKind, WhatIfRefusal
from locktop.collector.model import (
    CONTENTION_KINDS,
    WAITS_ALONE,
    ActivityState,
    AwaitedChild,
    ChildEvent,
    ChildWaits,
    Confidence,
    Frame,
    Kind,
    Mark,
    OrderCycle,
    OrderEdge,
    PerfCounter,
    PerfCounters,
    Snapshot,
    Switches,
    ThreadActivity,
    ThreadElsewhere,
    UnobservedWait,
    WaitStack,
)
from locktop.collector.render.documents.snapshot_codec import document, is_snapshot, parse
from locktop.collector.render.open_profile import open_profile
from locktop.collector.render.profiles import profile

#: Three files of one program that an earlier version wrote: counted and sampled, with an interval,
#: and msgpack. Beside each lies what that version read from it.
OLD = Path(__file__).parent / "old_snapshots"
#: The keys that later versions added, with the values that an old snapshot gets.
ADDED = {
    "recent_lock_waits": {},
    "recent_thread_waits": {},
    "stopped": False,
    "hang": None,
    "lock_orders_left_out": False,
    "lock_order_search_cut": False,
    "names_left": 0,
    "session_s": None,
    "inside": None,
    "diff": None,
    "whatif": None,
    **{key: [] for key in ("calls", "profiles", "threads_elsewhere", "waiting_children")},
    "awaited_child": None,
}
ADDED_TO_PROCESS: dict[str, object] = {"counted_since": ""}
ADDED_TO_THREADS: dict[str, object] = dict.fromkeys(("wait_p50_s", "wait_p99_s", "wait_histogram"))
ADDED_TO_LOCKS: dict[str, object] = {
    **ADDED_TO_THREADS,
    "hold_p50_s": None,
    "hold_p99_s": None,
    "hold_histogram": None,
    "inside": None,
    "taken_units": None,
    "holders_probable": [],
    "readers": 0,
    "wait_max_at_least": False,
}
ADDED_TO_CYCLES: dict[str, object] = {"ways": [], "ways_left_out": False}
OLD_NAMES = ("preload_deadlock_interval.json", "sampled_interval.json", "preload.msgpack")

INSIDE = LockInside(
    samples=5,
    on_cpu=4,
    share=0.01,
    stacks=(InsideStack(0x401000, 3, 4, True), InsideStack(0, 0, 1, False, "read")),
    pressure=(0.5, 0.25),
    pressure_slice_s=2.5,
)
#: Of lengths in nanoseconds.
WAITS = records.histogram(*[1000] * 98, 50_000, 2_000_000, left_out=1)
COUNTED = (
    PerfCounter("task-clock", "s", 0.5, 0.2), PerfCounter("cycles", "", None, why="no right"),
)  # fmt: skip
UNOBSERVED = (
    UnobservedWait(4, 0x7F00, "g_slots", 1.5, 9, "OpenMP lock", False, "openmp-lock"),
    UnobservedWait(5),
)


def full() -> Snapshot:
    """A snapshot with a value in every part."""
    made = scenarios.deadlock()
    now = ThreadActivity(4711, ActivityState.BLOCKED, "read", "read(7 -> pipe:[9])", 1.5, 3)
    followed = replace(
        made.threads[0],
        switches=Switches(7, 3, None),
        wait_histogram=records.histogram(500, 2000),
        now=ThreadActivity(
            made.threads[0].tid, ActivityState.BLOCKED, "poll", "poll(3 -> pipe:[9])", 0.5, 3
        ),
        counters=PerfCounters(2.5, COUNTED),
    )
    return replace(
        made,
        threads=(followed, *made.threads[1:]),
        locks=(
            replace(
                made.locks[0],
                holder_activity=now,
                wait_histogram=WAITS,
                hold_histogram=records.histogram(0, 3, 700, 10**18),
                taken_units=records.TAKEN,
            ),
            *made.locks[1:],
        ),
        sections={
            "whatif": predicted.FOUND,
            "profiles": (self_profile({4: 3}),),
            "calls": function_calls(),
            "inside": InsideProfile(5.0, 0.01, 9, 4, 1, 2, {made.locks[0].id: INSIDE}),
        },
        lock_order_unproven=1,
        lock_order=(
            OrderCycle((1, 2), (OrderEdge(1, 2, 4711, 3),)),
            OrderCycle(
                (1, 2),
                (OrderEdge(1, 2, 4711, 3, 0x5500, True, True),),
                Confidence.LOW,
                "not known",
                ("pool[].mu", "g_lock"),
            ),
        ),
        lock_order_suppressed=2,
        marks=(Mark(4711, 1.5, "reload"),),
        notes=("one", "two"),
        stacks=records.STACKS | {9: (Frame(0x1, "f", "a.c", 2, "x", 0x2, inlined=True),)},
        unobserved_waiters=(4, 5),
        unobserved_waits=UNOBSERVED,
        waiting_children=(ChildWaits(71, "prog", 3, 60.5),),
        awaited_child=AwaitedChild("sh", 71, "prog", 2, ChildEvent.OUTPUT),
        threads_elsewhere=(ThreadElsewhere(70, 69, "convert", "worker", True, True),),
        lost_events=3,
        locks_left_out=2,
        names_left=214,
        ended=True,
        complete=False,
        level="counting",
    )


def test_a_histogram_has_its_lower_bounds() -> None:
    lock, *_, free = document(full())["locks"]
    histogram = lock["wait_histogram"]
    assert histogram["counts"] == [98, 1, 1]
    assert histogram["from_s"] == [896e-9, 49152e-9, 1835008e-9]
    assert (histogram["hz"], histogram["left_out"]) == (1e9, 1)
    assert lock["wait_p50_s"] == pytest.approx(957.9e-9, abs=1e-10)
    assert lock["wait_p99_s"] is None, "the one that was left out may be shorter or longer"
    assert (free["wait_p50_s"], free["wait_histogram"]) == (None, None)


def test_a_lock_without_waits_has_the_percentiles_of_its_holds_alone() -> None:
    made = full()
    lock = replace(made.locks[0], contended=0, waiters=())
    found = document(replace(made, locks=(lock, *made.locks[1:])))["locks"][0]
    assert found["hold_histogram"] is None
    assert found["hold_p50_s"] > 0


@pytest.mark.parametrize("make", [full, scenarios.normal, scenarios.many, scenarios.empty])
def test_a_saved_snapshot_is_read_back(make: Callable[[], Snapshot]) -> None:
    whole = document(records.classified(make)())
    for data in (json.dumps(whole, indent=1).encode(), bytes(msgpack.packb(whole))):
        assert is_snapshot(data)
        assert document(parse(data, "x")) == whole


def test_predictions_are_the_object_of_their_own_command() -> None:
    snapshot = replace(scenarios.normal(), sections={"whatif": predicted.FOUND})
    whole = document(snapshot)["whatif"]
    assert whole == json.loads(json.dumps(json_document.document(predicted.FOUND, snapshot)))
    assert whole["taken_at"] == predicted.FOUND.taken_at


@pytest.mark.parametrize(
    "unit",
    [
        ThroughputUnit(kind=UnitKind.ROUNDS),
        ThroughputUnit(kind=UnitKind.LOCK, lock=predicted.LOCK.id),
        ThroughputUnit(kind=UnitKind.MARKS, mark="commit"),
    ],
)
def test_the_unit_of_predictions_is_read_back(unit: ThroughputUnit) -> None:
    found = replace(predicted.FOUND, unit=unit)
    saved = document(replace(scenarios.normal(), sections={"whatif": found}))
    assert parse(json.dumps(saved).encode(), "x").sections["whatif"] == found
    # Older documents have neither a kind nor a mark.
    del saved["whatif"]["throughput"]["kind"], saved["whatif"]["throughput"]["mark"]
    older = parse(json.dumps(saved).encode(), "x").sections["whatif"]
    assert older is not None
    of_lock = unit if unit.lock else ThroughputUnit(kind=UnitKind.ROUNDS)
    assert older.unit == of_lock


def test_predictions_are_read_back_with_the_names_of_locks_that_ended() -> None:
    refused = replace(
        predicted.FOUND, refusal=WhatIfRefusal.PHASES, predictions=(), recording_cost=0.97
    )
    for found in (predicted.FOUND, refused):
        saved = document(replace(scenarios.normal(), locks=(), sections={"whatif": found}))
        assert parse(json.dumps(saved).encode(), "x").sections["whatif"] == found


#: None as well where there was no wait or hold.
_PERCENTILES = ("wait_p50_s", "wait_p99_s", "hold_p50_s", "hold_p99_s")
_NOT_SAMPLED = ("acquisitions", "trylock_failed", "signals", "unheard", "hold_s", "hold_max_s")


@pytest.mark.parametrize("make", [scenarios.normal, scenarios.fleet])
def test_a_figure_that_was_not_measured_is_null_and_read_as_none(
    make: Callable[[], Snapshot],
) -> None:
    made = records.sampled(records.classified(make)())
    whole = document(made, made)
    for lock in (*whole["locks"], *whole["lock_classes"]):
        assert {name: lock[name] for name in _NOT_SAMPLED} == dict.fromkeys(_NOT_SAMPLED)
        assert [key for key, value in lock["interval"].items() if value is None] == [
            "acquisitions", "trylock_failed", "signals", "unheard", "hold_s", *_PERCENTILES,
        ]  # fmt: skip
        assert isinstance(lock["contended"], int)
        assert lock["hold_timed"] == 0
    for thread in whole["threads"]:
        assert (thread["acquisitions"], thread["contended"]) == (None, None)
        assert thread["interval"]["contended"] is None
    read = parse(json.dumps(whole).encode(), "x")
    for found in read.locks:
        assert [getattr(found, name) for name in _NOT_SAMPLED] == [None] * len(_NOT_SAMPLED)
        assert found.rates == WAITS_ALONE
    assert {(one.acquisitions, one.contended) for one in read.threads} == {(None, None)}
    alone = document(made)
    assert document(parse(json.dumps(alone).encode(), "x")) == alone


def test_a_measured_figure_is_never_null() -> None:
    whole = document(scenarios.fleet(tick=1), scenarios.fleet())
    for lock in (*whole["locks"], *whole["lock_classes"]):
        added = {key: part for key, part in lock["interval"].items() if key not in _PERCENTILES}
        assert None not in [*(lock[name] for name in _NOT_SAMPLED), *added.values()]
    for thread in whole["threads"]:
        assert None not in (thread["acquisitions"], thread["contended"])


def test_a_figure_that_a_file_lacks_was_not_measured() -> None:
    read = parse(changed("locks.0.unheard", KeyError), "x").locks[0]
    assert (read.unheard, read.signals) == (None, 0)
    read = parse(changed("locks.0.unheard", 0), "x").locks[0]
    assert (read.unheard, read.signals) == (0, 0)


def test_an_interval_beside_the_figures_is_accepted() -> None:
    before = scenarios.normal()
    whole = document(before, before)
    read = parse(json.dumps(whole).encode(), "x")
    assert [lock.wait_s for lock in read.locks] == [lock.wait_s for lock in before.locks]


def test_keys_of_later_versions_may_be_missing() -> None:
    whole = {
        "format": "locktop.snapshot", "version": 1, "taken_at": "2026-11-21T10:00:00.123Z",
        "host": "db1", "source": "preload", "duration_s": 5.0, "lost_events": 0,
        "process": {"pid": 1, "comm": "x", "cmdline": ["x"], "exe": "/x", "started_at": "..."},
        "threads": [
            {"tid": 2, "name": "w", "alive": True, "state": "idle", "waiting_for": None,
             "holds": [4], "wait_s": {"mutex": 0.8}, "cpu_s": 0.2, "acquisitions": 1,
             "contended": 7, "something": "new"}
        ],
        "locks": [
            {"id": 7, "address": "0x55", "kind": "mutex", "name": "m", "acquisitions": 100,
             "contended": 7, "trylock_failed": 0, "wait_s": 0.8, "wait_max_s": 0.1, "hold_s": 1,
             "hold_timed": 60, "hold_max_s": 0.05, "holders": [3], "waiters": [2],
             "wait_stacks": [{"stack": 5, "count": 7, "wait_s": 0.8}], "blame": []}
        ],
        "deadlocks": [], "lock_order": [],
        "stacks": {"5": [{"function": "put", "file": "c.c", "line": 4, "module": "x",
                          "address": "0x55"}]},
    }  # fmt: skip
    read = parse(json.dumps(whole).encode(), "x")
    assert read.locks[0].wait_stacks == (WaitStack(5, 7, 0.8),)
    assert read.locks[0].kind is Kind.MUTEX
    assert read.stacks[5] == (Frame(0x55, "put", "c.c", 4, "x", 0),)


def test_unknown_parts_of_time_are_left_out() -> None:
    read = parse(changed("threads.0.time.unknown", ["disk", "_make", "other things"]), "x")
    assert read.threads[0].time is not None
    assert read.threads[0].time.unknown == ("disk",)


def test_texts_of_a_file_are_sanitized() -> None:
    data = json.dumps(document(scenarios.hostile())).encode()
    said = repr(parse(data, "x"))
    assert "\\x1b" not in said
    assert "\\u202e" not in said


def changed(path: str, value: object) -> bytes:
    """A saved snapshot with one wrong field."""
    whole: Any = json.loads(json.dumps(document(full())))
    at = whole
    *way, last = [int(name) if name == "0" else name for name in path.split(".")]
    for name in way:
        at = at[name]
    if value is KeyError:
        del at[last]
    else:
        at[last] = value
    return json.dumps(whole).encode()


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("format", "other", "Invalid enum value 'other' - at format"),
        ("version", 2, "version is 2; this locktop knows version 1"),
        ("process", KeyError, "Object missing required field process"),
        ("process.pid", "1", "Expected int, got str - at process.pid"),
        ("threads", {}, "Expected array, got object - at threads"),
        ("threads.0.tid", -1, "Expected int >= 0 - at threads[0].tid"),
        ("threads.0.state", "dancing", "Invalid enum value 'dancing' - at threads[0].state"),
        (
            "threads.0.wait_s",
            {"glue": 1},
            "enum value 'glue' - at key in threads[0].wait_s",
        ),
        ("threads.0.time", 1, "Expected object | null, got int - at threads[0].time"),
        ("threads.0.time.cpu", 1.5, "Expected a share from 0 to 1 in cpu - at threads[0].time"),
        (
            "threads.0.time.unknown",
            ["disk", 5],
            "got int - at threads[0].time.unknown[1]",
        ),
        (
            "threads.0.switches.voluntary",
            -1,
            "int >= 0 - at threads[0].switches.voluntary",
        ),
        (
            "threads.0.counters.counters.0.name",
            KeyError,
            "field name - at threads[0].counters.counters[0]",
        ),
        ("locks.0", 5, "Expected object, got int - at locks[0]"),
        ("locks.0.kind", None, "Object missing required field kind - at locks[0]"),
        ("locks.0.wait_s", "much", "Expected float, got str - at locks[0].wait_s"),
        ("locks.0.wait_s", True, "Expected float, got bool - at locks[0].wait_s"),
        ("locks.0.wait_s", 1e300, "Expected float, got NumberOutOfRange - at locks[0].wait_s"),
        ("locks.0.wait_s", 10**400, "Expected float, got NumberOutOfRange - at locks[0].wait_s"),
        (
            "locks.0.acquisitions",
            1 << 64,
            "got NumberOutOfRange - at locks[0].acquisitions",
        ),
        (
            "locks.0.address",
            "street",
            "hexadecimal text - at locks[0].address",
        ),
        ("locks.0.name", ["x"], "Expected str, got array - at locks[0].name"),
        ("locks.0.wait_histogram.counts.0", -1, "at locks[0].wait_histogram.counts[0]"),
        ("locks.0.wait_histogram.from_s.0", 1e9, "wrong buckets - at locks[0].wait_histogram"),
        ("locks.0.wait_histogram.hz", 1e13, "impossible clock - at locks[0].wait_histogram"),
        ("threads.0.wait_histogram.counts", [1], "wrong counts - at threads[0].wait_histogram"),
        (
            "locks.0.wait_stacks.0.stack",
            KeyError,
            "field stack - at locks[0].wait_stacks[0]",
        ),
        ("locks.0.holders", [None], "Expected int, got null - at locks[0].holders[0]"),
        ("stacks", [], "Expected object, got array - at stacks"),
        ("stacks.one", [], "Expected numbers of stacks as keys of stacks"),
        ("stacks.1", [1], "Expected object, got int - at stacks[...][0]"),
        ("stacks.1", [{}] * 5000, "Expected array of length <= 4096 - at stacks[...]"),
        ("notes", [1], "Expected str, got int - at notes[0]"),
        ("ended", 1, "Expected bool, got int - at ended"),
        ("whatif.version", 2, "at whatif.version"),
        ("whatif.parts", 1 << 20, "Expected int <= 1024 - at whatif.parts"),
        ("whatif.throughput", KeyError, "field throughput - at whatif"),
        ("whatif.predictions.0.kind", "glue", "'glue' - at whatif.predictions[0].kind"),
        ("whatif.pressure.0.wait_shares", [0.5] * 2000, "length <= 1024 - at whatif.pressure[0]"),
    ],
)
def test_an_error_names_the_wrong_field(path: str, value: object, words: str) -> None:
    with pytest.raises(LocktopError) as raised:
        parse(changed(path, value), "some.json")
    assert str(raised.value).startswith("some.json is no snapshot of locktop: ")
    assert words in str(raised.value)


@pytest.mark.parametrize(
    "data",
    [
        b"{",
        b"{}",
        b'{"format": "locktop.snapshot", "version": NaN}',
        b'{"a":' * 100_000,
        b'{"a": ' + b"9" * 10_000 + b"}",
        b"\xff\xfe{",
        b"\xdf\xff\xff\xff\xff",
        b"\xde\x00\x01\x80\x00",
        b"\xde" + bytes(100),
    ],
)
def test_an_unreadable_file_is_a_one_line_error(data: bytes) -> None:
    with pytest.raises(LocktopError) as raised:
        parse(data, "x")
    assert "\n" not in str(raised.value)


def test_damaged_snapshots_are_read_or_refused() -> None:
    """Changed or truncated bytes give a snapshot or an error line, and nothing else."""
    whole = document(full())
    for seed in seeds(40):
        chance = random.Random(seed)
        data = bytearray(bytes(msgpack.packb(whole)) if seed % 2 else json.dumps(whole).encode())
        for _ in range(chance.randint(1, 8)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        del data[chance.randrange(len(data) // 2, len(data) * 2) :]
        try:
            read = parse(bytes(data), "x")
        except LocktopError:
            continue
        profile.SnapshotProfile(read).tree("wait")


def test_the_content_of_a_file_decides_its_type(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text(json.dumps(document(full())))
    two.write_text("Type,Function Name,Inclusive Samples,Exclusive Samples\nRoot,main,2,1\n")
    assert not open_profile(str(one)).estimate
    report = open_profile(str(two))
    assert report.estimate
    assert report.tree("samples").value == 2.0


def unheld_wait_s(lock: dict[str, Any]) -> float | None:
    """Return the key that locks of old files do not have."""
    unheld = [one["wait_s"] for one in lock["blame"] if not one["tid"] and not int(one["site"], 16)]
    is_charged = lock["acquisitions"] is not None and lock["kind"] in CONTENTION_KINDS
    return sum(unheld) if is_charged and (lock["blame"] or not lock["wait_s"]) else None


@pytest.mark.parametrize("name", OLD_NAMES)
def test_an_old_snapshot_is_read_with_its_former_values(name: str) -> None:
    expected = json.loads((OLD / f"{name}.expected.json").read_bytes())
    expected["process"] |= ADDED_TO_PROCESS
    expected["lock_order"] = [cycle | ADDED_TO_CYCLES for cycle in expected["lock_order"]]
    for lock in expected["locks"]:
        lock["unheld_wait_s"] = unheld_wait_s(lock)
        lock |= ADDED_TO_LOCKS
    for thread in expected["threads"]:
        thread |= ADDED_TO_THREADS
        for held in thread["held"]:
            held["at_least"] = False
    of_locks = {lock["id"]: lock["unheld_wait_s"] for lock in expected["locks"]}
    for found in expected["lock_classes"]:
        found |= {**dict.fromkeys(_PERCENTILES), "wait_max_at_least": False}
        found["unheld_wait_s"] = pytest.approx(sum(of_locks[number] for number in found["locks"]))
    found = document(parse((OLD / name).read_bytes(), name))
    roots = found.pop("blocking")
    contended = [wait for one in expected["threads"] if (wait := one["waiting_for"])]
    assert sum(root["threads"] for root in roots) == sum(not wait["idle"] for wait in contended)
    assert found == expected | ADDED


@pytest.mark.parametrize("name", OLD_NAMES)
def test_the_figures_of_an_old_file_are_read(name: str) -> None:
    data = (OLD / name).read_bytes()
    saved = json.loads(data) if name.endswith("json") else msgpack.unpackb(data)
    read = parse(data, name)
    assert [lock.wait_s for lock in read.locks] == [lock["wait_s"] for lock in saved["locks"]]
    assert {thread.tid: thread.name for thread in read.threads} == {
        thread["tid"]: thread["name"] for thread in saved["threads"]
    }
    assert len(read.deadlocks) == len(saved["deadlocks"])
    assert {str(number): len(frames) for number, frames in read.stacks.items()} == {
        number: len(frames) for number, frames in saved["stacks"].items()
    }
