"""Predictions: what the throughput of a program would be after a change of its locks."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

#: A bound for readers of a stranger's file: a report has a character for each part.
MAX_PARTS = 1024


class ChangeKind(StrEnum):
    """The types of change. The value is the word in JSON."""

    HOLD = "hold"  # threads hold the lock for ``amount`` times as long
    SPLIT = "split"  # ``amount`` locks in place of one, each taken at random
    RW = "rw"  # an rwlock in place of a mutex; the share ``amount`` of acquisitions read
    THREADS = "threads"  # the group has ``amount`` threads
    CPUS = "cpus"  # the program has ``amount`` CPUs


class Change(Struct, frozen=True):
    """One change of a program."""

    kind: ChangeKind
    amount: float
    lock: int = 0  # id; 0: not of a lock
    group: str = ""  # name of the threads without their number; "": not of threads


class Prediction(Struct, frozen=True):
    """The throughput after a change, as a multiple of the throughput now."""

    change: Change
    ratio: float  # 1.0: no gain
    low: float  # the interval of ``ratio``: 9 of 10 repeated predictions lie in it
    high: float
    #: The measured times allow no more: CPUs, the busiest lock, threads without any wait. The
    #: interval has the model's error on top.
    bound: float


class WhatIfRefusal(StrEnum):
    """A reason for no predictions. The value is the word in JSON."""

    LOST = "lost records"  # too many records were overwritten before they could be read
    FEW = "few rounds"  # the program used its locks too seldom in the span
    PHASES = "phases"  # the throughput changes within the span
    REPLAY = "replay"  # without a change the replay has another throughput than the recording
    STARVED = "CPU limit"  # threads wait for CPUs while CPUs are free
    DEPENDENT = "dependent threads"  # the threads of a group wake each other one by one
    REQUESTS = "waits for requests"  # the threads of a group mostly wait for requests
    STOPPED = "stopped replay"  # after a change, threads of the replay wait for all of its time
    BRIEF = "brief threads"  # threads begin or end in the span
    UNOBSERVED = "unobserved waits"  # threads wait where the library sees nothing
    UNRECORDED = "unrecorded holds"  # of a futex that is a lock, most holds have no record


class Progress(Struct, frozen=True):
    """How far predictions are, and what is known so far."""

    is_recorded: bool  # the replays go on; False: the recording goes on
    part: float  # of the recording, or of the replays, 0..1
    learned: str = ""  # in words: the records so far, or the best change so far


class RefusedChange(Struct, frozen=True):
    """A change without a prediction, beside others that may have one."""

    change: Change
    reason: WhatIfRefusal


class LockPressureShare(Struct, frozen=True):
    """How much of the threads' time a lock takes. Shares are 0 to 1."""

    lock: int  # id
    wait_share: float  # of all threads' time: waits for the lock
    wait_shares: tuple[float, ...]  # the same in each part of the span
    path_share: float  # of the critical path: holds of the lock


class UnitKind(StrEnum):
    """The kinds of throughput. The value is the word in JSON."""

    ROUNDS = "rounds"  # of each thread: from one call to the next one of its kind
    LOCK = "lock"  # acquisitions of one lock
    MARKS = "marks"  # marks of the program, each of them a transaction


class ThroughputUnit(Struct, frozen=True):
    """The unit in which a throughput is counted."""

    kind: UnitKind
    lock: int = 0  # id; 0: not of a lock
    mark: str = ""  # the text of the marks, or its begin; "": not of marks


class WhatIf(Struct, frozen=True):
    """The answers for one recorded span of a process."""

    span_s: float  # seconds that were recorded
    parts: Annotated[int, Meta(ge=0, le=MAX_PARTS)]  # parts of the span that were replayed
    rounds_per_s: float  # throughput that was recorded, in ``unit``
    unit: ThroughputUnit
    #: replayed throughput without a change, as a multiple of the recorded one; 0: no part
    replayed: float
    refusal: WhatIfRefusal | None  # why no change has a prediction; None: some have one
    predictions: tuple[Prediction, ...]  # the largest gain first
    pressure: tuple[LockPressureShare, ...]  # the largest first
    cpus: int  # that the process may use
    cpus_used: float
    #: the throughput at the level that records all, as a multiple of that before; None: not known
    recording_cost: float | None = None
    level_before: str = ""  # of the library, before the recording; "" not known
    level_after: str = ""  # the same, read after the recording
    taken_at: str = ""  # the end of the span, ISO 8601, UTC; "" unknown
    names: Mapping[int, str] = {}  # of the locks here, by id: they may end before a later snapshot
    is_recorded: bool = False  # from a recording, which knows less than a live process shows
    refused: tuple[RefusedChange, ...] = ()  # the changes that have none, in the order of the user
    #: By id: the replayed futexes, whose holds that began without a wait are mostly not seen. The
    #: share of the span, 0..1, in which they are held in the replay.
    partly_seen: Mapping[int, float] = {}
    #: When the throughput changed most, if that refuses all, ISO 8601, UTC; else "".
    changed_at: str = ""
    #: With the refusal FEW: the threads that have waited for all of the span, for which lock, and
    #: its holder, as a sentence without a full stop; "" without such threads.
    stuck: str = ""
