"""Figures that samples lack are None in the model and null in JSON; the library counts them all."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from support import tool, unprepared
from support.targets import StartTarget

from locktop.collector.model import Lock, LockRates, Snapshot, Thread
from locktop.collector.render.documents.snapshot_codec import document
from locktop.collector.sources.attach import attach

#: A mutex and a condition, each with a waiter.
_SCRIPTS = ("stay", "lock a, meet 1, stay", "meet 1, lock a", "wait c")
_OF_LOCKS = ("acquisitions", "trylock_failed", "signals", "unheard", "hold_s", "hold_max_s")
_OF_THREADS = ("acquisitions", "contended")
#: Null also where the library counts, if there was no such wait or hold.
_PERCENTILES = {"wait_p50_s", "wait_p99_s", "hold_p50_s", "hold_p99_s"}
_OF_RATES = ("acquisitions", "contended", "hold", "signals", "unheld")


def _figures(record: Lock | LockRates | Thread, names: tuple[str, ...]) -> list[float | None]:
    return [getattr(record, name) for name in names]


def _waits(seen: Snapshot) -> bool:
    return sum(thread.waiting_for is not None for thread in seen.threads) >= 2


def _library_shows_waits(document: dict[str, Any]) -> bool:
    waiting = [thread for thread in document["threads"] if thread["waiting_for"]]
    return document["source"] == "preload" and len(waiting) >= 2


def _nulls(entries: list[dict[str, Any]]) -> set[str]:
    """Return the keys that are null in any entry."""
    return {key for entry in entries for key, value in entry.items() if value is None}


def test_samples_show_no_counts_and_no_hold_times(start_unprepared: StartTarget) -> None:
    target = start_unprepared("scripted_threads", *_SCRIPTS)
    seen = unprepared.scan_until(target.pid, _waits)
    for lock in seen.locks:
        assert _figures(lock, _OF_LOCKS) == [None] * len(_OF_LOCKS)
        assert _figures(lock.rates, _OF_RATES) == [None] * len(_OF_RATES)
        assert (lock.hold_timed, lock.first_value) == (0, None)
    for thread in seen.threads:
        assert _figures(thread, _OF_THREADS) == [None] * len(_OF_THREADS)
    whole = document(seen, seen)
    assert _nulls(whole["locks"]) >= set(_OF_LOCKS)
    assert _nulls([lock["interval"] for lock in whole["locks"]]) == {
        "acquisitions", "trylock_failed", "signals", "unheard", "hold_s", *_PERCENTILES,
    }  # fmt: skip
    nulls = _nulls([thread["interval"] for thread in whole["threads"]])
    assert nulls - _PERCENTILES == set(_OF_THREADS)


def test_the_library_counts_all_of_that(start_target: StartTarget) -> None:
    target = start_target("scripted_threads", *_SCRIPTS)
    tool.scan_until(target.pid, _library_shows_waits, "the waits of the library")
    with closing(attach(target.pid)) as source:
        seen = source.scan()
    assert seen.source == "preload"
    for lock in seen.locks:
        assert None not in _figures(lock, _OF_LOCKS)
        assert None not in _figures(lock.rates, _OF_RATES)
    for thread in seen.threads:
        assert None not in _figures(thread, _OF_THREADS)
    whole = document(seen, seen)
    assert not _nulls(whole["locks"]) & set(_OF_LOCKS)
    nulls = _nulls([one["interval"] for one in (*whole["locks"], *whole["threads"])])
    assert nulls <= _PERCENTILES
