"""Whether a thread of a core slept in its call, by the registers that the kernel left."""

from __future__ import annotations

import struct

import pytest

from locktop.collector.linux import syscalls
from locktop.collector.sources.core import core_threads

_WORD = 0x7F00_0000_1000
_FUTEX, _NO_CALL = 202, (1 << 64) - 1
_RAX, _RDI, _ORIG_RAX, _RIP, _RSP = 10, 14, 15, 16, 19


def _note(rax: int, orig_rax: int) -> bytes:
    registers = [0] * 27
    registers[_RAX], registers[_ORIG_RAX] = rax & _NO_CALL, orig_rax
    registers[_RDI], registers[_RIP], registers[_RSP] = _WORD, 0x1000, 0x2000
    head = struct.pack("<12xh18xi12x4q32x", 6, 4711, 1, 500_000, 0, 0)
    return head + struct.pack("<27Q", *registers) + bytes(8)


@pytest.mark.parametrize("code", [-512, -513, -514, -516, -4])
def test_a_thread_slept_if_the_dump_interrupted_its_call(code: int) -> None:
    thread = core_threads.thread(_note(code, _FUTEX), "worker")
    assert thread is not None
    assert thread.is_asleep
    call = syscalls.parse(thread.call)
    assert call is not None
    assert (call.number, call.arguments[0], call.pc, call.sp) == (_FUTEX, _WORD, 0x1000, 0x2000)
    assert (thread.tid, thread.name, thread.cpu_s) == (4711, "worker", 1.5)


@pytest.mark.parametrize(
    ("rax", "orig_rax"), [(0, _FUTEX), (-11, _FUTEX), (-110, _FUTEX), (-512, _NO_CALL)]
)
def test_a_thread_whose_call_has_ended_waits_no_more(rax: int, orig_rax: int) -> None:
    thread = core_threads.thread(_note(rax, orig_rax), "")
    assert thread is not None
    assert not thread.is_asleep
    assert syscalls.parse(thread.call) is None


def test_a_note_that_is_cut_has_no_thread() -> None:
    note = _note(0, _FUTEX)
    assert core_threads.thread(note[: len(note) // 2], "") is None
    assert core_threads.signal_of(note) == 6
    assert core_threads.signal_of(note[:20]) == 0
