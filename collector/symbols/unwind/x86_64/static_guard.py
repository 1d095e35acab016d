"""Which frame runs the initialiser of a static variable of a C++ function (x86-64).

The function calls __cxa_guard_acquire(). If the result is not 0, the function runs the initialiser
and then calls __cxa_guard_release() or, after an exception, __cxa_guard_abort(). So a frame runs
the initialiser if all paths to its call lead over that result, and none of them over the other two
calls. The machine code shows that. Code that is not understood proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from iced_x86 import Code, Decoder, FlowControl, Instruction, Mnemonic, OpKind, Register

from locktop.collector.symbols.unwind.code_map import CodeFrame, CodeMap
from locktop.collector.symbols.unwind.stack_memory import StackCut
from locktop.collector.symbols.unwind.x86_64.call_target import call_target
from locktop.collector.symbols.unwind.x86_64.frame_offset import written_registers

_ACQUIRE, _ENDS = "__cxa_guard_acquire", ("__cxa_guard_release", "__cxa_guard_abort")
#: Bytes of the largest function whose code is read.
_MAX_CODE = 1 << 15
_RAX, _RDI = Register.RAX, Register.RDI
_JUMPS = frozenset({FlowControl.CONDITIONAL_BRANCH, FlowControl.UNCONDITIONAL_BRANCH})
_CALLS = frozenset({FlowControl.CALL, FlowControl.INDIRECT_CALL})
#: No path leads beyond such an instruction.
_PATH_ENDS = frozenset({
    FlowControl.UNCONDITIONAL_BRANCH, FlowControl.INDIRECT_BRANCH, FlowControl.RETURN,
    FlowControl.EXCEPTION,
})  # fmt: skip
_COPIES = frozenset({Code.MOV_R64_RM64, Code.MOV_RM64_R64})
#: How many instructions may lie between a call and the test of its result.
_MAX_TEST = 8

Instructions = Mapping[int, Instruction]  # by address
#: Reads a word of the program; 0 if it cannot be read.
ReadWord = Callable[[int], int]
#: Returns whether a call ends an initialisation; None if that is not known.
IsEnd = Callable[[Instruction], bool | None]


def is_initialising(code: CodeMap, guard: int, acquired: int, returns: int) -> bool:
    """Return whether a frame certainly runs the initialiser of a variable.

    Args:
        code: the code of the process.
        guard: the address of the variable's guard.
        acquired: the return address of a call of __cxa_guard_acquire().
        returns: the return address of the frame.

    Raises:
        StackCut: code is missing.
    """
    function = code.frame_at(acquired - 1)
    size = function.row.end - function.row.start
    if function.start != code.frame_at(returns - 1).start or size > _MAX_CODE:
        return False
    acquire = call_target(code, acquired)
    ends = _ends(code.frame_at(acquire), acquire) if acquire else ()
    if not ends:
        return False

    def is_end(call: Instruction) -> bool | None:
        target = call_target(code, call.next_ip)
        return target in ends if target else None

    def word(address: int) -> int:
        return int.from_bytes(code.read(address, 8), "little")

    instructions = _add_other_parts(code, decoded(function.code(_MAX_CODE), function.start))
    return is_guarded(instructions, function.start, guard, acquired, returns, is_end, word)


def decoded(code: bytes, start: int) -> dict[int, Instruction]:
    """Return the instructions of machine code that begins at ``start``."""
    return {instruction.ip: instruction for instruction in Decoder(64, code, ip=start)}


def _add_other_parts(code: CodeMap, instructions: Instructions) -> Instructions:
    """Return the instructions with those of parts that lie elsewhere: unlikely code, handlers.

    The function jumps to such a part, and the part may jump back. Another function does not.
    """
    parts = dict(instructions)
    for target in _jump_targets(instructions) - instructions.keys():
        try:
            part = code.frame_at(target)
            others = decoded(part.code(_MAX_CODE), part.start)
        except StackCut:
            continue  # no code of a compiler
        if _jump_targets(others) & instructions.keys():
            parts.update(others)
    return parts


def _ends(library: CodeFrame, acquire: int) -> Collection[int]:
    """Return the functions that end an initialisation; none if ``acquire`` does not begin one."""
    if library.function_named(_ACQUIRE) != acquire:
        return ()
    functions = {library.function_named(name) for name in _ENDS}
    return () if None in functions else {function for function in functions if function}


def is_guarded(
    instructions: Instructions,
    start: int,
    guard: int,
    acquired: int,
    returns: int,
    is_end: IsEnd,
    word: ReadWord,
) -> bool:
    """Return whether the call before ``returns`` is a part of the initialisation.

    Args:
        instructions: the machine code of the function.
        start: the address of the function.
        guard: see is_initialising().
        acquired: see is_initialising().
        returns: see is_initialising().
        is_end: tells whether a call ends an initialisation.
        word: reads the address of a guard that the function takes from memory.
    """
    by_end = {
        instruction.next_ip: instruction
        for instruction in instructions.values()
        if instruction.flow_control in _CALLS
    }
    acquire, call = by_end.get(acquired), by_end.get(returns)
    if acquire is None or call is None or acquire is call or not _is_understood(instructions):
        return False
    targets = _jump_targets(instructions)
    begin = _begin(instructions, acquired, targets)
    if not begin or _argument(instructions, acquire, targets, word) != guard:
        return False
    # No path leads to the handler of an exception, or to code of another handler.
    reachable = _reached_instructions(instructions, [start])
    entries = [start, *(ip for ip in instructions if ip not in reachable)]
    if call.ip in _reached_instructions(instructions, entries, but=begin):
        return False
    within = _reached_instructions(instructions, [begin]) & _leading_to(
        instructions, call.ip, begin
    )
    calls = (instructions[ip] for ip in within if instructions[ip].flow_control in _CALLS)
    return call.ip in within and all(
        instruction is call or is_end(instruction) is False for instruction in calls
    )


def _is_understood(instructions: Instructions) -> bool:
    """Return whether it is known where all jumps lead."""
    return all(
        instruction.flow_control != FlowControl.INDIRECT_BRANCH
        or instruction.is_ip_rel_memory_operand
        for instruction in instructions.values()
    )


def _jump_targets(instructions: Instructions) -> set[int]:
    jumps = (
        instruction for instruction in instructions.values() if instruction.flow_control in _JUMPS
    )
    return {instruction.near_branch_target for instruction in jumps}


def _next(instruction: Instruction) -> list[int]:
    following = [instruction.near_branch_target] if instruction.flow_control in _JUMPS else []
    return (
        following if instruction.flow_control in _PATH_ENDS else [*following, instruction.next_ip]
    )


def _reached_instructions(
    instructions: Instructions, entries: Iterable[int], but: int = 0
) -> set[int]:
    """Return the instructions on all paths from some entries that do not lead over ``but``."""
    seen, paths = {but}, list(entries)
    while paths:
        ip = paths.pop()
        if ip not in seen and ip in instructions:
            seen.add(ip)
            paths += _next(instructions[ip])
    return seen - {but}


def _leading_to(instructions: Instructions, call: int, begin: int) -> set[int]:
    """Return the instructions from which a path leads to ``call``, from ``begin`` on."""
    before: dict[int, list[int]] = {}
    for instruction in instructions.values():
        for following in _next(instruction):
            before.setdefault(following, []).append(instruction.ip)
    seen: set[int] = set()
    paths = [call]
    while paths:
        ip = paths.pop()
        if ip not in seen:
            seen.add(ip)
            paths += before.get(ip, ()) if ip != begin else ()
    return seen


def _begin(instructions: Instructions, acquired: int, targets: Collection[int]) -> int:
    """Return where the function goes on if it is to run the initialiser; 0 if that is not known.

    No other path may lead there.
    """
    ip, is_tested = acquired, False
    for _ in range(_MAX_TEST):
        instruction = instructions.get(ip)
        if instruction is None or ip in targets:
            return 0
        if instruction.mnemonic in (Mnemonic.JE, Mnemonic.JNE):
            ways = (instruction.next_ip, instruction.near_branch_target)
            begin, other = ways if instruction.mnemonic == Mnemonic.JE else reversed(ways)
            others = _arrivals(instructions, begin) - {instruction.ip}
            return begin if is_tested and begin != other and not others else 0
        if instruction.flow_control != FlowControl.NEXT:
            return 0
        if _tests_result(instruction) or (is_tested and instruction.mnemonic == Mnemonic.SETNE):
            is_tested = True
        elif instruction.mnemonic not in (Mnemonic.MOV, Mnemonic.LEA) or _RAX in written_registers(
            instruction
        ):
            return 0
        ip = instruction.next_ip
    return 0


def _tests_result(instruction: Instruction) -> bool:
    """Return whether an instruction compares the result of a call, or that of a test, with 0."""
    if instruction.mnemonic == Mnemonic.TEST:
        return (
            instruction.op0_register == instruction.op1_register
            and instruction.op0_register
            in (
                Register.EAX,
                Register.AL,
            )
        )
    is_number = instruction.op1_kind in (OpKind.IMMEDIATE8TO32, OpKind.IMMEDIATE32)
    is_compared = instruction.mnemonic == Mnemonic.CMP and instruction.op0_register == Register.EAX
    return is_compared and is_number and instruction.immediate(1) == 0


def _arrivals(instructions: Instructions, ip: int) -> set[int]:
    return {instruction.ip for instruction in instructions.values() if ip in _next(instruction)}


def _argument(
    instructions: Instructions, call: Instruction, targets: Collection[int], word: ReadWord
) -> int:
    """Return the first argument of a call, if it is a constant address; else 0."""
    by_end = {instruction.next_ip: instruction for instruction in instructions.values()}
    register, ip = _RDI, call.ip
    while ip not in targets and (instruction := by_end.get(ip)) is not None:
        if instruction.flow_control != FlowControl.NEXT:
            return 0
        ip = instruction.ip
        if register not in written_registers(instruction):
            continue
        if instruction.code in _COPIES and instruction.op1_kind == OpKind.REGISTER:
            register = instruction.op1_register
        elif instruction.code == Code.LEA_R64_M and instruction.is_ip_rel_memory_operand:
            return instruction.ip_rel_memory_address
        elif instruction.code == Code.MOV_R64_RM64 and instruction.is_ip_rel_memory_operand:
            return word(instruction.ip_rel_memory_address)
        else:
            return instruction.immediate32 if instruction.code == Code.MOV_R32_IMM32 else 0
    return 0
