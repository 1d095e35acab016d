"""The holder of a semaphore that is used as a lock, against the program's own record."""

from __future__ import annotations

import random
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from support.targets import StartTarget, Target
from support.thoroughness import some

from locktop.collector.model import BlockReason, Kind, Snapshot
from locktop.collector.sources.attach import attach

STEPS = 120
SEMS = 3


@dataclass
class Hands:
    """Gives orders to tests/targets/deadlock/semaphores_change_hands.c, and keeps its answers."""

    target: Target
    random: random.Random
    truth: dict[str, Any] = field(default_factory=dict)
    posted_unheld: set[int] = field(
        default_factory=set
    )  # numbers of semaphores, in their present lives
    left_held: set[int] = field(default_factory=set)  # the same; the holder ended

    def __post_init__(self) -> None:
        self.truth = self.target.truth()

    @property
    def has(self) -> list[int]:
        """The holder of each semaphore: a tid, 0 for no thread."""
        return list(self.truth["has"].values())

    @property
    def free(self) -> list[int]:
        """The hands that do not wait."""
        return [hand for hand, wants in enumerate(self.truth["wants"]) if wants < 0]

    def order(self, what: str, hand: int, sem: int) -> None:
        """Give one order, and read its result."""
        self.target.go_on(f"{what} {hand} {sem}")
        self.truth = self.target.truth()

    def step(self) -> None:
        """Take or post a semaphore in lock order; sometimes do a thing that a program must not."""
        sem, chance = self.random.randrange(SEMS), self.random.random()
        holder, tids = self.has[sem], self.truth["tids"]
        having = [hand for hand in self.free if tids[hand] == holder]
        # At least one hand stays free, else no order would be possible.
        others = [hand for hand in self.free if tids[hand] not in self.has[sem:]]
        others = others if not holder or len(self.free) > 1 else []
        if chance < 0.02 and sem not in self.truth["wants"]:
            # The counts begin anew.
            self.left_held.discard(sem)
            self.posted_unheld.discard(sem)
            self.order("renew", 0, sem)
        elif chance < 0.005 * sem or (holder not in (0, *tids) and chance < 0.3):
            self.posted_unheld.add(sem)
            self.order("post", -1, sem)
        elif chance < 0.03:
            hand = self.random.choice(self.free)
            self.left_held |= {sem for sem, tid in enumerate(self.has) if tid == tids[hand]}
            self.order("end", hand, 0)
        elif having and chance < 0.5:
            self.order("post", having[0], sem)
        elif others:
            self.order("get", self.random.choice(others), sem)

    def check(self, seen: Snapshot) -> int:
        """Compare a snapshot with the truth; return the number of semaphores with a holder."""
        named = 0
        threads = {thread.tid: thread for thread in seen.threads}
        for sem, (address, holder) in enumerate(self.truth["has"].items()):
            lock = next((lock for lock in seen.locks if lock.address == int(address)), None)
            if lock is None:
                continue  # no thread has taken the semaphore yet
            assert lock.kind is Kind.SEM
            assert lock.holders in ((), (holder,))
            alive = holder in self.truth["tids"]
            if sem in self.posted_unheld:
                assert not lock.holders
            elif lock.waiters and lock.used_as_lock and sem not in self.left_held:
                assert lock.holders == (holder,)
            if lock.holders and alive:
                named += 1
                assert [held.lock for held in threads[holder].holds].count(lock.id) == 1
                for tid in lock.waiters:
                    wait = threads[tid].waiting_for
                    assert wait is not None
                    assert wait.holders == (holder,)
        for found in (found for found in seen.deadlocks if found.certain):
            for edge in found.cycle:
                lock = next(lock for lock in seen.locks if lock.id == edge.waits_for)
                assert edge.held_by == self.truth["has"][str(lock.address)]
                assert (edge.reason is BlockReason.ABANDONED) is (
                    edge.held_by not in self.truth["tids"]
                )
        return named


def test_the_holder_is_right_or_unknown_after_each_step(start_target: StartTarget) -> None:
    for seed in some(range(12), 4):
        print(f"seed {seed}")
        hands = Hands(start_target("semaphores_change_hands"), random.Random(seed))
        named = 0
        with closing(attach(hands.target.pid)) as source:
            for _ in range(STEPS):
                hands.step()
                named += hands.check(source.scan())
        assert named > 0
