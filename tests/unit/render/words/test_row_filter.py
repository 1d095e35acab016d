"""The filter language of the lists."""

from __future__ import annotations

import random

import pytest
from unit.builders import scenarios

from locktop.collector.errors import LocktopError
from locktop.collector.render.words.row_filter import parse
from locktop.collector.render.words.snapshot_index import SnapshotIndex

INDEX = SnapshotIndex(scenarios.normal())


def locks(text: str) -> list[str]:
    """The names of the locks that a filter finds."""
    wanted = parse(text)
    return [lock.name for lock in INDEX.locks.values() if wanted.finds(INDEX, lock, lock.name)]


def threads(text: str) -> list[str]:
    wanted = parse(text)
    return [one.name for one in INDEX.threads.values() if wanted.finds(INDEX, one, one.name)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("lock:g_*", ["g_cache_lock", "g_table_lock"]),
        ("lock:CACHE", ["g_cache_lock"]),
        ("kind:rwlock", ["g_table_lock"]),
        ("holder:journal", ["g_table_lock", "journal_mutex"]),
        ("holder:journal waiter:reader", ["g_table_lock"]),
        ("thread:worker-0", ["g_cache_lock"]),
        ("wait>1s kind:rwlock", ["g_table_lock"]),
        ("wait>200ms wait<1s", ["g_cache_lock"]),
        ("waiters>=2", ["g_cache_lock", "pool_ready"]),
        ("held>1s", ["g_table_lock", "journal_mutex"]),
        ("waited>1m kind:mutex", ["g_cache_lock"]),
        ("contended>4000 contended<100000", ["stats_mutex"]),
        ("max<1ms kind:mutex", ["stats_mutex", "journal_mutex"]),
        ("mutex", ["stats_mutex", "journal_mutex"]),
        ("lock:mutex !lock:stats", ["journal_mutex"]),
        ("!kind:mutex !kind:join !kind:cond", ["g_table_lock"]),
        ("state:held !state:waited", ["journal_mutex"]),
        ("state:idle", ["pool_ready", "thread 4712"]),
        ("holds>=1", ["g_cache_lock", "g_table_lock", "journal_mutex"]),
        ("waiters=1", ["g_table_lock", "thread 4712"]),
        ("cpu>0%", []),
        ("!g_* !pool !thread", ["stats_mutex", "journal_mutex"]),
    ],
)
def test_locks_are_found_by_column(text: str, found: list[str]) -> None:
    assert locks(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("thread:worker-?", ["worker-0", "worker-1", "worker-2"]),
        ("thread:4716", ["journal"]),
        ("state:waiting", ["worker-0", "worker-1", "reader"]),
        ("lock:g_cache_lock", ["worker-0", "worker-1", "worker-2"]),
        ("lock:g_cache_lock wait>100ms", ["worker-0"]),
        ("holder:journal", ["reader"]),
        ("holds>=2", ["journal"]),
        ("cpu>50%", ["worker-2"]),
        ("state:idle !pool", ["store"]),
        ("waiter:worker", ["worker-0", "worker-1"]),
        ("waiter:journal", []),
        ("kind:rwlock", ["reader"]),
        ("waited>31m", ["store", "worker-0", "pool-0", "pool-1", "pool-2"]),
        ("held>1.305s", ["journal"]),
        ("max>0s", []),
        ("waiters>=0", []),
    ],
)
def test_threads_are_found_by_column(text: str, found: list[str]) -> None:
    assert threads(text) == found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("colour:red", "no column 'colour': lock, thread"),
        ("colour>3", "no column 'colour'"),
        ("wait:3", "wait needs a comparison, as wait>10ms"),
        ("lock>3", "lock needs a name"),
        ("lock:", "lock: needs a name"),
        ("wait>", "wait: '' is wrong; wait>10ms is right"),
        ("wait>5", "wait: '5' is wrong"),
        ("waiters>3ms", "waiters: '3ms' is wrong; waiters>3 is right"),
        ("cpu>5", "cpu: '5' is wrong; cpu>50% is right"),
    ],
)
def test_an_error_names_the_column(text: str, message: str) -> None:
    with pytest.raises(LocktopError, match="^" + message.replace("?", "[?]")):
        parse(f"cache {text}")


@pytest.mark.parametrize(
    "word", ["std::mutex", "cache.c:120", "vector<int>", "a->b", '"lock:x"', "x=y", "!"]
)
def test_other_texts_are_plain_words(word: str) -> None:
    wanted = parse(word)
    assert wanted.words == (word.strip('"'),)
    assert not wanted.terms


def test_the_empty_filter_finds_everything() -> None:
    assert not parse("  ")
    assert len(locks("")) == len(INDEX.locks)


def test_any_text_is_a_filter_or_an_error_of_one_line() -> None:
    chance, filters = random.Random(7), 0
    errors: list[str] = []
    for _ in range(3000):
        text = "".join(chance.choices('lock:wait>10ms<=!"* x7\u00e9', k=chance.randrange(20)))
        try:
            wanted = parse(text)
        except LocktopError as error:
            errors.append(str(error))
            continue
        filters += bool(wanted)
        assert locks(text) == locks(wanted.text)
    assert filters > 1000
    assert errors
    assert not any("\n" in text for text in errors)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("state:deadlocked", ["philosopher-0", "philosopher-1", "philosopher-2"]),
        ("state:deadlocked lock:fork[[]2]", ["philosopher-1", "philosopher-2"]),
    ],
)
def test_the_threads_of_a_deadlock_have_a_state_of_their_own(text: str, found: list[str]) -> None:
    index, wanted = SnapshotIndex(scenarios.deadlock()), parse(text)
    assert [one.name for one in index.threads.values() if wanted.finds(index, one, "")] == found
    locks = [
        one.name for one in index.locks.values() if parse("state:deadlocked").finds(index, one, "")
    ]
    assert locks == ["fork[0]", "fork[1]", "fork[2]"]
