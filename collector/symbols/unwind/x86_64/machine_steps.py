"""How an instruction changes the known values of a thread, and whether a jump is taken (x86-64).

An instruction that is not in the table leaves what it writes unknown.
"""

from __future__ import annotations

from collections.abc import Callable

from iced_x86 import (
    ConditionCode,
    Instruction,
    InstructionInfoFactory,
    Mnemonic,
    OpAccess,
    OpKind,
    Register,
    RegisterExt,
)

from locktop.collector.symbols.unwind.x86_64.machine_state import (
    ACCUMULATORS,
    Flags,
    MachineState,
    Read,
    is_allocated,
    memory_size,
)

_WRITES = frozenset({
    OpAccess.WRITE, OpAccess.COND_WRITE, OpAccess.READ_WRITE, OpAccess.READ_COND_WRITE,
})  # fmt: skip
_MASK = (1 << 64) - 1
_WORD = 8
_MAX_COPY = 4096  # bytes that an instruction copies
_info = InstructionInfoFactory()

_Step = Callable[[Instruction, MachineState, Read], None]


def step(instruction: Instruction, state: MachineState, read: Read) -> None:
    """Change the state as an instruction does that is no jump, call or return."""
    handler = _STEPS.get(instruction.mnemonic)
    if handler is not None:
        handler(instruction, state, read)
        return
    if instruction.rflags_modified:
        state.flags = Flags()
    if instruction.op_count and instruction.op0_kind == OpKind.MEMORY:
        state.set_operand(instruction, 0, None)
    for used in _info.info(instruction).used_registers():
        if used.access in _WRITES:
            state.forget(RegisterExt.full_register(used.register))


# ---- moves ----


def _move(instruction: Instruction, state: MachineState, read: Read) -> None:
    state.set_operand(instruction, 0, state.operand(instruction, 1, read))


def _move_low_half(instruction: Instruction, state: MachineState, read: Read) -> None:
    value = state.operand(instruction, 1, read)
    state.set_operand(instruction, 0, None if value is None else value & _MASK)


def _move_high_half(instruction: Instruction, state: MachineState, read: Read) -> None:
    """MOVHPS and PUNPCKLQDQ of a vector register: its high half becomes the other's low one."""
    if instruction.op0_kind == OpKind.MEMORY:
        high = state.operand(instruction, 1)
        state.set_operand(instruction, 0, None if high is None else high >> 64)
        return
    low, high = state.operand(instruction, 0), state.operand(instruction, 1, read)
    is_known = low is not None and high is not None
    value = (low or 0) & _MASK | ((high or 0) & _MASK) << 64
    state.set_operand(instruction, 0, value if is_known else None)


def _move_signed(instruction: Instruction, state: MachineState, read: Read) -> None:
    value = state.operand(instruction, 1, read)
    if value is not None:
        is_memory = instruction.op1_kind == OpKind.MEMORY
        size = memory_size(instruction) if is_memory else RegisterExt.size(instruction.op1_register)
        value = (
            _signed_number(value, size) & (1 << 8 * RegisterExt.size(instruction.op0_register)) - 1
        )
    state.set_operand(instruction, 0, value)


def _extend_accumulator(instruction: Instruction, state: MachineState, read: Read) -> None:
    value = state.register(Register.EAX)
    state.set_register(Register.RAX, None if value is None else _signed_number(value, 4) & _MASK)


def _move_if(instruction: Instruction, state: MachineState, read: Read) -> None:
    before, value = state.operand(instruction, 0), state.operand(instruction, 1, read)
    moved = is_taken(instruction, state)
    if moved is None:
        state.set_operand(instruction, 0, value if value == before else None)
    else:
        state.set_operand(instruction, 0, value if moved else before)


def _set_if(instruction: Instruction, state: MachineState, read: Read) -> None:
    holds = is_taken(instruction, state)
    state.set_operand(instruction, 0, None if holds is None else int(holds))


def _load_address(instruction: Instruction, state: MachineState, read: Read) -> None:
    state.set_operand(instruction, 0, state.address(instruction))


def _combine_bits(instruction: Instruction, state: MachineState, read: Read) -> None:
    """PXOR and the like: a vector register combined with itself is 0."""
    last = instruction.op_count - 1
    is_same = (
        instruction.op_kind(last) == OpKind.REGISTER
        and instruction.op_kind(last - 1) == OpKind.REGISTER
        and instruction.op_register(last) == instruction.op_register(last - 1)
    )
    state.set_operand(instruction, 0, 0 if is_same else None)


def _push(instruction: Instruction, state: MachineState, read: Read) -> None:
    value = state.operand(instruction, 0, read)
    sp = state.register(Register.RSP)
    if sp is not None:
        state.registers[Register.RSP] = sp - _WORD
        state.store(sp - _WORD, _WORD, value)


def _pop(instruction: Instruction, state: MachineState, read: Read) -> None:
    sp = state.register(Register.RSP)
    value = state.load(sp, _WORD, read) if sp is not None else None
    state.set_operand(instruction, 0, value)
    if sp is not None:
        state.registers[Register.RSP] = sp + _WORD


def _leave(instruction: Instruction, state: MachineState, read: Read) -> None:
    frame = state.register(Register.RBP)
    state.set_register(Register.RSP, None if frame is None else frame + _WORD)
    state.set_register(Register.RBP, None if frame is None else state.load(frame, _WORD, read))


def _copy_memory(instruction: Instruction, state: MachineState, read: Read) -> None:
    """MOVS and STOS, once or with a count."""
    size = memory_size(instruction)
    is_copy = instruction.op1_kind != OpKind.REGISTER
    count = state.register(Register.RCX) if instruction.has_rep_prefix else 1
    to, source = state.register(Register.RDI), state.register(Register.RSI)
    if count is None or to is None or count * size > _MAX_COPY:
        for register in (Register.RCX, Register.RDI, *([Register.RSI] if is_copy else ())):
            state.forget(register)
        return
    for offset in range(0, count * size, size):
        if not is_copy:
            value = state.operand(instruction, 1)
        else:
            value = state.load(source + offset, size, read) if source is not None else None
        state.store(to + offset, size, value)
    state.set_register(Register.RDI, to + count * size)
    if is_copy and source is not None:
        state.set_register(Register.RSI, source + count * size)
    if instruction.has_rep_prefix:
        state.set_register(Register.RCX, 0)


def _system_call(instruction: Instruction, state: MachineState, read: Read) -> None:
    for register in (Register.RAX, Register.RCX, Register.R11):
        state.forget(register)


# ---- arithmetic ----


def _signed_number(value: int, size: int) -> int:
    return value - (1 << 8 * size) if value >> (8 * size - 1) else value


def _result_flags(result: int, size: int, carry: bool | None, overflow: bool | None) -> Flags:
    sign = bool(result >> (8 * size - 1) & 1)
    return Flags(zero=not result, sign=sign, carry=carry, overflow=overflow)


def _difference_flags(first: int, second: int, size: int) -> Flags:
    result = first - second & (1 << 8 * size) - 1
    signed = _signed_number(first, size) - _signed_number(second, size)
    overflow = signed != _signed_number(result, size)
    return _result_flags(result, size, first < second, overflow)


def _sum_flags(first: int, second: int, size: int) -> Flags:
    result = first + second & (1 << 8 * size) - 1
    signed = _signed_number(first, size) + _signed_number(second, size)
    return _result_flags(
        result, size, first + second != result, signed != _signed_number(result, size)
    )


def _calculate(instruction: Instruction, state: MachineState, read: Read) -> None:
    """Arithmetic of two operands; a comparison writes no result."""
    mnemonic, size = instruction.mnemonic, state.size(instruction)
    is_same = (
        instruction.op1_kind == OpKind.REGISTER
        and instruction.op0_kind == OpKind.REGISTER
        and instruction.op0_register == instruction.op1_register
    )
    if is_same and mnemonic in (Mnemonic.XOR, Mnemonic.SUB):
        first: int | None = 0
        second: int | None = 0
    else:
        first = state.operand(instruction, 0, read)
        second = state.operand(instruction, 1, read)
    result = None
    state.flags = Flags()
    if is_allocated(first) or is_allocated(second):
        result = _calculate_address(instruction, state, first, second)
    elif first is not None and second is not None:
        result = _ARITHMETIC[mnemonic](first, second) & (1 << 8 * size) - 1
        if mnemonic in (Mnemonic.CMP, Mnemonic.SUB):
            state.flags = _difference_flags(first, second, size)
        elif mnemonic == Mnemonic.ADD:
            state.flags = _sum_flags(first, second, size)
        else:
            state.flags = _result_flags(result, size, carry=False, overflow=False)
    if mnemonic not in (Mnemonic.CMP, Mnemonic.TEST):
        state.set_operand(instruction, 0, result)


def _calculate_address(
    instruction: Instruction, state: MachineState, first: int | None, second: int | None
) -> int | None:
    """Do the same with the address of an object of which only is known that it is not null."""
    mnemonic = instruction.mnemonic
    if (mnemonic == Mnemonic.CMP and 0 in (first, second)) or (
        mnemonic == Mnemonic.TEST and first == second
    ):
        state.flags = Flags(zero=False)
    if mnemonic != Mnemonic.ADD or first is None or second is None:
        return None
    return first + second & _MASK


def _count(instruction: Instruction, state: MachineState, read: Read) -> None:
    """INC and DEC; the carry flag stays."""
    value, size = state.number(instruction, 0, read), state.size(instruction)
    carry = state.flags.carry
    state.flags = Flags(carry=carry)
    if value is not None:
        is_up = instruction.mnemonic == Mnemonic.INC
        flags = _sum_flags(value, 1, size) if is_up else _difference_flags(value, 1, size)
        state.flags = flags._replace(carry=carry)
        value = value + (1 if is_up else -1) & (1 << 8 * size) - 1
    state.set_operand(instruction, 0, value)


def _negate(instruction: Instruction, state: MachineState, read: Read) -> None:
    """NEG, and NOT, which leaves the flags as they are."""
    value, size = state.number(instruction, 0, read), state.size(instruction)
    mask = (1 << 8 * size) - 1
    if instruction.mnemonic == Mnemonic.NEG:
        state.flags = _difference_flags(0, value, size) if value is not None else Flags()
        result = None if value is None else -value & mask
    else:
        result = None if value is None else ~value & mask
    state.set_operand(instruction, 0, result)


def _shift(instruction: Instruction, state: MachineState, read: Read) -> None:
    value, size = state.number(instruction, 0, read), state.size(instruction)
    by = state.number(instruction, 1) if instruction.op_count > 1 else 1
    state.flags = Flags()
    if value is None or by is None:
        state.set_operand(instruction, 0, None)
        return
    by &= 63 if size == _WORD else 31
    if instruction.mnemonic == Mnemonic.SHL:
        result = value << by
    elif instruction.mnemonic == Mnemonic.SHR:
        result = value >> by
    else:
        result = _signed_number(value, size) >> by
    result &= (1 << 8 * size) - 1
    state.flags = _result_flags(result, size, None, None)
    state.set_operand(instruction, 0, result)


def _multiply(instruction: Instruction, state: MachineState, read: Read) -> None:
    state.flags = Flags()
    if instruction.op_count < 2:
        state.forget(Register.RAX)
        state.forget(Register.RDX)
        return
    first, second = instruction.op_count - 2, instruction.op_count - 1
    values = state.number(instruction, first, read), state.number(instruction, second, read)
    size = RegisterExt.size(instruction.op0_register)
    is_known = values[0] is not None and values[1] is not None
    result = (values[0] or 0) * (values[1] or 0) & (1 << 8 * size) - 1
    state.set_operand(instruction, 0, result if is_known else None)


def _test_bit(instruction: Instruction, state: MachineState, read: Read) -> None:
    """BT, BTS, BTR and BTC."""
    value, bit = state.number(instruction, 0, read), state.number(instruction, 1)
    state.flags = state.flags._replace(carry=None)
    result = None
    if value is not None and bit is not None:
        mask = 1 << bit % (8 * state.size(instruction))
        state.flags = state.flags._replace(carry=bool(value & mask))
        result = _BITS[instruction.mnemonic](value, mask)
    if instruction.mnemonic != Mnemonic.BT:
        state.set_operand(instruction, 0, result)


# ---- exchanges ----


def _exchange(instruction: Instruction, state: MachineState, read: Read) -> None:
    """XCHG, and XADD, which leaves the sum in the first operand."""
    first = state.operand(instruction, 0, read)
    second = state.operand(instruction, 1, read)
    into_first = second
    if instruction.mnemonic == Mnemonic.XADD:
        size = state.size(instruction)
        state.flags, into_first = Flags(), None
        if first is not None and second is not None:
            state.flags = _sum_flags(first, second, size)
            into_first = first + second & (1 << 8 * size) - 1
    if instruction.op0_kind == OpKind.MEMORY:  # its address may count from the register
        state.set_operand(instruction, 0, into_first)
        state.set_operand(instruction, 1, first)
    else:
        state.set_operand(instruction, 1, first)
        state.set_operand(instruction, 0, into_first)


def _compare_exchange(instruction: Instruction, state: MachineState, read: Read) -> None:
    size = state.size(instruction)
    value, new = state.number(instruction, 0, read), state.operand(instruction, 1)
    expected = state.register(ACCUMULATORS[size])
    if value is None or expected is None:
        state.flags = Flags()
        state.set_operand(instruction, 0, None)
        state.forget(Register.RAX)
        return
    state.flags = _difference_flags(expected, value, size)
    if expected == value:
        state.set_operand(instruction, 0, new)
    else:
        state.set_register(ACCUMULATORS[size], value)


# ---- conditions ----


def is_taken(instruction: Instruction, state: MachineState) -> bool | None:
    """Return whether the condition of an instruction holds; None if that is not known."""
    condition = _CONDITIONS.get(instruction.condition_code)
    if condition is None:
        return None
    holds, is_negated = condition
    result = holds(state.flags)
    return None if result is None else result is not is_negated


def _differs(first: bool | None, second: bool | None) -> bool | None:
    return None if first is None or second is None else first is not second


def _either(first: bool | None, second: bool | None) -> bool | None:
    if first or second:
        return True
    return None if first is None or second is None else False


def _is_less(flags: Flags) -> bool | None:
    return _differs(flags.sign, flags.overflow)


#: The condition, and whether the code asks for the opposite.
_CONDITIONS: dict[int, tuple[Callable[[Flags], bool | None], bool]] = {
    ConditionCode.O: (lambda flags: flags.overflow, False),
    ConditionCode.NO: (lambda flags: flags.overflow, True),
    ConditionCode.B: (lambda flags: flags.carry, False),
    ConditionCode.AE: (lambda flags: flags.carry, True),
    ConditionCode.E: (lambda flags: flags.zero, False),
    ConditionCode.NE: (lambda flags: flags.zero, True),
    ConditionCode.BE: (lambda flags: _either(flags.carry, flags.zero), False),
    ConditionCode.A: (lambda flags: _either(flags.carry, flags.zero), True),
    ConditionCode.S: (lambda flags: flags.sign, False),
    ConditionCode.NS: (lambda flags: flags.sign, True),
    ConditionCode.L: (_is_less, False),
    ConditionCode.GE: (_is_less, True),
    ConditionCode.LE: (lambda flags: _either(_is_less(flags), flags.zero), False),
    ConditionCode.G: (lambda flags: _either(_is_less(flags), flags.zero), True),
}

# ---- the table ----

_ARITHMETIC: dict[int, Callable[[int, int], int]] = {
    Mnemonic.ADD: lambda first, second: first + second,
    Mnemonic.SUB: lambda first, second: first - second,
    Mnemonic.CMP: lambda first, second: first - second,
    Mnemonic.AND: lambda first, second: first & second,
    Mnemonic.TEST: lambda first, second: first & second,
    Mnemonic.OR: lambda first, second: first | second,
    Mnemonic.XOR: lambda first, second: first ^ second,
}
_BITS: dict[int, Callable[[int, int], int]] = {
    Mnemonic.BT: lambda value, mask: value,
    Mnemonic.BTS: lambda value, mask: value | mask,
    Mnemonic.BTR: lambda value, mask: value & ~mask,
    Mnemonic.BTC: lambda value, mask: value ^ mask,
}
_MOVES = (
    Mnemonic.MOV, Mnemonic.MOVZX, Mnemonic.MOVUPS, Mnemonic.MOVAPS, Mnemonic.MOVDQU,
    Mnemonic.MOVDQA, Mnemonic.MOVUPD, Mnemonic.MOVAPD, Mnemonic.MOVD, Mnemonic.VMOVUPS,
    Mnemonic.VMOVAPS, Mnemonic.VMOVDQU, Mnemonic.VMOVDQA, Mnemonic.VMOVDQU64, Mnemonic.VMOVDQA64,
    Mnemonic.VMOVD, Mnemonic.LDDQU, Mnemonic.MOVNTDQ, Mnemonic.MOVNTI,
)  # fmt: skip
_VECTOR_XORS = (
    Mnemonic.PXOR, Mnemonic.XORPS, Mnemonic.XORPD, Mnemonic.VPXOR, Mnemonic.VXORPS, Mnemonic.VXORPD,
)  # fmt: skip
_CONDITIONAL = {
    name: number
    for name, number in vars(Mnemonic).items()
    if name.startswith(("CMOV", "SET")) and isinstance(number, int)
}
_STEPS: dict[int, _Step] = {
    **dict.fromkeys(_MOVES, _move),
    **{number: _move_if for name, number in _CONDITIONAL.items() if name.startswith("CMOV")},
    **{number: _set_if for name, number in _CONDITIONAL.items() if name.startswith("SET")},
    **dict.fromkeys((Mnemonic.MOVQ, Mnemonic.VMOVQ), _move_low_half),
    **dict.fromkeys((Mnemonic.MOVHPS, Mnemonic.MOVHPD, Mnemonic.PUNPCKLQDQ), _move_high_half),
    **dict.fromkeys((Mnemonic.MOVSX, Mnemonic.MOVSXD), _move_signed),
    **dict.fromkeys(_VECTOR_XORS, _combine_bits),
    Mnemonic.CDQE: _extend_accumulator,
    Mnemonic.LEA: _load_address,
    Mnemonic.PUSH: _push,
    Mnemonic.POP: _pop,
    Mnemonic.LEAVE: _leave,
    Mnemonic.SYSCALL: _system_call,
    **dict.fromkeys((Mnemonic.MOVSB, Mnemonic.MOVSQ, Mnemonic.STOSB, Mnemonic.STOSQ), _copy_memory),
    **dict.fromkeys(_ARITHMETIC, _calculate),
    **dict.fromkeys((Mnemonic.INC, Mnemonic.DEC), _count),
    **dict.fromkeys((Mnemonic.NEG, Mnemonic.NOT), _negate),
    **dict.fromkeys((Mnemonic.SHL, Mnemonic.SHR, Mnemonic.SAR), _shift),
    Mnemonic.IMUL: _multiply,
    **dict.fromkeys(_BITS, _test_bit),
    **dict.fromkeys((Mnemonic.XCHG, Mnemonic.XADD), _exchange),
    Mnemonic.CMPXCHG: _compare_exchange,
}
