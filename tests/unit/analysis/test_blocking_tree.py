"""The blocking tree: each waiter once, below the right root, with sums that add up."""

from __future__ import annotations

import random
import time

import pytest
from msgspec.structs import replace
from unit.builders import records

from locktop.collector.analysis import blocking_tree
from locktop.collector.model import (
    Blame,
    BlockingRoot,
    BlockingTree,
    Held,
    Kind,
    Lock,
    LockRates,
    LockUse,
    RootKind,
    Snapshot,
    Thread,
    ThreadState,
    Wait,
)

INTERVAL_S = 0.5
WAITS, IDLE = ThreadState.WAITING, ThreadState.IDLE


def waits(
    tid: int,
    lock: int,
    *holders: int,
    duration_s: float = 1.0,
    kind: Kind = Kind.MUTEX,
    holds: tuple[Held, ...] = (),
    idle: bool = False,
) -> Thread:
    wait = Wait(lock, kind, duration_s, holders, 1, 0x401100, seq=1, idle=idle)
    return records.thread(tid, f"t-{tid}", IDLE if idle else WAITS, waiting_for=wait, holds=holds)


def runs(tid: int, *holds: Held) -> Thread:
    return records.thread(tid, f"t-{tid}", ThreadState.RUNNING, holds=holds)


def hold(lock: int, duration_s: float | None = 1.0) -> Held:
    return Held(lock, 0x401100, duration_s)


def snapshot(*threads: Thread, locks: tuple[Lock, ...] = (), interval_s: float = 0.0) -> Snapshot:
    return replace(records.snapshot(threads, locks), interval_s=interval_s)


def tree(*threads: Thread, locks: tuple[Lock, ...] = ()) -> BlockingTree:
    return blocking_tree.find(snapshot(*threads, locks=locks))


def outline(found: BlockingTree) -> list[str]:
    lines = []
    for root in found.roots:
        name = ",".join(map(str, root.tids or [root.lock]))
        lines.append(f"{root.kind} {name}: {root.behind.threads}")
        for waiter in found.walk(root):
            lines.append(f"{'  ' * waiter.depth}{waiter.tid} for {waiter.lock}")
    return lines


def test_nobody_waits() -> None:
    assert tree(runs(1)) == BlockingTree()
    assert tree(waits(1, 7, 2, idle=True), runs(2, hold(7))).roots == ()


def test_a_chain_stands_below_its_last_holder() -> None:
    found = tree(runs(1, hold(10)), waits(2, 10, 1), waits(3, 11, 2), waits(4, 11, 2))
    assert outline(found) == ["holder 1: 3", "  2 for 10", "    3 for 11", "    4 for 11"]
    (root,) = found.roots
    assert (root.lock, root.depth, root.key) == (10, 2, ("holder", 1))
    assert found.waiters[2].behind.threads == 2
    assert found.waiters[4].holder == 2


def test_a_lock_with_an_unknown_holder_is_a_root() -> None:
    assert outline(tree(waits(2, 10), waits(3, 11, 2))) == [
        "lock 10: 2", "  2 for 10", "    3 for 11",
    ]  # fmt: skip


def test_threads_that_wait_for_each_other_are_one_root() -> None:
    found = tree(waits(1, 10, 2), waits(2, 11, 1), waits(3, 11, 1))
    assert outline(found) == ["cycle 1,2: 3", "  1 for 10", "    3 for 11", "  2 for 11"]
    assert [found.waiters[tid].holder for tid in (1, 2, 3)] == [2, 1, 1]


def test_a_thread_that_waits_for_itself_is_a_cycle() -> None:
    found = tree(waits(1, 10, 1), waits(2, 10, 1))
    assert outline(found) == ["cycle 1: 2", "  1 for 10", "    2 for 10"]
    assert found.waiters[1].holder == 1


def test_the_longest_hold_has_the_waiters_of_several_holders() -> None:
    readers = runs(1, hold(10, 1.0)), runs(2, hold(10, 5.0)), runs(3, hold(10, 5.0))
    writer = waits(4, 10, 3, 2, 1, kind=Kind.RWLOCK)
    found = tree(*readers, writer)
    assert outline(found) == ["holder 2: 1", "  4 for 10"]
    assert found.waiters[4].others == (1, 3)


def test_a_thread_that_needs_one_of_several_is_not_behind_a_cycle() -> None:
    """Thread 3 posts the semaphore: then the circle of 1 and 2 is no deadlock."""
    circle = waits(1, 10, 2, 3, kind=Kind.SEM), waits(2, 11, 1)
    assert outline(tree(*circle, runs(3))) == ["holder 3: 2", "  1 for 10", "    2 for 11"]


def test_a_thread_that_needs_all_of_several_is_behind_the_cycle() -> None:
    circle = waits(1, 10, 2, 3, kind=Kind.RWLOCK), waits(2, 11, 1)
    assert outline(tree(*circle, runs(3))) == ["cycle 1,2: 2", "  1 for 10", "  2 for 11"]


def test_the_holders_of_a_semaphore_of_several_units_are_those_with_units() -> None:
    """Eight threads have a connection and wait for one index: the others wait behind it."""
    pool, index = 20, 10
    use = (LockUse(pool, acquisitions=3, signals=2, life=0),)
    holders = [replace(waits(tid, index, 1), uses=use) for tid in range(2, 10)]
    users = [waits(tid, pool, kind=Kind.SEM) for tid in range(10, 30)]
    connections = records.lock(
        pool, "g_pool", Kind.SEM, first_value=8, used_as_lock=True,
        waiters=tuple(range(10, 30)), life_acquisitions=24, life_signals=16, generation=0,
    )  # fmt: skip
    threads = runs(1, hold(index)), *holders, *users
    (root,) = tree(*threads, locks=(connections,)).roots
    assert (root.tids, root.lock, root.behind.threads) == ((1,), index, 28)
    one_unit_less = replace(connections, life_acquisitions=25)
    assert {root.kind for root in tree(*threads, locks=(one_unit_less,)).roots} == {
        RootKind.HOLDER, RootKind.LOCK,
    }  # fmt: skip


def test_the_root_with_most_waiting_comes_first() -> None:
    found = tree(
        runs(1, hold(10)), runs(2, hold(11)),
        waits(3, 10, 1, duration_s=5.0), waits(4, 11, 2, duration_s=3.0),
        waits(5, 11, 2, duration_s=4.0),
    )  # fmt: skip
    assert [root.tids for root in found.roots] == [(2,), (1,)]
    assert found.roots[0].behind.longest == 5
    assert found.roots[0].behind.waited_s == 7.0


def test_a_rate_that_was_not_measured_counts_each_thread() -> None:
    """A saved snapshot has an interval, but no rates."""
    lasts, begun = waits(2, 10, 1), waits(3, 11, 1, duration_s=0.0)
    locks = records.lock(10, "g_a"), records.lock(11, "g_b")
    (root,) = blocking_tree.find(
        snapshot(runs(1), lasts, begun, locks=locks, interval_s=INTERVAL_S)
    ).roots
    assert root.behind.wait == 1.0, "the second wait has just begun"


# ---- against a plain checker ----


def some_locks(chance: random.Random, count: int, tids: range) -> dict[int, tuple[Kind, list[int]]]:
    """Return the kind and the holders of each lock. Some holders are no threads of the scan."""
    everyone = [*tids, 900, 901]
    kinds = chance.choice([[Kind.MUTEX], [Kind.MUTEX, Kind.RWLOCK, Kind.SEM]])
    fewest = chance.choice([0, 1])
    found = {}
    for id_ in range(100, 100 + count):
        kind = chance.choice(kinds)
        most = 1 if kind is Kind.MUTEX else 4
        number = min(chance.randint(fewest, most), len(everyone))
        found[id_] = kind, chance.sample(everyone, number)
    return found


def generated(chance: random.Random) -> Snapshot:
    tids = range(1, chance.randint(2, 16))
    locks = some_locks(chance, chance.randint(1, 16), tids)
    threads = []
    for tid in tids:
        held = tuple(
            hold(id_, chance.choice([None, 0.5, 1.0, 2.0]))
            for id_, (_, holders) in locks.items()
            if tid in holders
        )
        if chance.random() < 0.25:
            threads.append(runs(tid, *held))
            continue
        lock = chance.choice(list(locks))
        kind, holders = locks[lock]
        duration_s, idle = chance.choice([0.0, 0.25, 1.0, 8.0]), chance.random() < 0.2
        threads.append(
            waits(tid, lock, *holders, duration_s=duration_s, kind=kind, holds=held, idle=idle)
        )
    known = [_charged(chance, id_, *locks[id_]) for id_ in locks if chance.random() < 0.9]
    if chance.random() < 0.3:  # as in the first scan
        known = [replace(lock, rates=LockRates()) for lock in known]
        return snapshot(*threads, locks=tuple(known))
    return snapshot(*threads, locks=tuple(known), interval_s=INTERVAL_S)


def _charged(chance: random.Random, id_: int, kind: Kind, holders: list[int]) -> Lock:
    """Return a lock whose waits in the last interval are its blame."""
    blame = tuple(Blame(tid, 0x401100, chance.random()) for tid in [*holders, 0])
    wait = sum(one.wait_s for one in blame) / INTERVAL_S
    made = records.lock(id_, f"lock-{id_}", kind, blame=blame, rates=LockRates(wait=wait))
    return records.some_idle(made, 0.0)


class Checker:
    """Finds the facts about the waits of a snapshot by plain searches."""

    def __init__(self, of: Snapshot) -> None:
        self.snapshot = of
        self.threads = {thread.tid: thread for thread in of.threads}
        self.waits = {
            thread.tid: thread.waiting_for
            for thread in of.threads
            if thread.waiting_for is not None and not thread.waiting_for.idle
        }
        self.can_go_on = self._can_go_on()

    def _can_go_on(self) -> set[int]:
        """Return the waiters that go on if every thread that does not wait releases its locks."""
        free: set[int] = set()
        while True:
            more = set()
            for tid, wait in self.waits.items():
                ready = [one in free or one not in self.waits for one in wait.holders]
                enough = any(ready) if wait.kind is Kind.SEM and ready else all(ready)
                if tid not in free and enough:
                    more.add(tid)
            if not more:
                return free
            free |= more

    def reaches(self, tid: int) -> set[int]:
        """Return the threads that cannot go on and that a thread waits for."""
        found: set[int] = set()
        todo = [tid]
        while todo:
            for holder in self.waits[todo.pop()].holders:
                if holder in self.waits and holder not in self.can_go_on and holder not in found:
                    found.add(holder)
                    todo.append(holder)
        return found

    def cycle(self, tid: int) -> tuple[int, ...]:
        """Return the threads that wait for each other with this one; () for none."""
        if tid in self.can_go_on:
            return ()
        return tuple(sorted(one for one in self.reaches(tid) if tid in self.reaches(one)))

    def wait_of(self, tid: int) -> float:
        """Return the seconds waited per second."""
        lock = self.waits[tid].lock
        waits = [one for one in self.waits.values() if one.lock == lock]
        known = [one for one in self.snapshot.locks if one.id == lock]
        if not known or not known[0].rates.wait:
            return 1.0
        return sum(one.wait_s for one in known[0].blame) / INTERVAL_S / len(waits)

    def check(self, found: BlockingTree) -> None:
        below = {root: [one.tid for one in found.walk(root)] for root in found.roots}
        everyone = sorted(tid for tids in below.values() for tid in tids)
        assert everyone == sorted(self.waits), "each waiter stands once"
        assert sorted(found.waiters) == everyone
        for number, root in enumerate(found.roots):
            self.check_root(found, root)
            self.check_sums(found, root, below[root])
            for tid in below[root]:
                assert found.waiters[tid].root == number
                self.check_waiter(found, tid)
        keys = [root.key for root in found.roots]
        assert len(set(keys)) == len(keys)
        order = [root.behind.waited_s for root in found.roots]
        assert order == sorted(order, reverse=True)
        whole = sum(self.wait_of(tid) for tid in self.waits)
        assert sum(root.behind.wait for root in found.roots) == pytest.approx(whole)

    def check_root(self, found: BlockingTree, root: BlockingRoot) -> None:
        direct = [found.waiters[tid] for tid in root.waiters]
        assert set(root.locks) == {one.lock for one in direct}
        assert all(one.depth == 1 for one in direct)
        if root.kind is RootKind.HOLDER:
            (tid,) = root.tids
            assert tid not in self.waits
            assert all(one.holder == tid for one in direct)
        elif root.kind is RootKind.LOCK:
            assert not root.tids
            assert all(not self.waits[one.tid].holders for one in direct)
            assert all(one.lock == root.lock and one.holder == 0 for one in direct)
        else:
            assert root.tids == self.cycle(root.tids[0])
            assert sorted(root.waiters) == list(root.tids)

    def check_waiter(self, found: BlockingTree, tid: int) -> None:
        waiter, wait = found.waiters[tid], self.waits[tid]
        assert waiter.lock == wait.lock
        named = {waiter.holder} - {0} | set(waiter.others)
        assert named == set(wait.holders)
        assert waiter.holder not in waiter.others
        root = found.roots[waiter.root]
        assert (root.kind is RootKind.CYCLE) == (tid not in self.can_go_on)
        assert (tid in root.tids) == bool(self.cycle(tid))
        for child in waiter.waiters:
            assert found.waiters[child].holder == tid
            assert found.waiters[child].depth == waiter.depth + 1
        if tid in self.can_go_on and wait.kind is not Kind.SEM and wait.holders:
            assert waiter.holder == min(
                wait.holders, key=lambda one: (-self.held_s(one, wait.lock), one)
            )

    def held_s(self, tid: int, lock: int) -> float:
        holds = self.threads[tid].holds if tid in self.threads else ()
        return max([held.duration_s or 0.0 for held in holds if held.lock == lock], default=0.0)

    def check_sums(self, found: BlockingTree, root: BlockingRoot, below: list[int]) -> None:
        assert root.behind.threads == len(below)
        assert root.depth == max(found.waiters[tid].depth for tid in below)
        assert root.behind.wait == pytest.approx(sum(map(self.wait_of, below)))
        durations = {tid: self.waits[tid].duration_s for tid in below}
        assert root.behind.waited_s == pytest.approx(sum(durations.values()))
        assert durations[root.behind.longest] == max(durations.values())
        for tid in below:
            inside = self.inside(found, tid)
            behind = found.waiters[tid].behind
            assert behind.threads == len(inside)
            assert behind.wait == pytest.approx(sum(map(self.wait_of, inside)))

    def inside(self, found: BlockingTree, tid: int) -> list[int]:
        children = found.waiters[tid].waiters
        return [*children, *[one for child in children for one in self.inside(found, child)]]


def test_generated_waits_agree_with_a_plain_checker() -> None:
    chance = random.Random(27)
    kinds = dict.fromkeys(RootKind, 0)
    several = deep = 0
    for _ in range(1000):
        made = generated(chance)
        found = blocking_tree.find(made)
        Checker(made).check(found)
        for root in found.roots:
            kinds[root.kind] += 1
            deep += root.depth > 2
        several += sum(bool(waiter.others) for waiter in found.waiters.values())
    assert min(kinds.values()) > 100, f"the graphs have each kind of root: {kinds}"
    assert min(several, deep) > 100


# ---- size ----


def chain_of(count: int) -> Snapshot:
    links = [waits(tid, tid, tid - 1, holds=(hold(tid + 1),)) for tid in range(2, count + 1)]
    return snapshot(runs(1, hold(2)), *links)


def test_a_long_chain_needs_no_deep_stack() -> None:
    found = blocking_tree.find(chain_of(10_000))
    assert found.roots[0].behind.threads == 9_999
    assert found.roots[0].depth == 9_999


def test_many_readers_and_many_writers_take_no_product_of_both() -> None:
    """3,000 threads wait for 3,000 readers: nine million pairs would take many times longer."""
    readers = tuple(range(1, 3001))
    wait = waits(0, 10, *readers, kind=Kind.RWLOCK).waiting_for
    threads = [runs(tid, hold(10)) for tid in readers]
    threads += [replace(waits(tid, 10), waiting_for=wait) for tid in range(3001, 6001)]
    began = time.process_time()
    found = blocking_tree.find(snapshot(*threads))
    assert found.roots[0].behind.threads == 3000
    assert time.process_time() - began < 5.0


def test_the_result_does_not_depend_on_the_order_of_threads() -> None:
    chance = random.Random(3)
    for _ in range(100):
        made = generated(chance)
        threads = list(made.threads)
        chance.shuffle(threads)
        again = blocking_tree.find(replace(made, threads=tuple(threads)))
        assert outline(again) == outline(blocking_tree.find(made))
