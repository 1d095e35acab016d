"""The collector's deadlock rules against an exhaustive search: the same threads are stuck.

Threads take, release, wait and end at random, and both checkers judge the resulting state. The
exhaustive checker tries every possible next step. A running thread may release all that it holds,
or end. A waiting thread may get what it waits for as soon as that is available. A thread that
continues in none of these ways is stuck. `make fuzz` takes longer.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from locktop.collector.analysis import deadlocks
from locktop.collector.analysis.wait_requests import build_graph
from locktop.collector.model import Held, Kind, Lock, LockUse, Thread, ThreadState, Wait

ROUNDS, _, FIRST = os.environ.get("LOCKTOP_FUZZ", "30").partition(":")
STATES = 50  # in one round
PARTIES = 3
MAIN = 1  # the first tid


@dataclass(frozen=True)
class Thing:
    """An object that threads can wait for; its number is the id of its lock."""

    kind: Kind
    units: int = 1  # available at a time
    writers_first: bool = False


THINGS = {
    1: Thing(Kind.MUTEX),
    2: Thing(Kind.MUTEX),
    3: Thing(Kind.MUTEX),
    4: Thing(Kind.RWLOCK),
    5: Thing(Kind.RWLOCK, writers_first=True),
    6: Thing(Kind.SPIN),
    7: Thing(Kind.ONCE),
    8: Thing(Kind.SEM),
    9: Thing(Kind.SEM, units=2),
    10: Thing(Kind.JOIN),
    11: Thing(Kind.BARRIER),
}


@dataclass(frozen=True)
class Want:
    thing: int
    since: int
    shared: bool = False
    timed: bool = False
    awaits: int = 0
    saw: int = 0


@dataclass(frozen=True)
class One:
    """A thread: its held things as (thing, shared), and its wait."""

    has: tuple[tuple[int, bool], ...] = ()
    want: Want | None = None
    ended: bool = False

    @property
    def runs(self) -> bool:
        return not self.ended and self.want is None


State = tuple[One, ...]  # by tid - MAIN


def changed(state: State, tid: int, **to: object) -> State:
    fields = {"has": state[tid - MAIN].has, "want": state[tid - MAIN].want,
              "ended": state[tid - MAIN].ended} | to  # fmt: skip
    return (*state[: tid - MAIN], One(**fields), *state[tid - MAIN + 1 :])  # type: ignore[arg-type]


def is_available(state: State, want: Want) -> bool:
    thing = THINGS[want.thing]
    if thing.kind is Kind.JOIN:
        return state[want.awaits - MAIN].ended
    if thing.kind is Kind.BARRIER:
        # A running thread may start as many threads as the barrier needs.
        here = sum(one.want is not None and one.want.thing == want.thing for one in state)
        return here >= PARTIES or any(one.runs for one in state)
    had = [shared for one in state for what, shared in one.has if what == want.thing]
    if thing.kind is Kind.SEM:
        return len(had) < thing.units
    if not want.shared:
        return not had
    ahead = thing.writers_first and any(
        other.want is not None
        and other.want.thing == want.thing
        and not other.want.shared
        and other.want.since < want.since
        for other in state
    )
    return all(had) and not ahead


def got(state: State, tid: int) -> State:
    """Return the state after a successful wait."""
    one = state[tid - MAIN]
    assert one.want is not None
    kept = THINGS[one.want.thing].kind not in (Kind.JOIN, Kind.BARRIER)
    has = (*one.has, (one.want.thing, one.want.shared)) if kept else one.has
    return changed(state, tid, has=has, want=None)


def next_states(state: State) -> Iterator[State]:
    for tid, one in enumerate(state, MAIN):
        if one.runs and one.has:
            yield changed(state, tid, has=())
        elif one.runs:
            yield changed(state, tid, ended=True)
        elif one.want is not None and is_available(state, one.want):
            yield got(state, tid)
        elif one.want is not None and one.want.timed:
            yield changed(state, tid, want=None)


def stuck_exactly(state: State) -> set[int]:
    stuck = {tid for tid, one in enumerate(state, MAIN) if one.want is not None}
    seen, work = {state}, [state]
    while work and stuck:
        for following in next_states(work.pop()):
            if following not in seen:
                seen.add(following)
                work.append(following)
                stuck = {tid for tid in stuck if following[tid - MAIN].want is not None}
    return stuck


# ---- the collector's result ----


def held(one: One) -> tuple[Held, ...]:
    listed = [(what, shared) for what, shared in one.has if THINGS[what].kind is not Kind.SEM]
    return tuple(Held(what, 0x10, None, 0, shared) for what, shared in listed)


def uses(one: One) -> tuple[LockUse, ...]:
    """Return the semaphore counts of a thread: each holder has taken and released it before."""
    units = {what: 0 for what, _ in one.has if THINGS[what].kind is Kind.SEM}
    for what, _ in one.has:
        if what in units:
            units[what] += 1
    return tuple(LockUse(what, 5 + count, 5) for what, count in units.items())


def wait(want: Want, now: int) -> Wait:
    return Wait(
        want.thing, THINGS[want.thing].kind, 2.0 + now - want.since, (), 0, 0, want.since,
        want.timed, want.shared, want.saw, awaits=want.awaits, parties=PARTIES,
    )  # fmt: skip


def stuck_by_rules(state: State, now: int) -> set[int]:
    threads = [
        Thread(
            tid=tid, name="", alive=not one.ended, state=ThreadState.OTHER,
            waiting_for=wait(one.want, now) if one.want else None, holds=held(one), wait_s={},
            cpu_s=0.0, acquisitions=0, contended=0, uses=uses(one),
        )
        for tid, one in enumerate(state, MAIN)
    ]  # fmt: skip
    used = [use for thread in threads for use in thread.uses or ()]
    got = {id_: sum(use.acquisitions for use in used if use.lock == id_) for id_ in THINGS}
    posted = {id_: sum(use.signals for use in used if use.lock == id_) for id_ in THINGS}
    locks = {
        id_: Lock(
            id=id_, address=id_, kind=thing.kind, name="",
            acquisitions=got[id_], signals=posted[id_],
            life_acquisitions=got[id_], life_signals=posted[id_],
            contended=0, trylock_failed=0, wait_s=0, wait_max_s=0, hold_s=0, hold_timed=0,
            hold_max_s=0, holders=(), waiters=(), wait_stacks=(), writers_first=thing.writers_first,
            first_value=thing.units if thing.kind is Kind.SEM else None,
        )
        for id_, thing in THINGS.items()
    }  # fmt: skip
    found = deadlocks.find(build_graph(threads, locks))
    assert all(one.certain for one in found if not one.doubt)
    stuck: set[int] = set()
    for one in found:
        if one.certain:
            stuck.update(one.stuck, (edge.tid for edge in one.cycle))
            ends = [edge.held_by for edge in one.cycle]
            assert ends == [*[edge.tid for edge in one.cycle[1:]], ends[-1]]
            assert len(one.cycle) == 1 or ends[-1] == one.cycle[0].tid
    return stuck


# ---- random actions of threads ----


@dataclass
class World:
    chance: random.Random
    now: int = 0
    state: State = field(default_factory=tuple)

    def step(self) -> None:
        self.now += 1
        tid = self.chance.randint(MAIN, len(self.state))
        one = self.state[tid - MAIN]
        if one.want is not None and is_available(self.state, one.want):
            self.state = got(self.state, tid)
        elif one.runs:
            self.act(tid, one)

    def act(self, tid: int, one: One) -> None:
        what = self.chance.random()
        if what < 0.15 and one.has:
            kept = list(one.has)
            kept.pop(self.chance.randrange(len(kept)))
            self.state = changed(self.state, tid, has=tuple(kept))
        elif what < 0.2:
            if self.may_end(tid, one):
                self.state = changed(self.state, tid, ended=True)
        else:
            self.take(tid, self.chance.choice(list(THINGS)))

    def may_end(self, tid: int, one: One) -> bool:
        """Return whether the thread may end without making the state ambiguous.

        The collector knows a semaphore of an ended thread only as long as the thread's block
        exists. Only waiters that came while an ended owner had the lock know that owner.
        """
        mine = {what for what, _ in one.has}
        came_before = any(
            other.want is not None and other.want.thing in mine and other.want.saw != tid
            for other in self.state
        )
        return not came_before

    def take(self, tid: int, id_: int) -> None:
        thing, chance = THINGS[id_], self.chance
        others = [n for n in range(MAIN, len(self.state) + 1) if n != tid]
        if thing.kind in (Kind.JOIN, Kind.BARRIER) and chance.random() < 0.5:
            return  # otherwise joins and barriers would be the only steps
        owner = next((n for n, one in enumerate(self.state, MAIN) if (id_, False) in one.has), 0)
        want = Want(
            id_,
            self.now,
            shared=thing.kind is Kind.RWLOCK and chance.random() < 0.6,
            timed=thing.kind is not Kind.BARRIER and chance.random() < 0.1,
            awaits=chance.choice(others) if thing.kind is Kind.JOIN else 0,
            saw=owner if thing.kind in (Kind.MUTEX, Kind.RWLOCK) else 0,
        )
        waiting = changed(self.state, tid, want=want)
        at_once = thing.kind is not Kind.BARRIER and is_available(waiting, want)
        self.state = got(waiting, tid) if at_once else waiting


@pytest.mark.parametrize("seed", range(int(FIRST or 0), int(FIRST or 0) + int(ROUNDS)))
def test_the_same_threads_are_stuck(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(STATES):
        world = World(chance, state=tuple(One() for _ in range(chance.randint(2, 5))))
        for _ in range(chance.randint(4, 40)):
            world.step()
        assert stuck_by_rules(world.state, world.now) == stuck_exactly(world.state), world.state


def test_the_states_are_of_both_sorts() -> None:
    """Only a mix of deadlocked and live states tests the rules."""
    chance, deadlocked = random.Random(1), 0
    for _ in range(300):
        world = World(chance, state=tuple(One() for _ in range(chance.randint(2, 5))))
        for _ in range(chance.randint(4, 40)):
            world.step()
        deadlocked += bool(stuck_exactly(world.state))
    assert 60 < deadlocked < 240
