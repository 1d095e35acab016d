"""Blame chains: the same ends as a plain search of all paths, and an end to every search."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping

import pytest
from msgspec.structs import replace
from unit.builders import records, scenarios

from locktop.collector.analysis import blame_chains
from locktop.collector.analysis.blame_chains import MAX_LENGTH, BlameChains, BlameRoot
from locktop.collector.model import Blame, Lock
from locktop.collector.render.documents import snapshot_codec
from locktop.collector.render.text import report

Sums = dict[tuple[int, int, int], float]


def lock(id_: int, *blame: Blame) -> Lock:
    wait_s = sum(one.wait_s for one in blame)
    return replace(scenarios.normal().locks[0], id=id_, blame=blame, wait_s=wait_s)


def by_id(*locks: Lock) -> dict[int, Lock]:
    return {one.id: one for one in locks}


def ends_of_all_paths(lock: Lock, locks: Mapping[int, Lock]) -> Sums:
    """Return the roots by a search of each path of the chains."""
    sums: Sums = defaultdict(float)

    def follow(at: Lock, share: float, path: tuple[int, ...]) -> None:
        path = (*path, at.id)
        for one in at.blame:
            behind = locks.get(one.through)
            whole = sum(other.wait_s for other in behind.blame) if behind else 0.0
            if behind is None or not whole or behind.id in path or len(path) == MAX_LENGTH:
                sums[at.id, one.tid, one.site] += one.wait_s * share
            else:
                follow(behind, share * one.wait_s / whole, path)

    follow(lock, 1.0, ())
    return dict(sums)


def sums_of(roots: tuple[BlameRoot, ...]) -> Sums:
    return {(root.lock, root.tid, root.site): root.wait_s for root in roots}


def random_locks(
    chance: random.Random, count: int, most: int, acyclic: bool = False
) -> dict[int, Lock]:
    """Return locks with random blame; ids of ``count`` + 1 and more are no locks."""

    def blame(id_: int) -> Blame:
        through = chance.randint(id_ + 1 if acyclic else 0, count + 2)
        wait_s = chance.choice([0.0, chance.random()])
        return Blame(chance.randint(0, 4), chance.randint(0, 2), wait_s, through)

    return by_id(
        *[
            lock(id_, *[blame(id_) for _ in range(chance.randint(0, most))])
            for id_ in range(1, count + 1)
        ]
    )


@pytest.mark.parametrize("acyclic", [False, True])
def test_the_ends_are_those_of_all_paths(acyclic: bool) -> None:
    chance = random.Random(18)
    chained = 0
    for _ in range(150):
        locks = random_locks(chance, chance.randint(1, 10), 4, acyclic)
        chains = BlameChains(locks)
        for one in locks.values():
            roots = chains.roots(one)
            assert sums_of(roots) == pytest.approx(ends_of_all_paths(one, locks))
            assert list(roots) == sorted(roots, key=lambda root: -root.wait_s)
            behind = [locks[blame.through] for blame in one.blame if blame.through in locks]
            assert chains.is_chained(one) == any(each.wait_s > 0 for each in behind)
            chained += chains.is_chained(one)
        assert not chains.cut
    assert chained > 150


def test_the_blame_goes_to_the_end_of_the_chain() -> None:
    first = lock(1, Blame(11, 0xA, 4.0, 2), Blame(12, 0xB, 1.0))
    second = lock(2, Blame(21, 0xC, 3.0), Blame(22, 0xD, 1.0))
    chains = BlameChains(by_id(first, second))
    assert chains.roots(first) == (
        BlameRoot(2, 21, 0xC, 3.0),
        BlameRoot(1, 12, 0xB, 1.0),
        BlameRoot(2, 22, 0xD, 1.0),
    )
    assert chains.is_chained(first)
    assert not chains.is_chained(second)


def test_a_chain_ends_at_a_lock_that_it_has() -> None:
    first, second = lock(1, Blame(11, 0xA, 4.0, 2)), lock(2, Blame(21, 0xC, 3.0, 1))
    chains = BlameChains(by_id(first, second))
    assert chains.roots(first) == (BlameRoot(2, 21, 0xC, 4.0),)
    alone = lock(3, Blame(31, 0xE, 2.0, 3))
    assert BlameChains(by_id(alone)).roots(alone) == (BlameRoot(3, 31, 0xE, 2.0),)


def test_a_chain_has_a_maximum_length() -> None:
    locks = by_id(*[lock(n, Blame(n, 0xA, 1.0, n + 1)) for n in range(1, 21)])
    (root,) = BlameChains(locks).roots(locks[1])
    assert root.lock == MAX_LENGTH


def test_roots_of_equal_waits_are_in_order() -> None:
    one = lock(1, *[Blame(tid, site, 1.0) for tid in (2, 1) for site in (6, 5)])
    roots = BlameChains(by_id(one)).roots(one)
    assert [(root.tid, root.site) for root in roots] == [(1, 5), (1, 6), (2, 5), (2, 6)]


def test_a_lattice_of_many_paths_takes_few_steps() -> None:
    """Each lock of a row leads to all ten of the next row: 10 million paths."""
    locks = by_id(
        *[
            lock(row * 10 + n, *[Blame(n, 0xA, 1.0, (row + 1) * 10 + m) for m in range(10)])
            for row in range(1, MAX_LENGTH + 1)
            for n in range(10)
        ]
    )
    chains = BlameChains(locks)
    roots = chains.roots(locks[10])
    assert sum(root.wait_s for root in roots) == pytest.approx(10.0)
    assert {root.lock // 10 for root in roots} == {MAX_LENGTH}
    assert len(roots) == 10
    assert not chains.cut


@pytest.mark.parametrize("acyclic", [False, True])
def test_the_search_in_many_tangled_locks_ends_and_says_where(acyclic: bool) -> None:
    locks = random_locks(random.Random(5), 500, 20, acyclic)
    chains = BlameChains(locks)
    rows = 0
    for one in locks.values():
        roots = chains.roots(one)
        rows += len(roots)
        assert sum(root.wait_s for root in roots) == pytest.approx(one.wait_s)
    own = sum(len(one.blame) for one in locks.values())
    assert rows <= own + blame_chains.MAX_ALL_STEPS
    assert chains.cut


def test_at_the_limit_the_greatest_shares_are_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blame_chains, "MAX_STEPS", 3)
    locks = by_id(
        lock(1, Blame(11, 0xA, 1.0, 2), Blame(12, 0xA, 2.0, 3)),
        lock(2, Blame(21, 0xB, 1.0, 4)),
        lock(3, Blame(31, 0xB, 1.0, 5)),
        lock(4, Blame(41, 0xC, 1.0)),
        lock(5, Blame(51, 0xC, 1.0)),
    )
    chains = BlameChains(locks)
    assert [(root.lock, root.wait_s) for root in chains.roots(locks[1])] == [(5, 2.0), (2, 1.0)]
    assert chains.cut == {1}
    # A lock leaves the steps that it does not need to the others.
    assert [root.lock for root in chains.roots(locks[2])] == [4]
    assert chains.cut == {1}


def test_the_limit_of_all_locks_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blame_chains, "MAX_ALL_STEPS", 2)
    locks = by_id(*[lock(n, Blame(n, 0xA, 1.0, n + 1)) for n in (1, 2)], lock(3, Blame(3, 0, 1.0)))
    chains = BlameChains(locks)
    assert [root.lock for root in chains.roots(locks[1])] == [3]
    assert [root.lock for root in chains.roots(locks[2])] == [2]
    assert chains.cut == {2}


def test_a_lock_leaves_the_steps_that_it_does_not_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blame_chains, "MAX_ALL_STEPS", 2)
    pairs = [
        (lock(n, Blame(n, 0xA, 1.0, n + 1)), lock(n + 1, Blame(n, 0xA, 1.0))) for n in (1, 3, 5)
    ]
    chains = BlameChains(by_id(*[one for pair in pairs for one in pair]))
    assert [chains.roots(first)[0].lock for first, _ in pairs] == [2, 4, 5]
    assert chains.cut == {5}


@pytest.mark.parametrize(("limit", "is_cut"), [(7, False), (6, True)])
def test_the_holders_of_a_lock_are_steps_at_the_first_arrival_alone(
    limit: int, is_cut: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five holders and one further lock: 5 steps, then 1 for the second arrival."""
    monkeypatch.setattr(blame_chains, "MAX_STEPS", limit)
    end = lock(4, *[Blame(tid, 0xA, 1.0) for tid in range(5)])
    middle = lock(2, Blame(21, 0xA, 1.0, 4))
    first = lock(1, Blame(11, 0xA, 1.0, 4), Blame(12, 0xA, 1.0, 2))
    chains = BlameChains(by_id(first, middle, end))
    chains.roots(first)
    assert (1 in chains.cut) is is_cut


def test_text_and_json_say_that_chains_are_followed_in_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    behind = replace(lock(2, Blame(21, 0xC, 3.0)), name="g_behind")
    snapshot = records.snapshot((), (lock(1, Blame(11, 0xA, 4.0, 2)), behind))
    note = "the chains of blame of 1 lock are followed in part: they are too many"
    assert note not in snapshot_codec.document(snapshot)["notes"]
    assert "ends of the chains by" in report.render(snapshot)
    monkeypatch.setattr(blame_chains, "MAX_STEPS", 0)
    document = snapshot_codec.document(snapshot)
    assert note in document["notes"]
    assert [root["lock"] for root in document["locks"][0]["blame_roots"]] == [1]
    assert "ends of the chains (followed in part: they are too many) by" in report.render(snapshot)
