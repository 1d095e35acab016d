"""The records of the shared memory as typed tuples, and the offsets of the tables.

Source: ``native/include/locktop/abi.h``. Each record names the fields that Python reads. The
compiled header gives their offsets and types (``native.Record``).
"""

from __future__ import annotations

import struct
import sys
from typing import NamedTuple, cast

from locktop.collector.native import Record, ffi, lib, offset_of


class Header(NamedTuple):
    """The scalars of struct lt_header."""

    magic: bytes
    version: int
    byte_order: int
    word_bits: int
    header_size: int
    state: int
    notes: int
    pid: int
    uid: int
    start_time: int
    pid_namespace: int
    created_real_ns: int
    clock: int
    wait_shift: int
    clock0_ticks: int
    clock0_ns: int
    clock_hz: int
    used: int
    limit: int
    refused: int
    retire_seq: int
    threads_unwatched: int
    unloads: int
    forked_from: int
    lines_left_out: int


# ``count`` is the name of the C field. The field hides tuple.count(), which no caller needs.
class ArrayHead(NamedTuple):
    """struct lt_array without its chunks."""

    count: int  # type: ignore[assignment]
    element_size: int
    first: int


class Control(NamedTuple):
    """struct lt_control."""

    mode: int
    calls: int
    base_level: int
    claim_pid: int
    claim_level: int
    claim_ticks: int
    holds_until: int


class ThreadBlock(NamedTuple):
    """The fields of struct lt_thread that Python reads, without the tables."""

    state: int
    tid: int
    birth: int
    pthread: int
    mode: int
    name: bytes
    held: int
    held_size: int
    held_top: int
    ring: int
    ring_capacity: int


class WaitBlock(NamedTuple):
    """struct lt_wait."""

    seq: int
    flags: int
    key: int
    lock: int
    stack: int
    since: int
    site: int
    holder: int
    parties: int


class ConditionRecord(NamedTuple):
    """The fields of struct lt_condition that Python reads."""

    signalled: int
    mutex: int


class UseRecord(NamedTuple):
    """struct lt_use."""

    lock: int
    kind: int
    has_signalled: int
    acquisitions: int
    signals: int
    life: int
    taken_at: int


class HeldRecord(NamedTuple):
    """struct lt_held."""

    key: int
    lock: int
    depth: int
    flags: int
    site: int
    since: int
    wait_start: int
    wait_ticks: int
    stack: int
    holder: int


class LockRow(NamedTuple):
    """struct lt_lock_row."""

    lock: int
    kind: int
    address: int
    generation: int
    destroyed: int
    type: int
    foreign_releases: int
    made_at: int
    parent_posts: int
    sites: int
    waits: int
    acquisitions: int
    contended: int
    trylock_failed: int
    signals: int
    unheard: int
    life_acquisitions: int
    life_signals: int
    wait_ticks: int
    wait_max: int
    hold_ticks: int
    hold_timed: int
    hold_max: int
    hold_mean: int
    wait_counted: int
    hold_counted: int
    changed_acquisitions: int
    changed_contended: int
    changed_signals: int
    changed_wait_ticks: int
    changed_hold_ticks: int
    woken_at: int
    woken_tid: int


class SiteSum(NamedTuple):
    """struct lt_site_sum."""

    lock: int
    stack: int
    living: int
    blame: int
    count: int  # type: ignore[assignment]
    wait_ticks: int
    wait_max: int


class ChargeRecord(NamedTuple):
    """struct lt_charge."""

    lock: int
    stack: int
    holder: int
    wait_ticks: int


class RetiredSite(NamedTuple):
    """struct lt_retired_site."""

    next: int
    stack: int
    blame: int
    count: int  # type: ignore[assignment]
    wait_ticks: int


# ``count`` is the name of the C field.
class UnloadedHead(NamedTuple):
    """struct lt_unloaded_code without its ranges."""

    count: int  # type: ignore[assignment]


class CodeRange(NamedTuple):
    """struct lt_code_range."""

    start: int
    end: int


class NameRecord(NamedTuple):
    """struct lt_name."""

    key: int
    seq: int
    text: bytes


class MisuseRecord(NamedTuple):
    """struct lt_misuse."""

    kind: int
    lock: int
    stack: int
    tid: int
    other: int
    count: int  # type: ignore[assignment]
    first: int


class StackHead(NamedTuple):
    """struct lt_stack."""

    hash: int
    next: int
    depth: int


HEADER = Record(Header, "struct lt_header")
ARRAY = Record(ArrayHead, "struct lt_array")
CONTROL = Record(Control, "struct lt_control")
THREAD = Record(ThreadBlock, "struct lt_thread")
WAIT = Record(WaitBlock, "struct lt_wait")
USE = Record(UseRecord, "struct lt_use")
HELD = Record(HeldRecord, "struct lt_held")
LOCK_ROW = Record(LockRow, "struct lt_lock_row")
SITE_SUM = Record(SiteSum, "struct lt_site_sum")
CHARGE = Record(ChargeRecord, "struct lt_charge")
RETIRED_SITE = Record(RetiredSite, "struct lt_retired_site")
UNLOADED = Record(UnloadedHead, "struct lt_unloaded_code")
CODE_RANGE = Record(CodeRange, "struct lt_code_range")
NAME = Record(NameRecord, "struct lt_name")
MISUSE = Record(MisuseRecord, "struct lt_misuse")
STACK = Record(StackHead, "struct lt_stack")

CONDITIONS_AT = offset_of("struct lt_header", "conditions")
CONDITION = Record(ConditionRecord, "struct lt_condition")
WAIT_AT = offset_of("struct lt_thread", "wait")
THREADS_AT = offset_of("struct lt_header", "threads")
LOCKS_AT = offset_of("struct lt_header", "locks")
NAMES_AT = offset_of("struct lt_header", "names")
MISUSES_AT = offset_of("struct lt_header", "misuses")
MISUSES_CHANGED_AT = offset_of("struct lt_header", "misuses_changed")
NAMES_CHANGED_AT = offset_of("struct lt_header", "names_changed")
ORDERS_AT = offset_of("struct lt_header", "orders")
LIVES_AT = offset_of("struct lt_header", "lives")
UNLOADED_AT = offset_of("struct lt_header", "unloaded")
ORDERS_CHANGED_AT = offset_of("struct lt_header", "orders_changed")
UNLOADED_RANGES_AT = offset_of("struct lt_unloaded_code", "ranges")
RETIRED_AT = offset_of("struct lt_header", "retired")
RETIRED_LINES_AT = offset_of("struct lt_header", "retired_lines")
RETIRE_SEQ_AT = offset_of("struct lt_header", "retire_seq")
UNLOADED_SIZE: int = ffi.sizeof("struct lt_unloaded_code")
LOCK_SIZE: int = ffi.sizeof("struct lt_lock")
RETIRED_SIZE: int = ffi.sizeof("struct lt_retired")
LINE_SUM_SIZE: int = ffi.sizeof("struct lt_line_sum")
ORDER_SIZE: int = ffi.sizeof("struct lt_order")
LIFE_SIZE: int = ffi.sizeof("struct lt_life")
LOCK_SUM_SIZE: int = ffi.sizeof("struct lt_lock_sum")
MAGIC = b"locktop\0"
BYTE_ORDER = sys.byteorder
_CHUNKS = struct.Struct(f"={lib.LT_CHUNKS}Q")
_CHUNKS_AT = offset_of("struct lt_array", "chunk")


def chunk_offsets(array: bytes) -> tuple[int, ...]:
    """Return the chunk offsets of a struct lt_array."""
    return cast(tuple[int, ...], _CHUNKS.unpack_from(array, _CHUNKS_AT))
