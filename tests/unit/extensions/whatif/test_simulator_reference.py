"""The simulator in C counts exactly what the same simulation in Python counts."""

from __future__ import annotations

from random import Random

from msgspec.structs import asdict
from support.reference_simulator import ReferenceSimulator
from unit.builders.simulated import ROUND, compute, holding, sleep

from locktop.collector.extensions.whatif.analysis.simulated_program import (
    Do,
    LockModel,
    LockType,
    Operation,
    Program,
    ThreadModel,
)
from locktop.collector.extensions.whatif.simulator import Simulator

PROGRAMS = 800


def times_us(rng: Random) -> float:
    """Return a time: often none, or one that meets another thread's, or some slices."""
    return rng.choice((0, 10, 10, 50, rng.random() * 300, 3000, rng.random() * 9000))


def own_time(rng: Random) -> Operation:
    return rng.choice((compute, sleep))(times_us(rng))


def operation(rng: Random, locks: int) -> Operation:
    """Return any operation of any lock: no real program has most sequences of these."""
    do = rng.choice(list(Do))
    if do in (Do.COMPUTE, Do.SLEEP) or not locks:
        return own_time(rng)
    return Operation(do, rng.randrange(locks), rng.randint(0, 3))


def holds(rng: Random, locks: int) -> tuple[Operation, ...]:
    """Return some work within up to three locks."""
    do = rng.choice((Do.TAKE, Do.TAKE, Do.SHARE))
    inside = [own_time(rng) for _ in range(rng.randint(0, 2))]
    within = holds(rng, locks) if rng.random() < 0.3 else ()
    return (*holding(rng.randrange(locks), *inside, *within, do=do), ROUND)


def operations(rng: Random, locks: int) -> tuple[Operation, ...]:
    is_usual = locks and rng.random() < 0.7
    # A round without any time takes the Python code too long.
    parts: list[Operation] = [rng.choice((compute, sleep))(100 + times_us(rng))]
    for _ in range(rng.randint(1, 5)):
        parts += holds(rng, locks) if is_usual else [operation(rng, locks), ROUND]
    return tuple(parts)


def random_program(rng: Random) -> Program:
    locks = rng.choice((0, 1, 1, 2, 5))
    threads = tuple(
        ThreadModel(
            tid=number + 1,
            group="group",
            role=1,
            operations=operations(rng, locks),
            is_other=rng.random() < 0.1,
            is_copy=rng.random() < 0.1,
        )
        for number in range(rng.choice((0, 1, 2, 4, 12, 40)))
    )
    return Program(
        threads=threads,
        locks=tuple(
            LockModel(65 + number, rng.choice(list(LockType)), rng.randint(0, 4))
            for number in range(locks)
        ),
        cpus=rng.choice((1, 2, 3, 8)),
        wakes_ns=tuple(rng.randrange(90_000) for _ in range(rng.randint(1, 3))),
        span_ns=1_000_000,
        rounds_per_s={},
    )


def test_random_programs_have_the_same_counts_in_c_and_in_python() -> None:
    progress = 0
    for seed in range(PROGRAMS):
        program = random_program(Random(seed))
        warm_up_ns, span_ns = seed % 3 * 5_000_000, 20_000_000
        found = Simulator(program, seed).run(warm_up_ns, span_ns)
        wanted = ReferenceSimulator(program, seed).run(warm_up_ns, span_ns)
        assert asdict(found) == asdict(wanted), f"seed {seed}"
        progress += bool(sum(found.rounds) and sum(found.wait_ns))
    assert progress > PROGRAMS / 5  # threads go on, and wait
