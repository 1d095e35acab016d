"""Sentences for the contention patterns: the evidence with its figures, and the advice."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import Any

from locktop.collector.analysis.contention_findings import (
    Contended,
    Convoy,
    CpuStarved,
    FalseIdle,
    Finding,
    HighRate,
    LongHold,
    NoSignal,
    Oversubscribed,
    PerhapsStarved,
    Serialised,
    StarvedWriter,
    ThunderingHerd,
)
from locktop.collector.model import Lock, Pattern, PatternName
from locktop.collector.model.locks import GIL
from locktop.collector.render.words.source_location import short_location
from locktop.collector.render.words.units import duration, lasting

#: One sentence for each pattern: what to change in the program.
ADVICE = {
    PatternName.CONVOY: "Take the lock less often and do more each time, or split its data:"
    " the hand-over takes longer than the critical section.",
    PatternName.SERIALISED: "Do less while the lock is held, or split its data: more threads make"
    " this no faster.",
    PatternName.THUNDERING_HERD: "Where one thread is enough, use pthread_cond_signal instead of"
    " pthread_cond_broadcast, or give threads that wait for different things a condition each.",
    PatternName.STARVED_WRITER: "Make the lock prefer writers"
    " (PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP), or let readers overlap less.",
    PatternName.PERHAPS_STARVED: "See whether its readers overlap: if so, make the lock prefer"
    " writers (PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP).",
    PatternName.LONG_HOLD: "Make the call that sleeps before the lock is taken or after it is"
    " released.",
    PatternName.FALSE_IDLE: "Find out what the threads that signal it wait for: that lock keeps"
    " these from their work too.",
    PatternName.OVERSUBSCRIBED: "Run no more threads that compute than there are CPUs: a thread"
    " with a lock and without a CPU keeps all others waiting.",
    PatternName.CPU_STARVED: "Run fewer threads, or give the process more CPUs: the thread that has"
    " the lock, or may take it, waits for a CPU.",
    PatternName.CONTENDED: "Take the lock less often, do less while it is held, or split its data;"
    " `locktop run` also measures its holds.",
    PatternName.HIGH_RATE: "Take the lock once for many steps, or give each thread its own part:"
    " no thread waits for the lock, but to take it so often costs time.",
    PatternName.NO_SIGNAL: "Find the thread that has to signal it, unless these threads wait for"
    " their first work: a signal that comes before the wait is lost.",
}


#: In place of the advice about a long hold, where the lock is the GIL.
GIL_ADVICE = (
    "Give the GIL away around the long call: Py_BEGIN_ALLOW_THREADS in C,"
    " pybind11::gil_scoped_release, PyO3's Python::detach (once allow_threads), ctypes.CDLL"
    " instead of PyDLL."
)


def described(findings: Iterable[Finding], locks: Iterable[Lock] = ()) -> tuple[Pattern, ...]:
    """Return the findings with their sentences, as a snapshot has them.

    A saved snapshot has the sentences alone, so the model does not have the figures.
    """
    gils = {lock.id for lock in locks if lock.name == GIL}
    return tuple(
        Pattern(
            name=finding.name,
            lock=finding.lock,
            tids=finding.tids,
            evidence=evidence(finding),
            advice=_advice(finding, gils),
        )
        for finding in findings
    )


def _advice(finding: Finding, gils: Container[int]) -> str:
    is_long = finding.name is PatternName.LONG_HOLD
    return GIL_ADVICE if is_long and finding.lock in gils else ADVICE[finding.name]


def evidence(finding: Finding) -> str:
    """Return one sentence with the figures of a finding."""
    return _SENTENCES[type(finding)](finding)


def _convoy(finding: Convoy) -> str:
    return (
        f"{finding.waiters} threads wait; {_percent(finding.contended)} of"
        f" {_number(finding.acquisitions_per_s)} acquisitions a second had to wait, and no thread"
        f" held it for {_percent(finding.unheld)} of that time; a hold takes"
        f" {duration(finding.hold_s)}"
    )


def _serialised_lock(finding: Serialised) -> str:
    return (
        f"held {_percent(finding.held)} of the time; {finding.involved} of {finding.active} threads"
        f" that are not idle hold it or wait for it; {_percent(finding.contended)} of"
        f" {_number(finding.acquisitions_per_s)} acquisitions a second had to wait"
    )


def _thundering_herd(finding: ThunderingHerd) -> str:
    return (
        f"{finding.waiters} threads wait; {_number(finding.wakeups_per_s)} waits a second return"
        f" for {_number(finding.signals_per_s)} signals or broadcasts,"
        f" {finding.wakeups_per_s / finding.signals_per_s:.1f} for each; a woken thread uses less"
        f" than {duration(finding.max_cpu_s)} of a CPU"
    )


def _starved_writer(finding: StarvedWriter) -> str:
    return (
        f"{_count(finding.writers, 'writer')} {_verb(finding.writers, 'wait')}, for up to"
        f" {duration(finding.longest_wait_s)}; {_count(finding.readers, 'thread')}"
        f" that came later {_verb(finding.readers, 'read')} it, for up to"
        f" {duration(finding.longest_read_s)} so far"
    )


def _overtaken_writer(finding: PerhapsStarved) -> str:
    return (
        f"{_count(finding.writers, 'writer')} {_verb(finding.writers, 'wait')}, for"
        f" {lasting(finding.longest_wait_s, finding.is_lower_bound)}; threads took it to read"
        f" {finding.later_reads} times or more meanwhile; it has"
        f" {_count(finding.readers, 'reader')} now"
    )


def _long_hold(finding: LongHold) -> str:
    name, tid = finding.holder_name, finding.holder
    who = f"{name} ({tid})" if name else f"thread {tid}"
    return (
        f"held for {lasting(finding.held_s, finding.is_lower_bound)} by {who}, which sleeps in"
        f" {finding.call or 'the kernel'} now; {_count(finding.waiters, 'thread')}"
        f" {_verb(finding.waiters, 'wait')} for it, for up to {duration(finding.longest_wait_s)}"
    )


def _false_idle(finding: FalseIdle) -> str:
    return (
        f"{_count(finding.waiters, 'thread')} {_verb(finding.waiters, 'wait')} for work, for up"
        f" to {duration(finding.longest_wait_s)}; {_count(finding.signallers, 'thread')} that"
        f" {_verb(finding.signallers, 'signal')} it {_verb(finding.signallers, 'wait')} for"
        f" {finding.contended_lock}{' or others' * finding.other_locks}, for at least"
        f" {duration(finding.shortest_contended_s)}"
    )


def _oversubscribed_cpus(finding: Oversubscribed) -> str:
    return (
        f"{finding.runnable} threads want one of {_count(finding.cpus, 'CPU')}, of which they had"
        f" {finding.cpus_used:.1f} lately; {_count(finding.waiters, 'thread')}"
        f" {_verb(finding.waiters, 'wait')} for locks"
    )


def _starved_of_cpus(finding: CpuStarved) -> str:
    if finding.unrun > finding.unheld:
        why = f"the holder waited for a CPU in {_percent(finding.unrun)} of the wait"
    else:
        why = (
            f"no thread held the lock in {_percent(finding.unheld)} of the wait: a woken thread was"
            " not yet running"
        )
    return (
        f"{finding.wanted:.0f} threads runnable on {_count(finding.cpus, 'CPU')}, of which they had"
        f" {finding.cpus_used:.1f}; {why}"
    )


def _queue(finding: Contended) -> str:
    where = ""
    if finding.location is not None:
        where = (
            f"; in {finding.location_scans} of {_count(finding.scans, 'scan')} its holder was at"
            f" {short_location(finding.location)}"
        )
    return (
        f"in {finding.waited} of {finding.samples} samples threads waited, up to"
        f" {finding.at_once} at once{where}"
    )


def _high_rate(finding: HighRate) -> str:
    return (
        f"taken {_number(finding.acquisitions_per_s)} times a second, of which"
        f" {_number(finding.contended_per_s)} had to wait"
    )


def _no_signal(finding: NoSignal) -> str:
    others = finding.conditions - 1
    also = f" for it and {_count(others, 'other condition')}" if others else ""
    before = f"; {_count(finding.signals, 'signal')} came before" if finding.signals else ""
    return (
        f"{_count(finding.waiters, 'thread')} {_verb(finding.waiters, 'wait')}{also}, for up to"
        f" {duration(finding.longest_wait_s)}; no signal came meanwhile{before}"
    )


def _percent(part: float) -> str:
    """Truncated, not rounded: 99.9 % is not all."""
    return f"{int(100 * min(part, 1.0))} %"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'s' * (number != 1)}"


def _verb(number: int, verb: str) -> str:
    """The form of ``verb`` that follows a number of subjects."""
    return f"{verb}s" if number == 1 else verb


_SENTENCES: dict[type[Finding], Callable[[Any], str]] = {
    Convoy: _convoy,
    Serialised: _serialised_lock,
    ThunderingHerd: _thundering_herd,
    StarvedWriter: _starved_writer,
    PerhapsStarved: _overtaken_writer,
    LongHold: _long_hold,
    FalseIdle: _false_idle,
    Oversubscribed: _oversubscribed_cpus,
    CpuStarved: _starved_of_cpus,
    Contended: _queue,
    HighRate: _high_rate,
    NoSignal: _no_signal,
}
