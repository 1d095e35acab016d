"""The effect of one instruction on the word of a lock."""

from __future__ import annotations

from pathlib import Path

import pytest
from iced_x86 import Decoder, Register
from unit.builders.elf_program import assembled

from locktop.collector.symbols.unwind.first_use import NextUse, SoughtLock
from locktop.collector.symbols.unwind.x86_64.lock_use import NO_USE, use_by
from locktop.collector.symbols.unwind.x86_64.machine_state import MachineState

LOCK, OTHER = 0x15000, 0x16000
LOWERS, RAISES, WRITES = NextUse(lowers=True), NextUse(raises=True), NextUse(writes=True)
#: rbx is the lock, rbp another object, eax is 1, ecx 0 and esi 3; rdx is not known.
USES = {
    "movl $0, (%rbx)": LOWERS,
    "movl $1, (%rbx)": RAISES,
    "mov %edx, (%rbx)": WRITES,
    "movl $0, (%rbp)": NO_USE,
    "movl $0, 4(%rbx)": NO_USE,
    "movl $0, (%rdx)": NO_USE,
    "mov (%rbx), %ecx": NO_USE,
    "cmpl $0, (%rbx)": NO_USE,
    "xchg %ecx, (%rbx)": LOWERS,
    "xchg %esi, (%rbx)": RAISES,
    "xchg %edx, (%rbx)": WRITES,
    "lock cmpxchg %ecx, (%rbx)": LOWERS,
    "lock cmpxchg %esi, (%rbx)": RAISES,
    "lock cmpxchg %edx, (%rbx)": WRITES,
    "lock incl (%rbx)": RAISES,
    "lock decl (%rbx)": LOWERS,
    "lock addl $2, (%rbx)": RAISES,
    "lock addl $-2, (%rbx)": LOWERS,
    "lock subl $2, (%rbx)": LOWERS,
    "lock subl $-2, (%rbx)": RAISES,
    "lock xadd %esi, (%rbx)": RAISES,
    "lock xadd %edx, (%rbx)": WRITES,
    "lock andl $-2, (%rbx)": LOWERS,
    "lock orl $2, (%rbx)": RAISES,
    "lock btrl $1, (%rbx)": LOWERS,
    "lock btsl $1, (%rbx)": RAISES,
}
#: The same where the lowest bit alone says that the lock is held, and the word is 5.
OF_BITS = {
    "movl $4, (%rbx)": LOWERS,
    "movl $7, (%rbx)": NO_USE,
    "lock cmpxchg %ecx, (%rbx)": LOWERS,
    "lock cmpxchg %esi, (%rbx)": NO_USE,
    "mov %edx, (%rbx)": WRITES,
}


def use(text: str, lock: SoughtLock, directory: Path) -> NextUse:
    (instruction,) = Decoder(64, assembled(directory, text))
    registers = {
        Register.RBX: LOCK, Register.RBP: OTHER, Register.RAX: 1, Register.RCX: 0, Register.RSI: 3,
    }  # fmt: skip
    return use_by(instruction, MachineState(registers, {}), lock, read)


def read(address: int, size: int) -> bytes:
    return {LOCK: 5}.get(address, 0).to_bytes(size, "little")


@pytest.mark.parametrize("text", USES)
def test_an_instruction_takes_or_releases_the_lock(text: str, tmp_path: Path) -> None:
    assert use(text, SoughtLock(frozenset({LOCK})), tmp_path) == USES[text]


@pytest.mark.parametrize("text", OF_BITS)
def test_only_the_bits_of_a_holder_count(text: str, tmp_path: Path) -> None:
    lock = SoughtLock(frozenset({LOCK}), held_bits=1)
    assert use(text, lock, tmp_path) == OF_BITS[text]
