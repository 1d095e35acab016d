"""The memory of a live process has all ring records, or it counts the lost ones."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Struct
from support.eventually import until
from support.targets import Compiler, StartTarget, Target

from locktop.collector.recording.history import History
from locktop.collector.recording.memory_keeper import MemoryKeeper
from locktop.collector.recording.ring_keeper import RingKeeper
from locktop.collector.recording.time_lines import TimeLineReader
from locktop.collector.sources.attach import attach
from locktop.collector.sources.launch import preload_environment

_ALWAYS = (0, 1 << 62)
_THREADS = 8
#: Records of one ring.
_RING = 4096


@contextmanager
def stopped(target: Target) -> Iterator[None]:
    """Stop a target for a while."""
    os.kill(target.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(target.pid, signal.SIGCONT)


def turns(target: Target) -> int:
    """Return how many turns the threads have taken."""
    target.go_on()
    return int(target.truth()["turns"])


class Kept(Struct):
    """The memory of a target that took turns."""

    history: History
    records: int
    lost: int


@contextmanager
def kept_turns(
    start_target: StartTarget, count: int, cpu_share: float | None = None
) -> Iterator[Kept]:
    """Keep so many turns, and compare their records with the truth that the target reports.

    Args:
        start_target: starts the target.
        count: turns to keep at least.
        cpu_share: of the thread that copies the records; None: as on the screen.
    """
    target = start_target("threads_take_turns", "lock", str(_THREADS), level="all")
    target.expect("ready")
    source, history = attach(target.pid, only_exact=True), History()
    drain = source.drain(1) if cpu_share is not None else None
    keeper = MemoryKeeper(source if drain is None else None, history)
    before = turns(target)
    rings: MemoryKeeper | RingKeeper = keeper
    if drain is not None and cpu_share is not None:
        rings = RingKeeper(drain, history, cpu_share=cpu_share)
    keeper.keep(source.scan())
    begin = turns(target)
    until(lambda: turns(target) > begin + count, "many turns")
    end = turns(target)
    rings.flush()
    keeper.keep(source.scan())
    with stopped(target):
        rings.flush()
        rings.close()
    after = turns(target)
    lost = history.lost_records(*_ALWAYS)
    assert lost is not None
    records = len(history.records(*_ALWAYS))
    assert end - begin <= records + lost <= after - before + _THREADS * _RING
    yield Kept(history, records, lost)
    source.close()


def test_a_busy_process_has_as_many_records_as_turns(start_target: StartTarget) -> None:
    """A scan copies 8,192 records: most of these would be lost."""
    with kept_turns(start_target, 50_000) as kept:
        assert kept.records > 3 * 8192  # also on a machine with much else to do


def test_records_that_cost_too_much_are_left_out_and_counted(start_target: StartTarget) -> None:
    with kept_turns(start_target, 15 * _THREADS * _RING, cpu_share=1e-6) as kept:
        assert kept.lost > 5 * _THREADS * _RING
        reader = TimeLineReader(kept.history, max_records=10**7)
        from_ns, to_ns = reader.bounds()
        assert reader.read(from_ns, to_ns).lost_records > _THREADS * _RING
        middle_ns = (from_ns + to_ns) // 2
        assert reader.read(middle_ns, middle_ns + 10_000_000).lost_records > 0


def test_a_memory_beside_a_recording_follows_into_another_program(compiler: Compiler) -> None:
    script = f"echo ready; read go; exec {compiler.program('paced_pairs')} 4 5000 0 5"
    environment = preload_environment("all") | {"LOCKTOP_RING": "32768"}
    with Target(["sh", "-c", script], environment) as target:
        target.expect("ready")
        source, history = attach(target.pid, only_exact=True), History()
        keeper = MemoryKeeper(source, history)
        keeper.keep(source.scan())
        beside = source.drain()
        assert beside is not None
        target.go_on()
        target.expect("ready")
        until(lambda: source.scan().process.comm == "paced_pairs", "the other program")
        target.go_on()
        pairs = target.truth()["pairs"]
        keeper.flush()  # the file of the first program
        keeper.flush()
        keeper.close()
        taken = sum(beside.take(0.0).slots.packed for _ in range(9))
        beside.close()
        source.close()
    assert history.lost_records(*_ALWAYS) == 0
    assert len(history.records(*_ALWAYS)) >= pairs
    assert taken >= pairs
