"""Samples of the holders of contended locks, joined with the records of the rings by time."""

from __future__ import annotations

import threading
import time
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from locktop.collector.analysis.lock_pressure import PressurePoint, pressure
from locktop.collector.errors import LocktopError
from locktop.collector.extensions.inside.bursts import BURST_S
from locktop.collector.extensions.inside.held_spans import charge, recorded_spans, unrecorded_spans
from locktop.collector.extensions.inside.holder_sampler import MAX_THREADS, HolderSampler
from locktop.collector.extensions.inside.model import (
    HeldSpan,
    HolderSample,
    InsideProfile,
    InsideStack,
    LockInside,
)
from locktop.collector.model import CONTENTION_KINDS, Draft, Frame, Lock, WaitRecord
from locktop.collector.native import ffi, lib
from locktop.collector.shm import event_ring, slot_batch
from locktop.collector.shm.clock import clock_pair
from locktop.collector.shm.control import RENEW_EVERY_S, WantedHolds
from locktop.collector.shm.ring_drain import RingDrain
from locktop.collector.shm.slot_batch import SlotBatch

#: Seconds of ring records in one batch.
_BATCH_S = 0.25
#: The same when a burst ends.
_LAST_BATCH_S = 0.02
#: Samples that wait for the end of a hold: an older one stays without a lock.
_KEPT_NS = 60_000_000_000
#: Slices of the pressure, and the latest seconds that they cover.
SLICES = 6
PRESSURE_S = 60.0
_NS = 1_000_000_000
#: Records of a batch whose threads are noted.
_NOTED = 64
#: By so much two clocks may differ.
_MARGIN_NS = 1_000_000
#: Stacks of one lock; the samples of others are added up.
_MAX_STACKS = 1000
#: Scans for which a thread stays among the sampled ones after its last contention.
_STAYS = 10
_new_uncleared = ffi.new_allocator(should_clear_after_alloc=False)


class _SampleKey(NamedTuple):
    """The fields of an InsideStack without the count."""

    site: int
    stack: int
    on_cpu: bool
    call: str


class InsideProfiler:
    """Samples the holders of one program's contended locks until it is closed."""

    def __init__(
        self,
        sampler: HolderSampler,
        drain: RingDrain,
        wanted: WantedHolds,
        clock_kind: int,
        locks: Collection[int] | None = None,
    ) -> None:
        """Args:
        sampler: the profiler closes it.
        drain: the ring records; the profiler closes it.
        wanted: the request for records of holds; the profiler closes it.
        clock_kind: the clock of the records (enum lt_clock_kind).
        locks: ids of the locks that matter; None: all.
        """
        self._sampler = sampler
        self._drain = drain
        self._wanted = wanted
        self._clock_kind = clock_kind
        self._locks = frozenset(locks) if locks is not None else None
        self._began = time.monotonic()
        self._busy = threading.Lock()  # of the fields below
        self._samples: dict[int, list[HolderSample]] = {}  # by tid, in the order of time
        self._noted: set[int] = set()  # threads of records since the last scan
        #: The locks that a sample is charged to, by _key().
        self._charged: dict[tuple[int, int, bool], set[int]] = {}
        self._counts: dict[int, Counter[_SampleKey]] = {}  # by lock
        self._inside = 0
        self._asleep = 0  # samples of sleeping threads that the last batch was charged with
        self._sleeping_holders = False  # at the last scan
        self._last: SlotBatch | None = None
        self._records: list[WaitRecord] = []  # of the batch before
        #: Threads and locks with a record of a hold: tid, lock.
        self._recorded: set[tuple[int, int]] = set()
        self._contended: dict[int, int] = {}  # by tid, at the last scan
        self._points: dict[int, list[PressurePoint]] = {}  # by lock
        self._renewed_at = float("-inf")  # time.monotonic()
        self._hold_s: dict[int, float] = {}  # by lock, at the first scan
        self._scanned_s = 0.0  # CLOCK_MONOTONIC
        self._scans = 0
        self._met: dict[int, int] = {}  # by tid: the last scan that showed it in contention
        self._turn = 0
        self._candidates = 0
        self._is_stopped = False
        self._woken = threading.Event()  # ends a pause between bursts
        self._fault: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="inside locks", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Take no more samples, and release the rings."""
        self._is_stopped = True
        while self._thread.is_alive():
            self._hurry()
            self._thread.join(0.01)
        self._sampler.close()

    def frames(self, stack: int) -> tuple[Frame, ...]:
        """Return the frames of a stack of a sample."""
        return self._sampler.frames(stack)

    # ---- the thread ----

    def _run(self) -> None:
        try:
            while not self._is_stopped:
                self._pause()
                left_s = self._sampler.bursts.ends_at - time.monotonic()
                self._drain_once(min(_BATCH_S, max(_LAST_BATCH_S, left_s)))
        except LocktopError:
            pass  # the next scan reports the damage
        except Exception as error:
            self._fault = error
        finally:
            self._drain.close()
            self._wanted.close()

    def _pause(self) -> None:
        """Wait for the next burst of samples, after the records of the last one."""
        pause_s = self._sampler.pause_s
        if pause_s:
            self._drain_once(0.0)
            self._woken.wait(pause_s)
            self._woken.clear()

    def _hurry(self) -> None:
        """Let the thread take a batch soon."""
        self._drain.hurry()
        self._woken.set()

    def _drain_once(self, within_s: float) -> None:
        now = time.monotonic()
        if now > self._renewed_at + RENEW_EVERY_S:
            self._renewed_at = now
            self._wanted.renew()
        batch = self._drain.take(within_s).slots
        with self._busy:
            self._join(batch)

    # ---- the join ----

    def _join(self, batch: SlotBatch) -> None:
        """Charge the records of the batch before: all samples within them are there by now."""
        self._add_samples()
        before, self._last = self._last, batch
        records = self._pick_records(before) if before is not None else []
        former, self._records = self._records, records
        self._asleep = 0
        spans = recorded_spans(records)
        self._recorded.update((span.tid, span.lock) for span in spans)
        self._charge(spans)
        # A hold of another thread during the wait may have its record in the next batch.
        self._charge(unrecorded_spans(former, [*former, *records], self._recorded))
        self._sampler.is_calm = not self._asleep and not self._sleeping_holders

    def _add_samples(self) -> None:
        new: dict[int, list[HolderSample]] = {}
        for sample in self._sampler.take():
            new.setdefault(sample.tid, []).append(sample)
        for tid, samples in new.items():
            samples_of_thread = self._samples.setdefault(tid, [])
            samples.sort(key=_time)
            # The kernel may hand over a sample later than one from outside.
            is_sorted = not samples_of_thread or samples_of_thread[-1].time_ns <= samples[0].time_ns
            samples_of_thread += samples
            if not is_sorted:
                samples_of_thread.sort(key=_time)

    def _drop_old_samples(self) -> None:
        oldest = time.monotonic_ns() - _KEPT_NS
        for tid, samples_of_thread in list(self._samples.items()):
            first = bisect_left(samples_of_thread, oldest, key=_time)
            for sample in samples_of_thread[:first]:
                self._charged.pop(_key(sample), None)
            del samples_of_thread[:first]
            if not samples_of_thread:
                del self._samples[tid]

    def _pick_records(self, batch: SlotBatch) -> list[WaitRecord]:
        """Return the records of a batch that touch a sample, by the clock of the samples."""
        if not batch.packed:
            return []
        data = slot_batch.slots(batch)
        self._note_threads(data)
        ticks, ns = clock_pair(self._clock_kind)
        rate = batch.hz / _NS
        first_ns = ns - round((ticks - batch.first) / rate) - _MARGIN_NS
        moments = array(
            "Q",
            sorted(
                max(0, ticks - round((ns - sample.time_ns) * rate))
                for of_thread in self._samples.values()
                for sample in of_thread[bisect_left(of_thread, first_ns, key=_time) :]
            ),
        )
        buffer = _new_uncleared("uint8_t[]", max(len(data), 1))
        count = lib.lt_pick_moments(
            ffi.from_buffer("uint8_t[]", data),
            len(data) // event_ring.SIZE,
            ffi.from_buffer("uint64_t[]", moments),
            len(moments),
            buffer,
        )
        raw = bytes(ffi.buffer(buffer, count * event_ring.SIZE))
        picked = replace(slot_batch.replace_records(batch, raw), ticks=ticks, time_ns=ns)
        return [record for record in slot_batch.decode(picked) if self._wants(record.lock)]

    def _note_threads(self, data: bytes) -> None:
        """Note the threads of some records: they had the lock, or somebody waited for them."""
        count = len(data) // event_ring.SIZE
        starts = range(0, len(data), max(count // _NOTED, 1) * event_ring.SIZE)
        some = b"".join(data[start : start + event_ring.SIZE] for start in starts)
        for record in event_ring.decode(some)[0]:
            if self._wants(record.lock) and (record.hold or record.holder):
                self._noted.update(tid for tid in (record.tid, record.holder) if tid)

    def _wants(self, lock: int) -> bool:
        return self._locks is None or lock in self._locks

    def _charge(self, spans: Iterable[HeldSpan]) -> None:
        for span, sample in charge(self._samples, spans):
            locks = self._charged.setdefault(_key(sample), set())
            if span.lock in locks:
                continue
            if not locks:
                self._inside += sample.count
            locks.add(span.lock)
            key = _SampleKey(span.site, sample.stack, sample.on_cpu, sample.call)
            self._counts.setdefault(span.lock, Counter())[key] += sample.count
            self._asleep += not sample.on_cpu

    # ---- scans ----

    def profile(self, draft: Draft, now_ns: int, is_last: bool) -> InsideProfile:
        """Return what ran inside the locks, and choose the threads to sample next.

        Args:
            draft: a scan.
            now_ns: the time of its reading, CLOCK_MONOTONIC.
            is_last: whether to wait for the records until now.

        Raises:
            Exception: the fault that ended a thread.
        """
        if self._fault is not None:
            raise self._fault
        if is_last:
            self._flush()
        with self._busy:
            self._add_samples()
            self._drop_old_samples()
            before = self._asleep
            self._charge(self._present_holds(draft, now_ns))
            self._sleeping_holders = self._asleep > before
            self._add_points(draft, now_ns / _NS)
            if not draft.ended:
                self._follow(draft)
            draft.notes = (*draft.notes, *self._notes())
            return self._profile(draft.locks)

    def _flush(self) -> None:
        """Charge the records of this moment too."""
        for _ in range(3):
            with self._busy:
                last = self._last
            until = time.monotonic() + 1.0
            while self._last is last and self._thread.is_alive() and time.monotonic() < until:
                self._hurry()
                time.sleep(0.005)

    def _present_holds(self, draft: Draft, now_ns: int) -> list[HeldSpan]:
        """Return the holds that go on, of locks for which threads wait."""
        waited = {lock.id for lock in draft.locks if lock.waiters and self._wants(lock.id)}
        waits = [
            WaitRecord(
                tid=thread.tid,
                lock=wait.lock,
                kind=wait.kind,
                began_ns=now_ns - round(wait.duration_s * _NS),
                wait_ns=round(wait.duration_s * _NS),
                hold_ns=None,
                stack=wait.stack,
                holder=wait.holder_seen,
                site=wait.site,
            )
            for thread in draft.threads
            if (wait := thread.waiting_for) is not None and wait.lock in waited
        ]
        spans = [
            HeldSpan(
                tid=thread.tid,
                lock=held.lock,
                begin_ns=now_ns - round((held.duration_s or 0.0) * _NS),
                end_ns=now_ns,
                site=held.site,
            )
            for thread in draft.threads
            if thread.tid in self._samples
            for held in thread.holds
            if held.lock in waited
        ]
        # A hold that is not timed: the waits tell since when it lasts at least.
        untimed = {(span.tid, span.lock): span for span in spans if span.begin_ns == now_ns}
        spans += [
            replace(span, site=untimed[span.tid, span.lock].site)
            for span in unrecorded_spans(waits, [*self._records, *waits])
            if (span.tid, span.lock) in untimed
        ]
        return spans

    def _add_points(self, draft: Draft, time_s: float) -> None:
        threads = sum(thread.alive for thread in draft.threads)
        before_s, self._scanned_s = self._scanned_s, time_s
        for lock in draft.locks:
            if lock.kind not in CONTENTION_KINDS or not lock.wait_s or not self._wants(lock.id):
                continue
            points = self._points.get(lock.id)
            if points is None:
                points = self._points[lock.id] = []
                if before_s:  # nobody had waited for the lock then
                    points.append(PressurePoint(before_s, 0.0, threads))
            points.append(PressurePoint(time_s, lock.wait_s - lock.idle_s, threads))
            while len(points) > 2 and points[1].time_s <= time_s - PRESSURE_S:
                del points[0]

    def _follow(self, draft: Draft) -> None:
        """Choose the threads that have to do with contended locks, in turns if they are many."""
        moved = Counter[int]()
        for thread in draft.threads:
            contended = thread.contended or 0
            grown = contended - self._contended.get(thread.tid, 0)
            self._contended[thread.tid] = contended
            if grown > 0 and thread.alive and not thread.pid:
                moved[thread.tid] += grown
        now: dict[int, None] = {}
        for lock in draft.locks:
            if lock.waiters and not lock.idle and self._wants(lock.id):
                now.update(dict.fromkeys(lock.holders))
        for thread in draft.threads:
            wait = thread.waiting_for
            if wait is not None and wait.holder_seen and not wait.idle and self._wants(wait.lock):
                now[wait.holder_seen] = None
        living = {thread.tid for thread in draft.threads if thread.alive and not thread.pid}
        chosen = [tid for tid in now if tid in living]
        chosen += [tid for tid, _ in moved.most_common() if tid not in now]
        noted, self._noted = self._noted, set()
        chosen += [tid for tid in sorted(noted & living) if tid not in chosen]
        self._scans += 1
        self._met |= dict.fromkeys(chosen, self._scans)
        # A quiet moment says little.
        recent = {
            tid: scan_number
            for tid, scan_number in self._met.items()
            if scan_number > self._scans - _STAYS
        }
        self._met = recent
        chosen += [tid for tid in recent if tid in living and recent[tid] < self._scans]
        self._candidates = len(chosen)
        if len(chosen) > MAX_THREADS:
            self._turn = (self._turn + MAX_THREADS) % len(chosen)
            chosen.sort()
            chosen = [*chosen[self._turn :], *chosen[: self._turn]]
        self._sampler.follow(chosen)

    def _profile(self, locks: Iterable[Lock]) -> InsideProfile:
        taken = self._sampler.taken
        by_id = {lock.id: self._lock_inside(lock) for lock in locks}
        return InsideProfile(
            duration_s=time.monotonic() - self._began,
            period_s=self._sampler.period_s,
            samples=taken,
            unjoined=max(taken - self._inside, 0),
            lost=self._sampler.lost,
            threads=self._sampler.sampled,
            locks={id_: inside for id_, inside in by_id.items() if inside is not None},
        )

    def _lock_inside(self, lock: Lock) -> LockInside | None:
        counts, points = self._counts.get(lock.id), self._points.get(lock.id, ())
        if not counts and not points:
            return None
        entries = _fewer(counts or Counter[_SampleKey]())
        samples = sum(count for _, count in entries)
        # Holders that wait for a CPU have no sample. The counters lack the holds that go on.
        hold_s = (lock.hold_s or 0.0) - self._hold_s.setdefault(lock.id, lock.hold_s or 0.0)
        held_s = max(hold_s, samples * self._sampler.period_s)
        stacks = tuple(
            InsideStack(
                site=entry.site,
                stack=entry.stack,
                count=count,
                on_cpu=entry.on_cpu,
                call=entry.call,
            )
            for entry, count in entries
        )
        return LockInside(
            samples=samples,
            on_cpu=sum(stack.count for stack in stacks if stack.on_cpu),
            share=held_s / max(time.monotonic() - self._began, 1e-9),
            stacks=stacks,
            pressure=pressure(points, SLICES),
            pressure_slice_s=(points[-1].time_s - points[0].time_s) / SLICES if points else 0.0,
        )

    def _notes(self) -> Sequence[str]:
        notes = [self._wanted.note] if self._wanted.note else []
        if refused := self._sampler.refused:
            notes.append(
                f"what runs inside locks is known of sleeping holders alone: {refused};"
                " kernel.perf_event_paranoid 2 or less, or CAP_PERFMON for locktop, lets running"
                " holders be sampled too"
            )
        if self._sampler.has_turns:
            notes.append(
                "running holders switch so often that they are sampled in short turns, and each"
                " such sample stands for more time; kernel.perf_event_paranoid 0 or less, or"
                " CAP_PERFMON for locktop, lets them be sampled all the time"
            )
        if self._sampler.bursts.cycles > 1:
            notes.append(
                "threads with contended locks switch so often that samples are taken in bursts of"
                f" {BURST_S:g} s, one each {BURST_S * self._sampler.bursts.cycles:g} s"
            )
        most = self._sampler.sampled if self._sampler.is_full else MAX_THREADS
        if not refused and self._candidates > most:
            notes.append(
                f"{self._candidates} threads take contended locks: {most} of them are sampled at"
                " a time, in turns"
            )
        return notes


def _fewer(counts: Counter[_SampleKey]) -> list[tuple[_SampleKey, int]]:
    """Return the most frequent keys with their counts; the others are added up by call site."""
    entries = counts.most_common()
    if len(entries) <= _MAX_STACKS:
        return entries
    others = Counter[_SampleKey]()
    for key, count in entries[_MAX_STACKS:]:
        others[_SampleKey(key.site, 0, key.on_cpu, "")] += count
    return [*entries[:_MAX_STACKS], *others.most_common()]


def _time(sample: HolderSample) -> int:
    return sample.time_ns


def _key(sample: HolderSample) -> tuple[int, int, bool]:
    return sample.tid, sample.time_ns, sample.on_cpu
