"""The operational bounds of the throughput of a simulated program.

X <= min(N / (Z + S), 1 / S_max, CPUs / D), as Denning and Buzen write (ACM Computing Surveys 10,
1978). X is the throughput, and N is the number of threads. Z + S is the time of a round without any
wait. S_max is the longest time for which a round holds one lock. D is the CPU time of a round.
"""

from __future__ import annotations

from locktop.collector.extensions.whatif.analysis.simulated_program import Do, LockType, Program


def bound(program: Program) -> float:
    """Return the most rounds a second. Groups of threads keep the shares of their rounds."""
    rounds = cpu_ns = 0
    alone = 0.0  # rounds a nanosecond without any wait
    held_ns = [0] * len(program.locks)
    for thread in program.threads:
        own_rounds = own_ns = 0
        taken: set[int] = set()
        for do, lock, amount in thread.operations:
            if do == Do.ROUND:
                own_rounds += 1
            elif do == Do.TAKE:
                taken.add(lock)
            elif do == Do.RELEASE:
                taken.discard(lock)
            elif do in (Do.COMPUTE, Do.SLEEP):
                own_ns += amount
                cpu_ns += amount if do == Do.COMPUTE else 0
                for held_lock in taken:
                    held_ns[held_lock] += amount
        rounds += own_rounds
        alone += own_rounds / own_ns if own_ns else 0.0
    limits = [alone]
    limits += [rounds / held for held in _exclusive(program, held_ns) if held]
    if cpu_ns:
        limits.append(program.cpus * rounds / cpu_ns)
    return min(limits) * 1e9


def _exclusive(program: Program, held_ns: list[int]) -> list[int]:
    return [
        held
        for lock, held in zip(program.locks, held_ns, strict=True)
        if lock.type in (LockType.MUTEX, LockType.RWLOCK)
    ]
