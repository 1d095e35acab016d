"""Turns what a user asks (``--hold index_mu=0.5x``) into changes of a program."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.whatif.analysis.evidence import Evidence
from locktop.collector.extensions.whatif.analysis.programs import group_of
from locktop.collector.extensions.whatif.analysis.throughput import marks_of
from locktop.collector.extensions.whatif.model import Change, ChangeKind, ThroughputUnit, UnitKind
from locktop.collector.model import (
    Kind,
    Lock,
    MarkRecord,
    Snapshot,
)
from locktop.collector.model.kinds import TIMED_BY_WAKES_KINDS, USED_AS_LOCK_KINDS
from locktop.collector.render.words.named_lock import lock_named
from locktop.collector.sanitize import clean

_FACTOR = re.compile(r"(\d{1,6}(?:\.\d{1,6})?)x?")
#: The end of a name such as "request-#" or "request*", with which users name a group.
_NUMBERS = re.compile(r"[-_:#/. ]*[#*]+$")
_COUNT = re.compile(r"[1-9]\d{0,4}")
#: Before the text of marks, as --throughput names them; and the texts or groups in an error.
_MARK, _MAX_NAMED = "mark:", 8
#: The share of acquisitions that read, unless the user names one.
READ_SHARE = 0.9


class WantedChanges(Struct, frozen=True):
    """The texts of the options. An empty sequence: the option was not given."""

    hold: Sequence[str] = ()  # LOCK=0.5x
    split: Sequence[str] = ()  # LOCK=8
    rw: Sequence[str] = ()  # LOCK or LOCK=0.9
    threads: Sequence[str] = ()  # GROUP=16
    cpus: Sequence[int] = ()
    throughput: str | None = None  # LOCK, mark:TEXT or rounds


def changes_of(wanted: WantedChanges, snapshot: Snapshot) -> list[Change]:
    """Return the changes.

    Raises:
        LocktopError: a text is no change, or a lock or a group of threads is not there.
    """
    changes = []
    for text in wanted.hold:
        name, value = _parts(text, "--hold", "LOCK=0.5x")
        if not _FACTOR.fullmatch(value):
            raise LocktopError(f"--hold {text}: {value!r} is no factor such as 0.5x")
        lock = _lock(snapshot, name, "--hold")
        amount = float(value.removesuffix("x"))
        changes.append(Change(kind=ChangeKind.HOLD, amount=amount, lock=lock))
    for text in wanted.split:
        name, value = _parts(text, "--split", "LOCK=8")
        lock = _lock(snapshot, name, "--split")
        count = _count(value, f"--split {text}")
        changes.append(Change(kind=ChangeKind.SPLIT, amount=count, lock=lock))
    for text in wanted.rw:
        is_named_alone = bool(text) and "=" not in text
        name, value = (text, "") if is_named_alone else _parts(text, "--rw", "LOCK=0.9")
        lock = _lock(snapshot, name, "--rw")
        changes.append(Change(kind=ChangeKind.RW, amount=_share(value, text), lock=lock))
    for text in wanted.threads:
        name, value = _parts(text, "--threads", "GROUP=16")
        count = _count(value, f"--threads {text}")
        group = _group(snapshot, name)
        changes.append(Change(kind=ChangeKind.THREADS, amount=count, group=group))
    changes += [Change(kind=ChangeKind.CPUS, amount=count) for count in wanted.cpus]
    return changes


def unit_of(wanted: WantedChanges, snapshot: Snapshot) -> ThroughputUnit | None:
    """Return what is counted; None: nothing was named. Raises LocktopError."""
    named = wanted.throughput
    if named is None:
        return None
    if not named:
        raise LocktopError(f"--throughput: the form is --throughput LOCK, {_MARK}TEXT or rounds")
    if named == str(UnitKind.ROUNDS):
        return ThroughputUnit(kind=UnitKind.ROUNDS)
    if named.startswith(_MARK):
        if named == _MARK:
            raise LocktopError(f"--throughput {named}: the form is --throughput {_MARK}TEXT")
        return ThroughputUnit(kind=UnitKind.MARKS, mark=named.removeprefix(_MARK))
    return ThroughputUnit(kind=UnitKind.LOCK, lock=lock_named(snapshot.locks, named).id)


def check_marks(unit: ThroughputUnit | None, marks: Sequence[MarkRecord]) -> None:
    """Raise LocktopError if the unit counts marks, and none of these marks is one of them."""
    if unit is None or unit.kind is not UnitKind.MARKS or marks_of(marks, unit.mark):
        return
    texts = [text for text, _ in Counter(mark.text for mark in marks).most_common(_MAX_NAMED)]
    there_are = f"the marks were: {', '.join(texts)}" if texts else "the program set no mark"
    raise LocktopError(f"--throughput {_MARK}{unit.mark}: there was no such mark; {there_are}")


def check_held(changes: Iterable[Change], evidence: Evidence, snapshot: Snapshot) -> None:
    """Raise LocktopError for a change of a semaphore that threads do not use as a lock.

    Args:
        changes: of the snapshot.
        evidence: as from convert_semaphores().
        snapshot: with the names of the locks.
    """
    changed = {change.lock for change in changes}
    counted = {record.lock for record in evidence.records if record.kind is Kind.SEM}
    for lock in snapshot.locks:
        if lock.id in changed & counted:
            raise LocktopError(
                f"{lock.name} counts units: threads do not hold it, so there is no hold to change"
            )


def check_used(changes: Iterable[Change], evidence: Evidence, snapshot: Snapshot) -> None:
    """Raise LocktopError for a change that meets nothing: of a lock or of threads without a record.

    Args:
        changes: of the snapshot.
        evidence: of the recorded time.
        snapshot: with the names of the locks.
    """
    if evidence.losses and not evidence.records:
        return  # nobody knows what was used
    taken = {record.lock for record in evidence.records}
    threads = {thread.tid: thread.name for thread in snapshot.threads}
    threads |= {tid: thread.name for tid, thread in evidence.times.items()}
    tids = evidence.active | {signal.tid for signal in evidence.signals}
    active = {group_of(threads.get(tid, "")) for tid in tids}
    names = {lock.id: lock.name for lock in snapshot.locks}
    for change in changes:
        if change.lock and change.lock not in taken:
            name = clean(names.get(change.lock, f"lock {change.lock}"))
            raise LocktopError(f"nobody took {name} in the recorded time")
        # Nobody knows the group of a thread that ended without a name.
        if change.group and not active & {change.group, ""}:
            raise LocktopError(
                f"no thread of the group {clean(change.group)} used a lock in the recorded time"
            )


def _parts(text: str, option: str, form: str) -> tuple[str, str]:
    name, equals, value = text.rpartition("=")
    if not equals or not name:
        raise LocktopError(f"{option} {text}: the form is {option} {form}")
    return name, value


def _lock(snapshot: Snapshot, name: str, option: str) -> int:
    usable = [
        lock
        for lock in snapshot.locks
        if lock.kind in USED_AS_LOCK_KINDS or (lock.kind in TIMED_BY_WAKES_KINDS and not lock.idle)
    ]
    lock: Lock = lock_named(usable, name)
    if option == "--rw" and lock.kind is Kind.RWLOCK:
        raise LocktopError(f"--rw {name}: {lock.name} is an rwlock already")
    return lock.id


def _count(value: str, option: str) -> int:
    if not _COUNT.fullmatch(value):
        raise LocktopError(f"{option}: {value!r} is no number from 1 to 99999")
    return int(value)


def _share(value: str, text: str) -> float:
    if not value:
        return READ_SHARE
    try:
        share = float(value)
    except ValueError:
        share = -1.0
    if not 0.0 <= share <= 1.0:
        raise LocktopError(f"--rw {text}: {value!r} is no share of readers from 0 to 1")
    return share


def _group(snapshot: Snapshot, name: str) -> str:
    groups = sorted({group_of(thread.name) for thread in snapshot.threads if thread.alive})
    wanted = _NUMBERS.sub("", name) or name
    for exact in (name, wanted, group_of(wanted)):
        if exact in groups:
            return exact
    fitting = [group for group in groups if wanted in group]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise LocktopError(
            f"{len(fitting)} groups of threads are called like {name!r}: {_list_names(fitting)}"
        )
    raise LocktopError(f"there is no group of threads {name!r}; groups: {_list_names(groups)}")


def _list_names(groups: Sequence[str]) -> str:
    return ", ".join(clean(group) for group in groups[:_MAX_NAMED])
