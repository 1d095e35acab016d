"""The effect of an instruction on the word of a lock: the lock is taken or released."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from iced_x86 import Instruction, Mnemonic, OpKind

from locktop.collector.symbols.unwind.first_use import NextUse, SoughtLock
from locktop.collector.symbols.unwind.x86_64.machine_state import ACCUMULATORS, MachineState, Read

NO_USE = NextUse()
_LOWERS, RAISES, _WRITES = NextUse(lowers=True), NextUse(raises=True), NextUse(writes=True)
_ADDS = frozenset({Mnemonic.ADD, Mnemonic.XADD, Mnemonic.SUB, Mnemonic.INC, Mnemonic.DEC})


def use_by(instruction: Instruction, state: MachineState, words: SoughtLock, read: Read) -> NextUse:
    """Return what an instruction does to the words of a lock."""
    mnemonic = instruction.mnemonic
    is_written = instruction.op0_kind == OpKind.MEMORY or (
        mnemonic == Mnemonic.XCHG and instruction.op1_kind == OpKind.MEMORY
    )
    if not is_written or mnemonic not in _USES:
        return NO_USE
    address = state.address(instruction)
    if address is None or address not in words.addresses:
        return NO_USE
    if words.held_bits and mnemonic in (Mnemonic.CMPXCHG, Mnemonic.MOV):
        before = state.operand(instruction, 0, read)
        return _change_of(before, state.operand(instruction, 1), words.held_bits)
    return _USES[mnemonic](instruction, state)


def _change_of(before: int | None, after: int | None, bits: int) -> NextUse:
    if before is None or after is None:
        return _WRITES
    before, after = before & bits, after & bits
    return NO_USE if before == after else _LOWERS if after < before else RAISES


def _exchange(instruction: Instruction, state: MachineState) -> NextUse:
    operand = 1 if instruction.op0_kind == OpKind.MEMORY else 0
    return _write_of(state.operand(instruction, operand))


def _store(instruction: Instruction, state: MachineState) -> NextUse:
    return _write_of(state.operand(instruction, 1))


def _write_of(value: int | None) -> NextUse:
    return _WRITES if value is None else RAISES if value else _LOWERS


def _compare_exchange(instruction: Instruction, state: MachineState) -> NextUse:
    value = state.operand(instruction, 1)
    expected = state.register(ACCUMULATORS[state.size(instruction)])
    if value is None or expected is None:
        return _WRITES
    return _LOWERS if value < expected else RAISES


def _add(instruction: Instruction, state: MachineState) -> NextUse:
    mnemonic = instruction.mnemonic
    if mnemonic in (Mnemonic.INC, Mnemonic.DEC):
        return RAISES if mnemonic == Mnemonic.INC else _LOWERS
    value = state.operand(instruction, 1)
    if value is None:
        return _WRITES
    negative = bool(value >> (8 * state.size(instruction) - 1))
    return _LOWERS if negative is not (mnemonic == Mnemonic.SUB) else RAISES


_USES: Mapping[int, Callable[[Instruction, MachineState], NextUse]] = {
    Mnemonic.XCHG: _exchange,
    Mnemonic.CMPXCHG: _compare_exchange,
    Mnemonic.MOV: _store,
    Mnemonic.AND: lambda instruction, state: _LOWERS,
    Mnemonic.BTR: lambda instruction, state: _LOWERS,
    Mnemonic.OR: lambda instruction, state: RAISES,
    Mnemonic.BTS: lambda instruction, state: RAISES,
    **dict.fromkeys(_ADDS, _add),
}
