"""Shared memory files, sound and damaged, that tests build in the layout of abi.h."""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgpack
from msgspec import Struct

from locktop.collector.errors import LocktopError
from locktop.collector.linux import procfs
from locktop.collector.model import Snapshot
from locktop.collector.native import ffi, lib
from locktop.collector.shm import layout
from locktop.collector.shm.clock import Clock
from locktop.collector.shm.layout import MAGIC
from locktop.collector.sources.attach import attach

_FIRST = 4  # elements in the first chunk of each array: small, so that tests reach the second
_SIZE = 1 << 20
#: Kept to the end: the source looks for the mapping in /proc/PID/maps.
_mapped: list[mmap.mmap] = []


def key(kind: int, address: int) -> int:
    """Return the key of a lock."""
    return int(kind << lib.LT_KIND_SHIFT | address)


def record(**values: int) -> bytes:
    """Return one record of the ring, as abi.h draws it: every integer in its full width."""
    out = bytes([0x9B, values.get("type", lib.LT_RECORD_WAIT), values.get("kind", 1)])
    for name in ("tid", "lock", "stack", "holder"):
        out += b"\xce" + values.get(name, 0).to_bytes(4, "big")
    for name in ("start", "wait", "hold", "site"):
        out += b"\xcf" + values.get(name, 0).to_bytes(8, "big")
    out += b"\xc4\x03\x00\x00\x00"
    assert len(out) == lib.LT_RECORD_SIZE
    assert msgpack.unpackb(out)[0] == values.get("type", lib.LT_RECORD_WAIT)
    return out


def mark(tid: int, start: int, text: bytes) -> bytes:
    """Return one mark of the ring."""
    out = bytes([0x95, lib.LT_RECORD_MARK]) + b"\xce" + tid.to_bytes(4, "big")
    out += b"\xcf" + start.to_bytes(8, "big")
    out += bytes([0xD9, lib.LT_MARK_TEXT]) + text.ljust(lib.LT_MARK_TEXT, b"\0") + b"\xc4\0"
    assert len(out) == lib.LT_RECORD_SIZE
    return out


def _set_counts(counts: Any, waits: Any, values: dict[str, int]) -> bool:
    """Set counts by name; return whether one of them was a count of waits."""
    waited = False
    for name, value in values.items():
        of_wait = name in dict(ffi.typeof("struct lt_waits").fields)
        setattr(waits if of_wait else counts, name, value)
        waited = waited or of_wait
    return waited


def scan(file: SharedFile, directory: Path) -> Snapshot:
    """Save a file, and return the snapshot of one scan."""
    file.save(directory)
    with closing(attach(file.pid)) as source:
        return source.scan()


def second_scan_or_error() -> Snapshot | LocktopError:
    """Return the second snapshot of the file of this process, or the error of any step."""
    try:
        with closing(attach(os.getpid())) as source:
            source.scan()
            return source.scan()
    except LocktopError as error:
        return error


def forget_mapped() -> None:
    """Drop the mappings of all saved files. Each of them keeps a descriptor open."""
    _mapped.clear()


class LineCount(Struct, frozen=True):
    """A count in a line of its own of a histogram."""

    lock: int
    bucket: int
    count: int
    part: int = lib.LT_LINE_WAITS
    kind: int = lib.LT_KIND_MUTEX

    @property
    def key(self) -> int:
        """The key of the line."""
        return int(
            self.lock
            | self.kind << lib.LT_LINE_KIND_SHIFT
            | self.part << lib.LT_LINE_PART_SHIFT
            | (self.bucket // lib.LT_LINE_BUCKETS + 1) << lib.LT_LINE_NUMBER_SHIFT
        )


class SharedFile:
    """Builds one file, by default the file of the process that runs the test."""

    def __init__(self, pid: int | None = None, size: int = _SIZE) -> None:
        self.pid = pid or os.getpid()
        self.data = bytearray(size)
        self.start_time = procfs.stat(self.pid).start_time
        self.header: Any = self.struct_at("struct lt_header", 0)
        self.control: Any = self.struct_at("struct lt_control", lib.LT_CONTROL_OFFSET)
        self._used: int = lib.LT_ARENA_OFFSET
        self.blocks: list[Any] = []  # of the threads
        self._fill_header()
        self.control.mode = 1 << 8 | lib.LT_LEVEL_CONTENDED
        self.control.base_level = lib.LT_LEVEL_CONTENDED
        self.add_lock(0, 0)  # "other locks"

    def _fill_header(self) -> None:
        header = self.header
        header.magic[0:8] = list(MAGIC)
        header.version, header.byte_order = lib.LT_ABI_VERSION, lib.LT_BYTE_ORDER
        header.word_bits, header.header_size = 64, ffi.sizeof("struct lt_header")
        header.state, header.pid, header.uid = lib.LT_RUNNING, self.pid, os.geteuid()
        header.start_time, header.clock = self.start_time, lib.LT_CLOCK_MONOTONIC
        header.limit = header.backed = len(self.data)
        arrays = {
            "struct lt_thread": header.threads,
            "struct lt_lock": header.locks,
            "struct lt_name": header.names,
            "struct lt_retired": header.retired,
            "struct lt_line_sum": header.retired_lines,
            "struct lt_condition": header.conditions,
            "struct lt_misuse": header.misuses,
            "struct lt_order": header.orders,
            "struct lt_life": header.lives,
            "struct lt_profile": header.profiles,
        }
        for name, array in arrays.items():
            array.element_size, array.first = ffi.sizeof(name), _FIRST

    def header_record(self) -> layout.Header:
        """Return the header as readers get it."""
        return layout.HEADER.unpack(self.data)

    @property
    def name(self) -> str:
        """The file name by which the tool finds the file."""
        return f"locktop-{self.pid}-{self.start_time}"

    def save(self, directory: Path) -> Path:
        """Write the file to ``directory``, which LOCKTOP_DIR names."""
        self.header.used = self._used
        path = directory / self.name
        path.write_bytes(self.data)
        if (
            self.pid == os.getpid()
        ):  # as the library does: the tool ignores a file that no process maps
            with path.open("rb") as file:
                _mapped.append(mmap.mmap(file.fileno(), mmap.PAGESIZE, prot=mmap.PROT_READ))
        return path

    # ---- contents ----

    def add_lock(self, kind: int, address: int, **fields: int) -> int:
        """Add a lock; ``retired_NAME`` sets one of its counts of ended threads. Returns its id."""
        lock, index = self._push(self.header.locks, "struct lt_lock")
        lock.key = key(kind, address) if kind else 0
        retired = {
            name.removeprefix("retired_"): value
            for name, value in fields.items()
            if name.startswith("retired_")
        }
        for name in fields.keys() - {f"retired_{name}" for name in retired}:
            setattr(lock, name, fields[name])
        if retired:
            ended, position = self._push(self.header.retired, "struct lt_retired")
            ended.lock, ended.kind, lock.retired = index, kind, position + 1
            _set_counts(ended.counts, ended.waits, retired)
        return index

    def add_name(self, lock_key: int, text: bytes, seq: int = 2) -> Any:
        """Give a lock a name; return the entry."""
        entry, _ = self._push(self.header.names, "struct lt_name")
        entry.key, entry.seq = lock_key, seq
        entry.text[0 : len(text)] = list(text)
        self.header.names_changed += 1
        return entry

    def add_condition(self, signalled: int) -> tuple[Any, int]:
        """Add the record of a condition; return it and its index."""
        record, index = self._push(self.header.conditions, "struct lt_condition")
        record.signalled = signalled
        return record, index

    def add_misuse(self, **fields: int) -> None:
        """Add a misuse that the library noted."""
        entry, _ = self._push(self.header.misuses, "struct lt_misuse")
        for name, value in fields.items():
            setattr(entry, name, value)
        self.header.misuses_changed += 1

    def add_life(self, birth: int, tid: int) -> Any:
        """Add the life of a thread that took locks while it held others."""
        entry, _ = self._push(self.header.lives, "struct lt_life")
        entry.birth, entry.tid = birth, tid
        return entry

    def add_order(self, held: Sequence[int], lock: int, **fields: int) -> Any:
        """Add an observed order; ``seen``: a thread and its segment."""
        entry, index = self._push(self.header.orders, "struct lt_order")
        entry.hash, entry.lock, entry.held_count = index + 1, lock, len(held)
        entry.held[0 : len(held)] = list(held)
        entry.seen[0] = fields.pop("seen", 0)
        for name, value in fields.items():
            setattr(entry, name, value)
        self.header.orders_changed += 1
        return entry

    def add_profile(
        self, regions: Sequence[tuple[int, int]], values: Sequence[int], **fields: int
    ) -> Any:
        """Add a profile of regions (start, bytes) with the counts ``values``."""
        entry, _ = self._push(self.header.profiles, "struct lt_profile")
        entry.state, entry.bucket_size, entry.interval = lib.LT_PROFILE_STOPPED, 4, 10_000_000
        entry.region_count, entry.bucket_count = len(regions), len(values)
        for region, (start, size) in zip(entry.region, regions, strict=False):
            region.start, region.size = start, size
        entry.counts = self._allocate(8 * len(values))
        for number, count in enumerate(values):
            offset = entry.counts + 8 * number
            self.data[offset : offset + 8] = count.to_bytes(8, "little")
        entry.samples = sum(values)
        for name, value in fields.items():
            setattr(entry, name, value)
        return entry

    def add_stack(self, frames: Sequence[int]) -> int:
        """Add a stack; return its id."""
        offset = self._allocate(ffi.sizeof("struct lt_stack") + 8 * len(frames))
        self.struct_at("struct lt_stack", offset).depth = len(frames)
        for number, frame in enumerate(frames):
            start = offset + ffi.sizeof("struct lt_stack") + 8 * number
            self.data[start : start + 8] = frame.to_bytes(8, "little")
        return offset // int(lib.LT_STACK_UNIT)

    def add_thread(self, tid: int, **fields: int) -> Any:
        """Add a living thread without tables; return its block."""
        thread, index = self._push(self.header.threads, "struct lt_thread")
        thread.state, thread.tid, thread.birth = lib.LT_THREAD_LIVE, tid, index + 1
        thread.mode = self.control.mode
        thread.held = self.offset_of(thread) + ffi.offsetof("struct lt_thread", "held_inline")
        thread.held_size = ffi.sizeof("struct lt_held") * lib.LT_HELD_INLINE
        for name, value in fields.items():
            setattr(thread, name, value)
        self.blocks.append(thread)
        return thread

    def give_slots(self, thread: Any, capacity: int, entries: Sequence[dict[str, int]]) -> None:
        """Give a thread a table of figures by lock; in each entry "key", "lock" and counts."""
        thread.counters = self._table("struct lt_lock_counters", capacity)
        thread.counters_capacity = capacity
        waits = thread.waits
        waits.element_size, waits.first = ffi.sizeof("struct lt_waits"), max(len(entries), 1)
        waits.chunk[0] = self._table("struct lt_waits", waits.first)
        for number, entry in enumerate(entries):
            offset = thread.counters + number * ffi.sizeof("struct lt_lock_counters")
            slot = self.struct_at("struct lt_lock_counters", offset)
            slot.key, slot.lock = entry["key"], entry["lock"]
            counts = {name: value for name, value in entry.items() if name not in ("key", "lock")}
            offset = waits.chunk[0] + waits.count * ffi.sizeof("struct lt_waits")
            if _set_counts(slot.counts, self.struct_at("struct lt_waits", offset), counts):
                waits.count += 1
                slot.waits = waits.count

    def counters(self, thread: Any, number: int = 0) -> Any:
        """Return an entry of a thread's table of figures by lock."""
        offset = thread.counters + number * ffi.sizeof("struct lt_lock_counters")
        return self.struct_at("struct lt_lock_counters", offset)

    def give_sites(self, thread: Any, capacity: int, entries: Sequence[dict[str, int]]) -> None:
        """Give a thread a table of waits by lock and call site."""
        thread.sites, thread.site_capacity = self._table("struct lt_site", capacity), capacity
        for number, entry in enumerate(entries):
            site = self.struct_at(
                "struct lt_site", thread.sites + number * ffi.sizeof("struct lt_site")
            )
            for name, value in entry.items():
                setattr(site, name, value)

    def give_lines(self, thread: Any, capacity: int, counts: Sequence[LineCount]) -> None:
        """Give a thread a table of histograms."""
        table = thread.histograms
        table.lines, table.capacity = self._table("struct lt_histogram_line", capacity), capacity
        for line_count in counts:
            offset = table.lines + table.count * ffi.sizeof("struct lt_histogram_line")
            line = self.struct_at("struct lt_histogram_line", offset)
            line.key = line_count.key
            line.counts[line_count.bucket % lib.LT_LINE_BUCKETS] = line_count.count
            table.count += 1

    def add_ended_line(self, line_count: LineCount) -> None:
        """Add a line of ended threads."""
        line, _ = self._push(self.header.retired_lines, "struct lt_line_sum")
        line.key = line_count.key
        line.counts[line_count.bucket % lib.LT_LINE_BUCKETS] = line_count.count

    def give_ring(self, thread: Any, capacity: int, records: Sequence[bytes]) -> None:
        """Give a thread a ring, and write all records one after the other."""
        size = lib.LT_RECORD_SIZE
        thread.ring, thread.ring_capacity = self._allocate(capacity * size), capacity
        for number, raw_record in enumerate(records):
            offset = thread.ring + number % capacity * size
            self.data[offset : offset + size] = raw_record
        thread.ring_head = len(records)

    def give_long_waits(self, thread: Any) -> None:
        """Give a thread room for its long waits."""
        thread.long_waits = self._table("struct lt_long_wait", lib.LT_LONG_WAITS)

    def make_room_for_held(self, thread: Any, count: int) -> None:
        """Give a thread a separate list if its block is too small for ``count`` held locks."""
        size = count * ffi.sizeof("struct lt_held")
        if size > thread.held_size:
            thread.held, thread.held_size = self._allocate(size), size

    def hold(self, thread: Any, lock: int, lock_key: int, flags: int = 0, since: int = 0) -> None:
        """Add a lock to the locks that a thread holds."""
        held = self.struct_at("struct lt_held", thread.held + thread.held_top)
        held.key, held.lock, held.flags, held.since = lock_key, lock, flags, since
        thread.held_top += ffi.sizeof("struct lt_held")

    def wait(self, thread: Any, lock: int, lock_key: int, **fields: int) -> None:
        """Begin a wait of a thread."""
        thread.wait.seq, thread.wait.key, thread.wait.lock = 2, lock_key, lock
        for name, value in fields.items():
            setattr(thread.wait, name, value)

    def add_retired_site(self, lock: int, stack: int, count: int, wait_ticks: int) -> None:
        """Add waits of ended threads to a lock."""
        offset = self._allocate(ffi.sizeof("struct lt_retired_site"))
        site, entry = self.struct_at("struct lt_retired_site", offset), self.lock(lock)
        site.stack, site.count, site.wait_ticks = stack, count, wait_ticks
        site.next, entry.sites = entry.sites, offset

    # ---- where things lie ----

    def lock(self, index: int) -> Any:
        """Return the entry of a lock."""
        return self.struct_at("struct lt_lock", self._element(self.header.locks, index))

    def retired(self, index: int) -> Any:
        """Return the counts of ended threads for a lock."""
        position = self.lock(index).retired - 1
        return self.struct_at("struct lt_retired", self._element(self.header.retired, position))

    def offset_of(self, struct: Any) -> int:
        """Return the offset in the file of a struct that a method returned."""
        base = int(ffi.cast("uintptr_t", ffi.from_buffer(self.data)))
        return int(ffi.cast("uintptr_t", ffi.addressof(struct))) - base

    def struct_at(self, name: str, offset: int) -> Any:
        return ffi.cast(f"{name} *", ffi.from_buffer(self.data) + offset)[0]

    def _allocate(self, size: int) -> int:
        offset = self._used
        self._used += (size + 63) // 64 * 64
        assert self._used <= len(self.data)
        return offset

    def _table(self, name: str, capacity: int) -> int:
        return self._allocate(capacity * ffi.sizeof(name))

    def _push(self, array: Any, name: str) -> tuple[Any, int]:
        index = array.count
        chunk = (index // array.first + 1).bit_length() - 1
        if not array.chunk[chunk]:
            array.chunk[chunk] = self._allocate((array.first << chunk) * array.element_size)
        array.count += 1
        return self.struct_at(name, self._element(array, index)), index

    def _element(self, array: Any, index: int) -> int:
        chunk = (index // array.first + 1).bit_length() - 1
        start = array.first * ((1 << chunk) - 1)
        return int(array.chunk[chunk] + (index - start) * array.element_size)


def monotonic_clock() -> Clock:
    """Return a clock whose ticks are nanoseconds."""
    return Clock(SharedFile().header_record())
