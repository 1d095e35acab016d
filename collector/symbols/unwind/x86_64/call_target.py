"""Functions without a frame: which function of a library its caller called (x86-64).

A function that ended in a jump to another one has no frame any more. The other function seldom has
a name. The call instruction in the caller's code still names the first one.
"""

from __future__ import annotations

from collections.abc import Sequence

from locktop.collector.symbols.unwind.code_map import CodeMap
from locktop.collector.symbols.unwind.stack_memory import StackCut
from locktop.collector.symbols.unwind.x86_64.calls import is_indirect_call

_MAX_FRAMES = 16  # a wait is near the innermost frame
_CALL, _CALL_OF_WORD, _JUMP_OF_WORD = b"\xe8", b"\xff\x15", b"\xff\x25"
_STUB_SIZE = 16  # bytes of an entry of the linkage table
_STUB_PREFIXES = (b"\xf3\x0f\x1e\xfa", b"\xf2")  # endbr64, bnd
_MASK = (1 << 64) - 1


def entered_functions(code: CodeMap, addresses: Sequence[int]) -> list[tuple[int, int]]:
    """Return the functions without a frame that a stack leads through.

    A function is left out if its caller called it through a register. The same is true of a
    function outside the module whose frames come before.

    Args:
        code: The code of the process.
        addresses: The stack, innermost first.

    Returns:
        For each such function the index of the frame that called it, of another module, and the
        function's address.
    """
    functions = []
    for index, address in enumerate(addresses[1:_MAX_FRAMES], 1):
        module = code.file(addresses[index - 1] - 1)
        if module is not None and code.file(address - 1) != module:
            function = call_target(code, address)
            if code.file(function) == module and not _is_in(code, addresses[index - 1], function):
                functions.append((index, function))
    return functions


def _is_in(code: CodeMap, address: int, function: int) -> bool:
    try:
        return code.frame_at(address - 1).start == code.frame_at(function).start
    except StackCut:
        return True  # nothing is known of the function


def call_target(code: CodeMap, return_address: int) -> int:
    """Return the target of the call before a return address; 0 if the call does not give it."""
    before = code.read(return_address - 7, 7)
    if len(before) < 7:
        return 0
    distance = int.from_bytes(before[-4:], "little", signed=True)
    if before[-6:-4] == _CALL_OF_WORD:
        return _word(code, return_address + distance)
    if before[-5:-4] != _CALL or is_indirect_call(before):
        return 0
    target = return_address + distance & _MASK
    return _through_stub(code, target) or target


def jump_target(code: CodeMap, address: int) -> int:
    """Return where a jump to an address leads: a function of a library by the linkage table."""
    return _through_stub(code, address) or address


def _through_stub(code: CodeMap, address: int) -> int:
    """Return the target of an entry of the linkage table; 0 if the address has no such entry."""
    stub = code.read(address, _STUB_SIZE)
    prefix_end = 0
    for prefix in _STUB_PREFIXES:
        prefix_end += len(prefix) if stub[prefix_end : prefix_end + len(prefix)] == prefix else 0
    if stub[prefix_end : prefix_end + 2] != _JUMP_OF_WORD or len(stub) < prefix_end + 6:
        return 0
    distance = int.from_bytes(stub[prefix_end + 2 : prefix_end + 6], "little", signed=True)
    slot = address + prefix_end + 6 + distance
    target = _word(code, slot)
    if code.file(target) == code.file(address):  # it leads back, to the call of the linker
        return code.linked_function(slot) or target
    return target


def _word(code: CodeMap, address: int) -> int:
    return int.from_bytes(code.read(address & _MASK, 8), "little")
