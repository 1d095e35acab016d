"""The findings of ``contention_patterns``: one type for each pattern, with its figures.

``format/patterns.py`` makes the sentences from these figures. docs/patterns.md explains each
pattern. Durations are seconds, rates are per second, shares are from 0 to 1.
"""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from locktop.collector.model import Frame, PatternName


class _Finding(Struct, frozen=True):
    """The fields that all findings have."""

    lock: int  # id; 0: the finding is about no single lock
    tids: tuple[int, ...]  # the threads that show the pattern, in ascending order


class Convoy(_Finding, frozen=True):
    """The handover of a lock takes longer than the work under the lock."""

    name: ClassVar = PatternName.CONVOY
    waiters: int
    acquisitions_per_s: float
    contended: float  # share of the acquisitions that had to wait
    unheld: float  # share of the wait during which no thread held the lock
    hold_s: float  # mean


class Serialised(_Finding, frozen=True):
    """Most active threads hold one lock or wait for it."""

    name: ClassVar = PatternName.SERIALISED
    held: float  # share of the time; may be a little over 1
    involved: int  # threads that hold the lock or wait for it
    active: int  # threads that are not idle
    contended: float  # share of the acquisitions that had to wait
    acquisitions_per_s: float


class ThunderingHerd(_Finding, frozen=True):
    """One signal wakes many threads, most of which find no work."""

    name: ClassVar = PatternName.THUNDERING_HERD
    waiters: int
    wakeups_per_s: float
    signals_per_s: float
    max_cpu_s: float  # upper limit of the CPU time that a woken thread uses


class StarvedWriter(_Finding, frozen=True):
    """Readers that came later keep a writer from a reader-writer lock."""

    name: ClassVar = PatternName.STARVED_WRITER
    writers: int
    longest_wait_s: float
    readers: int
    longest_read_s: float


class PerhapsStarved(_Finding, frozen=True):
    """Writers wait for a lock that threads took to read meanwhile; its readers are not known."""

    name: ClassVar = PatternName.PERHAPS_STARVED
    writers: int
    longest_wait_s: float
    is_lower_bound: bool  # of longest_wait_s
    readers: int
    later_reads: int


class LongHold(_Finding, frozen=True):
    """A thread sleeps in a system call while it holds a lock."""

    name: ClassVar = PatternName.LONG_HOLD
    held_s: float
    is_lower_bound: bool  # of held_s
    holder: int  # tid
    holder_name: str  # "" unknown
    call: str  # the system call with its arguments, "" unknown
    waiters: int
    longest_wait_s: float


class FalseIdle(_Finding, frozen=True):
    """Threads wait for work, but the threads that would signal them wait for a lock."""

    name: ClassVar = PatternName.FALSE_IDLE
    waiters: int
    longest_wait_s: float
    signallers: int
    contended_lock: str  # the name of the lock that the first signaller waits for
    other_locks: bool  # the signallers wait for more than one lock
    shortest_contended_s: float  # the shortest wait of a signaller


class Oversubscribed(_Finding, frozen=True):
    """More threads want a CPU than there are CPUs, while threads wait for locks."""

    name: ClassVar = PatternName.OVERSUBSCRIBED
    runnable: int  # threads that want a CPU
    cpus: int
    cpus_used: float  # what these threads had together in the last interval
    waiters: int  # threads that wait for locks


class CpuStarved(_Finding, frozen=True):
    """Threads wait for locks whose holder waits for a CPU, or the next holder of a free one."""

    name: ClassVar = PatternName.CPU_STARVED
    wanted: float  # threads on a CPU or ready to run, the mean of the last interval
    cpus: int
    cpus_used: float
    unheld: float  # share of the wait during which no thread held the lock
    unrun: float = 0.0  # share of the wait during which the holder was ready, and had no CPU


class Contended(_Finding, frozen=True):
    """Threads queue for a sampled lock in nearly all samples of the last scans."""

    name: ClassVar = PatternName.CONTENDED
    samples: int
    waited: int  # samples in which a thread waited
    at_once: int  # the most threads that waited in one sample
    location: Frame | None  # where the holder was most often, None: not known
    location_scans: int  # scans that show the holder in this function
    scans: int  # scans that show where the holder was


class HighRate(_Finding, frozen=True):
    """A lock without contention is taken very often."""

    name: ClassVar = PatternName.HIGH_RATE
    acquisitions_per_s: float
    contended_per_s: float


class NoSignal(_Finding, frozen=True):
    """Threads wait for a condition for long, and no signal has reached them."""

    name: ClassVar = PatternName.NO_SIGNAL
    waiters: int
    longest_wait_s: float
    signals: int  # all came while no thread waited
    conditions: int  # at the same source location


Finding = (
    Convoy
    | Serialised
    | ThunderingHerd
    | StarvedWriter
    | PerhapsStarved
    | LongHold
    | FalseIdle
    | Oversubscribed
    | CpuStarved
    | Contended
    | HighRate
    | NoSignal
)
