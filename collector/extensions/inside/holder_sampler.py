"""Stacks of chosen threads at a steady rate, on a CPU and asleep, from a thread of its own.

The kernel samples a thread while it runs (perf_stream.py). A sleeping thread uses no processor
time. So its stack is read from outside at the same rate, once for each sleep.
"""

from __future__ import annotations

import math
import random
import threading
import time
from collections.abc import Sequence
from typing import NamedTuple

from locktop.collector.extensions.inside.bursts import Bursts
from locktop.collector.extensions.inside.duty_cycle import COUNTED_S, DutyCycle, RunCounts
from locktop.collector.extensions.inside.model import RATE, HolderSample
from locktop.collector.linux import syscalls
from locktop.collector.linux.threads import KernelThreads, ThreadMoment
from locktop.collector.model import Frame
from locktop.collector.sources.probes.native_stacks import SAMPLES_FIRST_ID, visible_frames
from locktop.collector.symbols.resolver import Resolver
from locktop.collector.symbols.unwind.arch import architecture
from locktop.collector.symbols.unwind.cursor import Unwound
from locktop.collector.symbols.unwind.perf_stream import SampleStream
from locktop.collector.symbols.unwind.sample_cache import SampleCache
from locktop.collector.symbols.unwind.unwinder import Unwinder

#: Threads that are sampled at once.
MAX_THREADS = 16
_MAX_STACKS = 20_000
#: The share of a CPU that sampling may take; above it the pauses become longer.
_CPU_SHARE = 0.1
#: Periods between two rounds at most: a ring has room for more samples.
_MAX_PAUSE = 6
#: The same while no sampled thread slept with a contended lock.
_CALM_PAUSE = 4
#: Seconds for which the memory map of the process holds.
_MAPS_S = 0.5
#: Periods that one sample may stand for.
_MAX_COUNT = 20
#: Switches in a second of a thread that is read once a period. Of a thread with more switches,
#: most periods are not read.
READ_SWITCHES = 500.0
#: Periods between two readings of a thread at most.
MAX_READ_PAUSE = 20
#: The share of our descriptors for the files of the sampled threads.
_FILES_SHARE = 0.02
_ASLEEP = "SD"


class _SampledStack(NamedTuple):
    addresses: tuple[int, ...]
    complete: bool
    running: bool


class Pause(NamedTuple):
    """How long a thread is not read, by its switches in the span before."""

    periods: int
    counted_ns: int  # the begin of the present span
    switches: int  # of the thread's life, at that time


class LastSeen(NamedTuple):
    """A thread at the last reading."""

    moment: ThreadMoment
    at_ns: int  # without the pauses between bursts
    stack: int
    pause: Pause
    read_ns: int = 0  # CLOCK_MONOTONIC


class HolderSampler:
    """Samples threads until it is closed. Thread ids are those of the process's own namespace."""

    def __init__(self, pid: int, own_pid: int, resolver: Resolver, rate: float = RATE) -> None:
        """Raises LookupError if stacks of this processor cannot be followed."""
        processor = architecture()
        if processor is None:
            raise LookupError("stacks of this processor cannot be followed")
        self.period_s = 1.0 / rate
        self._unwinder = Unwinder(pid, processor, _MAPS_S)
        self._cache = SampleCache(processor)
        self._tasks = KernelThreads(pid, own_pid, _FILES_SHARE)
        self._stream = SampleStream(processor, rate)
        self._duty = DutyCycle(self._stream, self.period_s)
        self._resolver = resolver
        self._changed = threading.Lock()  # of the fields below
        self._samples: list[HolderSample] = []
        self._wanted: tuple[int, ...] = ()
        self._stopped = threading.Event()
        self._paused_s = 0.0  # seconds between bursts
        self._fault: Exception | None = None
        self._followed: dict[int, int] = {}  # tids by the ids of our own pid namespace
        self._seen: dict[int, LastSeen] = {}  # by tid
        self._ids: dict[_SampledStack, int] = {}
        self._stacks: dict[int, _SampledStack] = {}
        self._frames: dict[int, tuple[tuple[Frame, ...], tuple[Frame, ...]]] = {}
        #: Whether no sampled thread slept with a contended lock of late. Then each sample of a
        #: sleeping thread may stand for several periods.
        self.is_calm = False
        self.taken = 0  # samples
        self.without_stack = 0  # sleeping threads whose call or stack may not be read
        self._thread = threading.Thread(target=self._run, name="holder samples", daemon=True)
        self._thread.start()

    def follow(self, tids: Sequence[int]) -> None:
        """Sample these threads, at most MAX_THREADS, and no others."""
        self._wanted = tuple(tids[:MAX_THREADS])

    def take(self) -> list[HolderSample]:
        """Return the samples since the last call, by the clock CLOCK_MONOTONIC.

        Raises:
            Exception: the fault that ended the thread.
        """
        if self._fault is not None:
            raise self._fault
        with self._changed:
            taken, self._samples = self._samples, []
            return taken

    @property
    def lost(self) -> int:
        """Samples that the kernel could not store."""
        return self._stream.lost

    @property
    def refused(self) -> str:
        """Why running threads are not sampled; "" if they are."""
        return self._stream.refused

    @property
    def sampled(self) -> int:
        """The number of threads that are sampled while they run."""
        return self._stream.sampled

    @property
    def has_turns(self) -> bool:
        """Whether running threads are sampled for short turns alone."""
        return self._duty.has_turns and not self._stream.is_wide

    @property
    def bursts(self) -> Bursts:
        """The times at which samples are taken at all."""
        return self._duty.bursts

    @property
    def pause_s(self) -> float:
        """Seconds for which no sample is taken, and no thread is read; 0.0 during a burst."""
        return self._duty.pause_s

    @property
    def is_full(self) -> bool:
        """Whether there is no memory to sample more threads."""
        return self._stream.is_full

    def frames(self, stack: int) -> tuple[Frame, ...]:
        """Return the frames of a stack, innermost first. The thread that scans calls this."""
        sampled = self._stacks.get(stack)
        if sampled is None:
            return ()
        frames = self._resolver.stack(stack, sampled.addresses)
        cached = self._frames.get(stack)
        if cached is not None and cached[0] is frames:
            return cached[1]
        visible = visible_frames(frames, running=sampled.running, complete=sampled.complete)
        self._frames[stack] = frames, visible
        return visible

    def close(self) -> None:
        """Take no more samples."""
        self._stopped.set()
        self._thread.join()

    # ---- the thread ----

    def _run(self) -> None:
        busy_pause, used_s = 1, 0.0
        began = due = time.monotonic()
        try:
            while not self._stopped.is_set():
                due += self._pause()
                pause = max(busy_pause, _CALM_PAUSE if self.is_calm else 1)
                due += pause * self.period_s
                # At a random moment of a period: a program of the same rhythm would always
                # show the same functions.
                chance_s = random.uniform(-0.5, 0.5) * self.period_s
                wakes_at = due + chance_s
                self._duty.wait(wakes_at)
                periods = pause + max(0, int((time.monotonic() - wakes_at) / self.period_s))
                due += (periods - pause) * self.period_s
                cpu_s = time.thread_time()
                self._round(periods)
                used_s += time.thread_time() - cpu_s
                passed_s = time.monotonic() - began
                if passed_s > 1.0:
                    dear = used_s > _CPU_SHARE * passed_s
                    busy_pause = min(2 * busy_pause, _MAX_PAUSE) if dear else max(1, busy_pause - 1)
                    began, used_s = time.monotonic(), 0.0
        except Exception as error:
            self._fault = error
        finally:
            self._stream.close()
            self._tasks.close()

    def _pause(self) -> float:
        """Wait for the next burst. Return the seconds of it."""
        pause_s = self._duty.pause_s
        if not pause_s:
            return 0.0
        began = time.monotonic()
        self._stopped.wait(pause_s)
        paused_s = time.monotonic() - began
        self._paused_s += paused_s
        return paused_s

    def _round(self, periods: int) -> None:
        kernel_tids = {self._tasks.kernel_tid(tid): tid for tid in self._wanted}
        running = self._duty.read()
        samples = [
            HolderSample(
                tid=self._followed[running_sample.tid],
                time_ns=running_sample.time_ns,
                stack=self._id(
                    self._cache.unwind(running_sample.copy, self._unwinder), running=True
                ),
                on_cpu=True,
                count=int(running.periods + random.random()),
            )
            for running_sample in running.copies
        ]
        # The samples so far are of the threads before.
        if kernel_tids.keys() != self._stream.threads and not self._stream.refused:
            self._stream.follow(kernel_tids)
            self._followed = kernel_tids
            self._tasks.keep_only(kernel_tids)
        samples += self._sleeping(tuple(kernel_tids.values()), periods)
        with self._changed:
            self._samples += samples
            self.taken += sum(sample.count for sample in samples)

    def _sleeping(self, tids: Sequence[int], periods: int) -> list[HolderSample]:
        # The kernel reads the states between this moment and `read_ns`.
        now_ns = time.monotonic_ns()
        at_ns = now_ns - round(1e9 * self._paused_s)
        before = {tid: self._seen[tid] for tid in tids if tid in self._seen}
        wanted = [
            tid
            for tid in tids
            if tid not in before or is_due(before[tid], at_ns, periods, self.period_s)
        ]
        try:
            moments = self._tasks.moments(wanted)
        except OSError:
            return []
        read_ns = time.monotonic_ns()
        self._seen = {tid: last for tid, last in before.items() if tid not in wanted}
        calls = [
            moment.call
            for tid, moment in moments.items()
            if moment.state in _ASLEEP
            and moment.call is not None
            and moment.call.pc
            and (tid not in before or before[tid].moment != moment)
        ]
        again = self._unwinder.cached_stacks(calls) if calls else {}
        samples = []
        for tid, moment in moments.items():
            last, stack = before.get(tid), 0
            if moment.state in _ASLEEP and moment.call is not None:
                if last is not None and last.moment == moment:
                    stack = last.stack
                else:
                    stack = self._stack_of_sleep(tid, moment, again.get(moment.call))
                count = periods_asleep(last, at_ns, periods, self.period_s)
                name = syscalls.name(moment.call.number) if moment.call.number >= 0 else ""
                samples.append(
                    HolderSample(
                        tid=tid,
                        time_ns=now_ns,
                        stack=stack,
                        on_cpu=False,
                        count=min(count, _MAX_COUNT) * self._duty.bursts.cycles,
                        call=name,
                        read_ns=read_ns,
                    )
                )
            pause = pause_of(last, moment, now_ns)
            self._seen[tid] = LastSeen(moment, at_ns, stack, pause, read_ns=now_ns)
        self._duty.count({tid: _counts(last) for tid, last in self._seen.items()})
        return samples

    def _stack_of_sleep(self, tid: int, moment: ThreadMoment, cached: Unwound | None) -> int:
        call = moment.call
        if call is None or not call.pc:
            self.without_stack += 1
            return 0
        unwound = cached
        if unwound is None:
            unwound = self._unwinder.sleeping_stack(call, lambda: self._tasks.still_sleeps(tid))
        elif not self._tasks.still_sleeps(tid):
            unwound = None
        return self._id(unwound, running=False)

    def _id(self, unwound: Unwound | None, running: bool) -> int:
        if unwound is None or not unwound.addresses:
            return 0
        # For a return address the resolver takes the instruction before; an exact address must not
        # move.
        addresses = tuple(
            address + (index in unwound.exact) for index, address in enumerate(unwound.addresses)
        )
        stack = _SampledStack(addresses=addresses, complete=unwound.complete, running=running)
        stack_id = self._ids.get(stack, 0)
        if not stack_id and len(self._ids) < _MAX_STACKS:
            stack_id = SAMPLES_FIRST_ID + len(self._ids)
            self._stacks[stack_id] = stack
            self._ids[stack] = stack_id
        return stack_id


def _counts(last: LastSeen) -> RunCounts:
    ran_ns, _, runs = last.moment.counts
    return RunCounts(last.read_ns, ran_ns, runs)


def pause_of(last: LastSeen | None, moment: ThreadMoment, now_ns: int) -> Pause:
    """Return how long a thread is not read after ``now_ns``.

    Each reading takes a lock that the kernel needs for the thread's next switch. So threads that
    switch often are read less often. The switches of a short span tell of the present sleep.
    A pause by them would leave out samples of short sleeps.
    """
    switches = moment.counts[2]
    if last is None:
        return Pause(1, now_ns, switches)
    passed_s = (now_ns - last.pause.counted_ns) / 1e9
    if passed_s < COUNTED_S:
        return last.pause
    rate = (switches - last.pause.switches) / passed_s
    periods = min(max(1, math.ceil(rate / READ_SWITCHES)), MAX_READ_PAUSE)
    return Pause(periods, now_ns, switches)


def is_due(last: LastSeen, now_ns: int, periods: int, period_s: float) -> bool:
    """Tell whether a thread is to be read, ``periods`` after the round before."""
    if last.pause.periods <= periods:
        return True
    return (now_ns - last.at_ns) / 1e9 > (last.pause.periods - 0.5) * period_s


def periods_asleep(last: LastSeen | None, now_ns: int, periods: int, period_s: float) -> int:
    """Return for how many periods a sample of a sleeping thread stands.

    These are all periods since the reading before, also those in which the thread ran. A reading
    at a random moment meets a sleep as often as the sleep's share of the time says. To count the
    slept part alone would apply that share twice.

    Args:
        last: the reading before; None if the thread was not followed.
        now_ns: the time of the sample.
        periods: periods since the round before.
        period_s: seconds of a period.
    """
    if last is None:
        return 1
    if last.pause.periods > periods:
        return max(1, round((now_ns - last.at_ns) / 1e9 / period_s))
    return periods
