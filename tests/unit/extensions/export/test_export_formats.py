"""No format loses a nanosecond of waiting: random pasts, whole and in parts."""

from __future__ import annotations

import json
from collections import Counter

import duckdb
import pytest
from support import exported
from support.seeds import seeds
from unit.builders import records
from unit.builders.time_lines import FixedPast, at, some_waits

from locktop.collector.extensions.export.export_formats import EXPORT_FORMATS
from locktop.collector.extensions.export.export_input import ExportInput
from locktop.collector.extensions.export.trace_parts import parts
from locktop.collector.model import Frame, Kind, Snapshot, ThreadState

_RECORDINGS = 48


def _snapshot() -> Snapshot:
    frames = (
        Frame(0x401100, "take", "cache.c", 42, "svc", 0x1100, directory="/src"),
        Frame(0x401200, "main", "main.c", 7, "svc", 0x1200, directory="/src"),
    )
    return records.snapshot(
        threads=tuple(
            records.thread(tid, f"worker-{tid}", ThreadState.RUNNING) for tid in range(1, 6)
        ),
        locks=tuple(records.lock(id_, f"lock {id_} (a)") for id_ in range(1, 4)),
        stacks={1: frames},
    )


def _past(seed: int) -> FixedPast:
    snapshot = _snapshot()
    waits = [wait.record for wait in some_waits(seed, count=40)]
    return FixedPast({at(100.0 * number): snapshot for number in range(11)}, waits)


def _given(past: FixedPast, max_records: int = 1000) -> ExportInput:
    read = list(parts(past, at(0), at(1000), with_earlier=True, max_records=max_records))
    return ExportInput(_snapshot(), lambda: iter(read), is_recorded=True)


def _waited_ns(past: FixedPast) -> int:
    return sum(
        record.wait_ns
        for record in past.found
        if record.began_ns < at(1000) and record.got_ns >= at(0) and record.kind is Kind.MUTEX
    )


def _render(name: str, given: ExportInput) -> bytes:
    return EXPORT_FORMATS[name].render(given)


@pytest.mark.parametrize("max_records", [1000, 12], ids=["whole", "in parts"])
def test_each_format_has_every_nanosecond(max_records: int) -> None:
    for seed in seeds(_RECORDINGS):
        past = _past(seed)
        given = _given(past, max_records)
        assert (len(list(given.parts())) > 1) == (max_records < 1000)
        waited_ns = _waited_ns(past)
        rows = exported.csv_rows(_render("csv", given))
        assert sum(int(row["wait_ns"]) for row in rows) == waited_ns
        assert exported.ReadTrace(_render("perfetto", given)).sum_ns("Lock contention") == waited_ns
        assert exported.chrome_sum_ns(_render("chrome", given)) == waited_ns
        profile = exported.pprof(_render("pprof", given))
        assert sum(sample.value[1] for sample in profile.sample) == waited_ns
        assert sum(sample.value[0] for sample in profile.sample) == len(rows)
        assert exported.folded(_render("folded", given)).total() == waited_ns
        (_, total_ns), *of_threads = exported.speedscope_profiles(_render("speedscope", given))
        assert total_ns == sum(ns for _, ns in of_threads) == waited_ns


def test_parquet_has_the_rows_of_the_table(tmp_path: object) -> None:
    for seed in seeds(3):
        given = _given(_past(seed))
        path = f"{tmp_path}/{seed}.parquet"
        with open(path, "wb") as file:
            file.write(_render("parquet", given))
        query = f"SELECT sum(wait_ns), count(*), max(began) FROM '{path}'"
        read = duckdb.connect().execute(query).fetchone()
        rows = exported.csv_rows(_render("csv", given))
        assert read is not None
        assert read[:2] == (sum(int(row["wait_ns"]) for row in rows), len(rows))
        assert read[2].microsecond == max(int(row["began_ns"]) for row in rows) // 1000 % 10**6


def test_parts_have_the_same_rows_as_the_whole() -> None:
    for seed in seeds(10):
        past = _past(seed)
        whole, in_parts = (
            exported.csv_rows(_render("csv", _given(past, limit))) for limit in (1000, 12)
        )
        assert sorted(map(str, whole)) == sorted(map(str, in_parts))


@pytest.mark.parametrize("max_records", [1000, 12], ids=["whole", "in parts"])
def test_the_counters_have_the_waiters_of_each_moment(max_records: int) -> None:
    for seed in seeds(10):
        past = _past(seed)
        given = _given(past, max_records)
        trace = exported.ReadTrace(_render("perfetto", given))
        names = {uuid: trace.tracks[uuid].name for uuid in trace.counters}
        assert set(names.values()) == {f"waiters of lock {id_} [a]" for id_ in range(1, 4)}
        for uuid, changes in trace.counters.items():
            lock = int(names[uuid].split()[3])
            waits = [record for record in past.found if record.lock == lock and record.wait_ns]
            for time_ns, count in changes:
                if at(0) <= time_ns < at(1000):
                    assert count == sum(wait.began_ns <= time_ns < wait.got_ns for wait in waits)
        chrome = json.loads(_render("chrome", given))["traceEvents"]
        of_chrome = Counter(event["name"] for event in chrome if event["ph"] == "C")
        assert of_chrome == {names[uuid]: len(changes) for uuid, changes in trace.counters.items()}
