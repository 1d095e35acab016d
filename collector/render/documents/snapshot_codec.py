"""Writes and reads snapshots: JSON and msgpack, as snapshot_document.py describes the document.

A file may come from a stranger. The reader cleans all texts, bounds all numbers, and reports the
first wrong field in one line. Unknown keys are accepted; a missing or null key has its default.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar, cast

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from locktop.collector.analysis import blocking_tree, lock_classes, thread_groups
from locktop.collector.analysis.blame_chains import BlameChains
from locktop.collector.analysis.idle.classifier import Classifier
from locktop.collector.analysis.idle.rules import Rules
from locktop.collector.errors import LocktopError
from locktop.collector.extension.discovery import sections
from locktop.collector.extension.parts import SnapshotSection
from locktop.collector.model import (
    Blame,
    BlockingRoot,
    Lock,
    LockClass,
    Snapshot,
    ThreadActivity,
    ThreadGroup,
    blamed_sites,
)
from locktop.collector.render.documents import snapshot_intervals as intervals
from locktop.collector.render.documents.snapshot_document import FORMAT, VERSION, Document
from locktop.collector.render.documents.snapshot_fields import Address, IdKey
from locktop.collector.render.documents.snapshot_findings import BlockingRootEntry
from locktop.collector.render.documents.snapshot_locks import (
    BlameEntry,
    BlameInterval,
    BlameRootEntry,
    LockClassEntry,
    LockEntry,
    StackInterval,
)
from locktop.collector.render.documents.snapshot_threads import ActivityEntry, ThreadGroupEntry
from locktop.collector.render.words import units
from locktop.collector.sanitize import clean

_Document = TypeVar("_Document")
#: Ids, counters and addresses have 64 bits.
_MAX_INTEGER = (1 << 64) - 1
_MAX_NUMBER = 1e18
#: Locks of a class, or roots of waits, that are listed.
_MAX_IDS = 64
#: Keys that follow from the others; the reader leaves them out.
_DERIVED = frozenset({
    "blame_roots", "blocking", "interval", "lock_classes", "thread_groups", "unheld_wait_s",
    "wait_p50_s", "wait_p99_s", "hold_p50_s", "hold_p99_s",
})  # fmt: skip

#: msgspec looks at a class when it is first used. Two threads that do so at one time can crash. So
#: the import does it, and Python lets one thread import a module.
_DECODERS = tuple(msgspec.json.Decoder(kind) for kind in (Document, Snapshot))


class NumberOutOfRange:
    """Stands for a number that no field can have; the error message has the name of this class."""


# ---- writing ----


def encode(snapshot: Snapshot, before: Snapshot | None = None, *, packed: bool = False) -> bytes:
    """Return the document as JSON text, or as msgpack if ``packed``.

    Args:
        snapshot: the scan.
        before: an earlier scan of the same process. With it each thread, lock and lock class has
            "interval": the part of its figures from between the scans.
        packed: msgpack.
    """
    described = describe(snapshot, before)
    if packed:
        return msgspec.msgpack.encode(described, enc_hook=_to_text)
    return msgspec.json.format(msgspec.json.encode(described, enc_hook=_to_text), indent=1) + b"\n"


def document(snapshot: Snapshot, before: Snapshot | None = None) -> dict[str, Any]:
    """Return the document as ``json.loads`` would return it."""
    result: dict[str, Any] = msgspec.to_builtins(
        describe(snapshot, before), str_keys=True, enc_hook=_to_text
    )
    return result


def activity_document(now: ThreadActivity) -> dict[str, Any]:
    """Return what a thread does now as the snapshot's document has it."""
    result: dict[str, Any] = msgspec.to_builtins(
        msgspec.convert(now, ActivityEntry, from_attributes=True), str_keys=True
    )
    return result


def describe(snapshot: Snapshot, before: Snapshot | None = None) -> Document:
    """Return the document with what other modules derive: classes, groups, chains, intervals.

    Raises:
        LocktopError: the snapshot of a stranger's recording has a figure that no document has.
    """
    try:
        whole = msgspec.convert(_Source(snapshot), Document, from_attributes=True, dec_hook=_read)
        _add_lock_keys(whole, snapshot)
    except msgspec.ValidationError as error:
        raise LocktopError(f"the snapshot is damaged: {_explain(error)}") from None
    classes = lock_classes.find(snapshot.locks)
    class_of = lock_classes.classes_by_lock(classes)
    by_id = {lock.id: lock for lock in snapshot.locks}
    for deadlock in whole.deadlocks:
        deadlock.stuck_in_part = deadlock.stuck_in_part or UNSET
    chains = BlameChains(by_id)
    for thread in whole.threads:
        thread.held_locks = [held.lock for held in thread.holds]
        if thread.waiting_for is not None:
            thread.waiting_for.why = snapshot.why.get(thread.tid, "")
    for lock, entry in zip(snapshot.locks, whole.locks, strict=True):
        if lock.id in class_of:
            entry.class_name = class_of[lock.id].name
        if not lock.contended and not lock.waiters:
            entry.hold_histogram = None  # very many locks may have no waits
        for waited in entry.wait_stacks:
            waited.python = waited.python or UNSET
        entry.blame, entry.unheld_wait_s = _blame_entries(lock.blame), lock.unheld_wait_s
        if chains.is_chained(lock):
            entry.blame_roots = [
                BlameRootEntry(
                    tid=root.tid, lock=root.lock, site=Address(root.site), wait_s=root.wait_s
                )
                for root in chains.roots(lock)
            ]
    whole.notes += _blame_notes(chains)
    for pattern in whole.patterns:
        pattern.lock = pattern.lock or None
    groups = thread_groups.find(snapshot.threads, by_id, class_of)
    whole.thread_groups = [_group_entry(group) for group in groups]
    whole.lock_classes = [_class_entry(lock_class) for lock_class in classes]
    roots = blocking_tree.find(snapshot).roots
    whole.blocking = [_root_entry(root) for root in roots[:_MAX_IDS]]
    if before is not None:
        whole.duration_s -= before.duration_s
        _add_intervals(whole, snapshot, before, classes)
    return whole


def _add_lock_keys(whole: Document, snapshot: Snapshot) -> None:
    """Fill in the keys that extensions bring to locks."""
    for name, section in sections().items():
        if section.lock_key is None or name not in snapshot.sections:
            continue
        keys = snapshot.sections[name].locks
        for lock in whole.locks:
            if lock.id in keys:
                kind = section.lock_key.entry
                key = msgspec.convert(keys[lock.id], kind, from_attributes=True, dec_hook=_read)
                setattr(lock, name, key)


def _blame_entries(blame: Sequence[Blame]) -> list[BlameEntry]:
    # The document has an address as text. For each Address the encoder would call _written(), and a
    # crowd has hundreds of thousands of entries with few sites.
    sites = {site: cast(Address, hex(site)) for site in blamed_sites(blame)}
    return [
        BlameEntry(
            tid=entry.tid, site=sites[entry.site], through=entry.through, wait_s=entry.wait_s
        )
        for entry in blame
    ]


def _blame_notes(chains: BlameChains) -> list[str]:
    """Return what the user should know about the blame chains, one line each."""
    if not chains.cut:
        return []
    cut = units.counted(len(chains.cut), "lock")
    return [f"the chains of blame of {cut} are followed in part: they are too many"]


class _Source:
    """A snapshot with the keys that only the document has."""

    format, version = FORMAT, VERSION

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    @property
    def locks(self) -> list[Lock]:
        """The locks without their blame: it may have very many elements (_blame_entries())."""
        return [replace(lock, blame=()) if lock.blame else lock for lock in self._snapshot.locks]

    def __getattr__(self, name: str) -> object:
        if (section := sections().get(name)) is None:
            return getattr(self._snapshot, name)
        part = self._snapshot.sections.get(name)
        return section.write(part, self._snapshot) if part is not None else section.default


def _group_entry(group: ThreadGroup) -> ThreadGroupEntry:
    wait = group.wait
    return ThreadGroupEntry(
        threads=list(group.tids),
        name=group.name,
        alive=group.first.alive,
        state=group.state,
        kind=wait.kind if wait is not None else None,
        lock=group.lock or None,
        lock_name=group.lock_name,
        stack=wait.stack if wait is not None else 0,
        idle=wait is not None and wait.idle,
        longest_s=wait.duration_s if wait is not None else None,
        holders=list(group.holders),
        holds=[held.lock for held in group.first.holds],
    )


def _root_entry(root: BlockingRoot) -> BlockingRootEntry:
    return BlockingRootEntry(
        kind=root.kind,
        tids=list(root.tids[:_MAX_IDS]),
        locks=list(root.locks[:_MAX_IDS]),
        threads=root.behind.threads,
        waited_s=root.behind.waited_s,
        longest=root.behind.longest,
    )


def _class_entry(lock_class: LockClass) -> LockClassEntry:
    figures = {
        name: getattr(lock_class, name)
        for name in LockClassEntry.__struct_fields__
        if name not in ("instances", "locks", "holders", "waiters", "interval")
    }
    return LockClassEntry(
        instances=len(lock_class.locks),
        locks=list(lock_class.locks[:_MAX_IDS]),
        holders=list(lock_class.holders),
        waiters=list(lock_class.waiters),
        **figures,
    )


def _add_intervals(
    whole: Document, snapshot: Snapshot, before: Snapshot, classes: Iterable[LockClass]
) -> None:
    threads = {thread.tid: thread for thread in before.threads}
    locks = {lock.id: lock for lock in before.locks}
    for thread, entry in zip(snapshot.threads, whole.threads, strict=True):
        entry.interval = intervals.thread_interval(thread, threads.get(thread.tid))
    for lock, lock_entry in zip(snapshot.locks, whole.locks, strict=True):
        _add_lock_intervals(lock_entry, lock, locks.get(lock.id))
    for lock_class, class_entry in zip(classes, whole.lock_classes, strict=True):
        class_entry.interval = intervals.class_interval(lock_class.members, locks)


def _add_lock_intervals(entry: LockEntry, lock: Lock, before: Lock | None) -> None:
    entry.interval = intervals.lock_interval(lock, before)
    stacks = intervals.stack_intervals(lock, before)
    for stack, (count, wait_s) in zip(entry.wait_stacks, stacks, strict=True):
        stack.interval = StackInterval(count=count, wait_s=wait_s)
    for blame, wait_s in zip(entry.blame, intervals.blame_intervals(lock, before), strict=True):
        blame.interval = BlameInterval(wait_s=wait_s)


def _to_text(value: object) -> str:
    """Return a value of our own types as the document has it."""
    if isinstance(value, Address):
        return hex(value)
    if isinstance(value, IdKey):
        return str(int(value))
    raise NotImplementedError(type(value).__name__)


def encode_document(whole: msgspec.Struct) -> bytes:
    """Return another document with fields as in snapshot_fields.py as JSON text."""
    return msgspec.json.format(msgspec.json.encode(whole, enc_hook=_to_text), indent=1) + b"\n"


# ---- reading ----


def parse_document(data: bytes, kind: type[_Document], version: int) -> _Document:
    """Return another document with fields as in snapshot_fields.py from JSON text.

    Raises:
        ValueError: the text is no such document; the message is one line.
    """
    try:
        whole = _check_bounds(msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf")))
        _check_version(whole, version)
        return msgspec.convert(whole, kind, dec_hook=_read_text)
    except msgspec.MsgspecError as error:
        raise ValueError(_explain(error)) from None
    except (RecursionError, MemoryError) as error:
        raise ValueError(type(error).__name__) from None


def parse(data: bytes, name: str, rules: Rules | None = None) -> Snapshot:
    """Return the snapshot in a file.

    Args:
        data: the content of the file.
        name: what an error calls the file.
        rules: the rules that classify the waits; None for the shipped rules.

    Raises:
        LocktopError: the content is no snapshot; the message names the wrong field.
    """
    try:
        whole = _check_bounds(_decode(data))
        _check_version(whole)
        parsed = msgspec.convert(whole, Document, str_keys=True, dec_hook=_read)
        _check_histograms(parsed)
        # msgspec converts no keys of our own types.
        parsed.stacks = {_read(IdKey, key): frames for key, frames in parsed.stacks.items()}
        for recent in ("recent_lock_waits", "recent_thread_waits"):
            by_id = {_read(IdKey, key): parts for key, parts in getattr(parsed, recent).items()}
            setattr(parsed, recent, by_id)
        parsed.sites = {_read(Address, key): frame for key, frame in parsed.sites.items()}
        snapshot = msgspec.convert(parsed, Snapshot, from_attributes=True)
        snapshot = replace(snapshot, sections=_read_sections(parsed))
    except msgspec.MsgspecError as error:
        raise LocktopError(f"{name} is no snapshot of locktop: {_explain(error)}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        reason = str(error) or type(error).__name__
        raise LocktopError(f"{name} is no snapshot of locktop: {reason}") from None
    return Classifier(rules).classify(snapshot)


def _read_sections(whole: Document) -> dict[str, Any]:
    """Return what extensions brought, without the parts that are null or empty."""
    return {
        name: _read_section(whole, name, section)
        for name, section in sections().items()
        if getattr(whole, name)
    }


def _read_section(whole: Document, name: str, section: SnapshotSection) -> Any:
    part = section.read(getattr(whole, name))
    if section.lock_key is None:
        return part
    keys = {lock.id: key for lock in whole.locks if (key := getattr(lock, name)) is not None}
    by_id = dict[int, section.lock_key.model]  # type: ignore[name-defined]
    return replace(part, locks=msgspec.convert(keys, by_id, from_attributes=True))


def _check_histograms(whole: Document) -> None:
    """Raise ValueError for a histogram that is none.

    The types do not check that, for a snapshot of our own is sure to have histograms.
    """
    for part, entries in (("locks", whole.locks), ("threads", whole.threads)):
        for number, entry in enumerate(entries):
            for name in ("wait_histogram", "hold_histogram"):
                histogram = getattr(entry, name, None)
                if histogram is not None:
                    try:
                        histogram.check()
                    except ValueError as error:
                        raise ValueError(f"{error} - at {part}[{number}].{name}") from None


def is_snapshot(data: bytes) -> bool:
    """Return whether a file begins as a snapshot does, as JSON or msgpack, and not as a text."""
    return data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{" or _is_msgpack(data)


def _is_msgpack(data: bytes) -> bool:
    # A map of over 15 keys. A text may begin with the byte of a smaller map.
    return data[:1] in (b"\xde", b"\xdf") and not data.startswith(b"\xdf\xbb")


def _decode(data: bytes) -> object:
    if _is_msgpack(data):
        return msgspec.msgpack.decode(data)
    return msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"))


def _check_version(whole: object, known_version: int = VERSION) -> None:
    """Raise ValueError for the document of a later locktop, which may differ in every field."""
    version = whole.get("version") if isinstance(whole, dict) else known_version
    if version not in (None, known_version):
        raise ValueError(f"version is {version}; this locktop knows version {known_version}")


def _check_bounds(value: object) -> object:
    """Return decoded data with clean texts, without null, and without impossible numbers.

    A key with null counts as a missing key, so msgspec sets the default or reports the key.
    """
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {
            key: _check_bounds(part)
            for key, part in value.items()
            if part is not None and not _is_derived(key, part)
        }
    if isinstance(value, list):
        return [_check_bounds(part) for part in value]
    if isinstance(value, float) and not abs(value) <= _MAX_NUMBER:
        return NumberOutOfRange()
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > _MAX_INTEGER:
        return NumberOutOfRange()
    return value


def _is_derived(key: object, part: object) -> bool:
    # The interval of a profile is a number, and no part of the figures.
    return key in _DERIVED and not (key == "interval" and isinstance(part, int))


def _read(kind: type, value: object) -> Any:
    """Return a value of our own types, from the model or from a document."""
    if isinstance(value, int) and not isinstance(value, bool):
        return kind(value)
    return Address(_address(value)) if kind is Address else IdKey(_number(value))


def _read_text(kind: type, value: object) -> Any:
    """Return a value of our own types from a document alone."""
    return Address(_address(value)) if kind is Address else IdKey(_number(value))


def _number(value: object) -> int:
    if not isinstance(value, str) or not (value.isdecimal() and len(value) < 20):
        raise ValueError("Expected numbers of stacks as keys of stacks")
    return int(value)


def _address(value: object) -> int:
    try:
        address = int(value, 16) if isinstance(value, str) else -1
    except ValueError:
        address = -1
    if not 0 <= address <= _MAX_INTEGER:
        raise ValueError("Expected an address as a hexadecimal text")
    return address


def _explain(error: msgspec.MsgspecError) -> str:
    """Return the message with the path of the field as in ``threads[0].tid``."""
    return str(error).replace("`", "").replace("$.", "")
