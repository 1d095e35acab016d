"""The rows and the sentences of the blocking tree."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from unit.builders import blocking as scenes
from unit.builders import records

from locktop.collector.model import Behind, Kind, Snapshot, Thread, ThreadState, Wait
from locktop.collector.render.words import blocking
from locktop.collector.render.words.snapshot_index import SnapshotIndex


def rows(snapshot: Snapshot, *changed: str) -> list[blocking.BlockingRow]:
    index = SnapshotIndex(snapshot)

    def is_open(key: tuple[object, ...]) -> bool:
        return blocking.is_open_at_first(key) != (str(key[-1]) in changed)

    return list(blocking.rows(index.blocking, index.threads, is_open, index.class_of))


def chain(count: int) -> Snapshot:
    def link(tid: int) -> Thread:
        wait = Wait(tid, Kind.MUTEX, 1.0, (tid - 1,), 1, 0x401100, seq=1)
        return records.thread(tid, f"t-{tid}", ThreadState.WAITING, waiting_for=wait)

    first = records.thread(1, "t-1", ThreadState.RUNNING)
    return records.snapshot((first, *map(link, range(2, count + 1))), ())


def test_threads_that_wait_alike_are_one_row() -> None:
    found = rows(scenes.pool_behind_index(20))
    assert [(row.depth, len(row.waiters), row.name) for row in found] == [
        (0, 0, ""), (1, 1, ""), (2, 20, "worker-#"), (1, 7, "user-#"),
    ]  # fmt: skip
    assert [row.is_open for row in found] == [True, True, False, False]


def test_two_threads_have_rows_of_their_own() -> None:
    assert [row.name for row in rows(scenes.pool_behind_index(2))] == ["", "user-#", "", "", ""]


def test_an_open_fan_has_fifty_rows_and_counts_the_others() -> None:
    found = rows(scenes.pool_behind_index(60), "worker-#")
    inside = [row for row in found if row.depth == 3]
    assert [row.left_out for row in inside] == [0] * blocking.MAX_INSIDE + [10]
    assert len({row.key for row in found}) == len(found)


def test_a_closed_row_hides_what_is_below() -> None:
    assert len(rows(scenes.pool_behind_index(60), str(scenes.HOLDER))) == 1


def test_eleven_roots_of_one_waiter_each_are_one_row_of_their_class() -> None:
    (folded,) = rows(scenes.writers(11))
    assert (folded.name, len(folded.roots), folded.is_open) == ("AwaitState[]", 11, False)
    assert sorted(waiter.tid for waiter in folded.waiters) == list(range(200, 211))
    opened = rows(scenes.writers(11), str(folded.key[-1]))
    assert [row.depth for row in opened] == [0] + [1, 2] * 11
    assert len({row.key for row in opened}) == len(opened)


def test_two_roots_of_a_class_and_roots_with_more_behind_have_rows_of_their_own() -> None:
    assert [row.depth for row in rows(scenes.writers(2))] == [0, 1, 0, 1]
    snapshot = scenes.writers(4)
    more = replace(snapshot.threads[-1], tid=999)
    folded, root, *_ = rows(replace(snapshot, threads=(*snapshot.threads, more)))
    assert len(folded.roots) == 3
    assert root.root is not None
    assert root.root.behind.threads == 2


def test_many_roots_alike_are_cut_when_open() -> None:
    (folded,) = rows(scenes.writers(60))
    opened = rows(scenes.writers(60), str(folded.key[-1]))
    assert opened[-1].left_out == 10


def test_a_chain_of_many_threads_needs_no_deep_stack() -> None:
    assert rows(chain(5000))[-1].depth == 4999


@pytest.mark.parametrize(
    ("behind", "words"),
    [
        (Behind(1, 0.5), "1 thread waits behind this, 500 ms each second"),
        (Behind(299, 84.0), "299 threads wait behind this, 84.0 s each second"),
    ],
)
def test_what_is_behind_in_words(behind: Behind, words: str) -> None:
    assert blocking.behind_words(behind) == words


def test_further_holders_in_words() -> None:
    assert blocking.also_words([]) == ""
    assert blocking.also_words(["a", "b"]) == "also held by a, b"
    assert blocking.also_words(list("abcdef")) == "also held by a, b and 4 more"
