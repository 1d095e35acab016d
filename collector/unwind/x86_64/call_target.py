"""Which function of a library its caller called: one that ended in a jump to another has no frame
any more, and the other one seldom a name (x86-64)."""

from __future__ import annotations

from collections.abc import Sequence

from locktop.collector.unwind.code_map import CodeMap
from locktop.collector.unwind.truncation import Cut
from locktop.collector.unwind.x86_64.register_recovery import is_indirect

_MAX_FRAMES = 16  # looked at: what waits is near
_CALL, _CALL_OF_WORD, _JUMP_OF_WORD = b"\xe8", b"\xff\x15", b"\xff\x25"
_STUB = 16  # bytes of a linkage table's entry
_MARKS = (b"\xf3\x0f\x1e\xfa", b"\xf2")  # endbr64, bnd: what such an entry may begin with
_MASK = (1 << 64) - 1


def entered(code: CodeMap, addresses: Sequence[int]) -> list[tuple[int, int]]:
    """Return the functions without a frame that a stack (innermost first) leads through: each with
    the frame that called it, of another module. None is told where the call does not tell: it led
    through a register, or not into the module whose frames come before."""
    found = []
    for at, address in enumerate(addresses[1:_MAX_FRAMES], 1):
        inside = code.file(addresses[at - 1] - 1)
        if inside is not None and code.file(address - 1) != inside:
            function = _called(code, address)
            if code.file(function) == inside and not _is_in(code, addresses[at - 1], function):
                found.append((at, function))
    return found


def _is_in(code: CodeMap, address: int, function: int) -> bool:
    try:
        return code.place(address - 1).start == code.place(function).start
    except Cut:
        return True  # nothing is known of it


def _called(code: CodeMap, returns: int) -> int:
    """The function that the call before a return address led to, 0 where it does not tell."""
    before = code.read(returns - 7, 7)
    if len(before) < 7:
        return 0
    distance = int.from_bytes(before[-4:], "little", signed=True)
    if before[-6:-4] == _CALL_OF_WORD:
        return _word(code, returns + distance)
    if before[-5:-4] != _CALL or is_indirect(before):
        return 0
    target = returns + distance & _MASK
    return _through_stub(code, target) or target


def _through_stub(code: CodeMap, address: int) -> int:
    """Where an entry of the linkage table leads, 0 if it is none."""
    stub = code.read(address, _STUB)
    at = 0
    for mark in _MARKS:
        at += len(mark) if stub[at : at + len(mark)] == mark else 0
    if stub[at : at + 2] != _JUMP_OF_WORD or len(stub) < at + 6:
        return 0
    distance = int.from_bytes(stub[at + 2 : at + 6], "little", signed=True)
    return _word(code, address + at + 6 + distance)


def _word(code: CodeMap, address: int) -> int:
    return int.from_bytes(code.read(address & _MASK, 8), "little")
