"""Cached walks against fresh walks, on random stacks with random functions.

A walk that the cache returns for another stack must be the true walk of that stack.
"""

from __future__ import annotations

import os
import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import pytest

from locktop.collector.symbols.unwind.arch import architecture
from locktop.collector.symbols.unwind.cfi_program import CfaRule, RegisterRule, RuleKind, UnwindRow
from locktop.collector.symbols.unwind.code_map import CodeMap
from locktop.collector.symbols.unwind.cursor import Unwound, Walk
from locktop.collector.symbols.unwind.stack_memory import StackCut, StackMemory
from locktop.collector.symbols.unwind.walk_cache import WalkCache
from locktop.collector.symbols.unwind.x86_64.register_recovery import FrameRegisters

ROUNDS, _, FIRST = os.environ.get("LOCKTOP_FUZZ", "30").partition(":")
SEEDS = range(int(FIRST or 0), int(FIRST or 0) + int(ROUNDS))
SP, PC, RBX, RBP, R12 = 7, 16, 3, 6, 12
WORDS = 128
BEGIN = 0x7000_0000
#: The code lies in the middle of the stack, so that a false frame can be read.
FUNCTIONS, CODE, SIZE = 8, BEGIN + 0x180, 0x20
SHIFTS = (0, *range(8, 0x100, 8), 0x1000, 0x12340)
#: rsp plus a number; the word there; rbp plus a number. Then rsp aligned to 32 and to 128; rip plus
#: a number. A number below 64 is its own LEB128.
EXPRESSIONS = (
    b"\x77\x10", b"\x77\x18\x06", b"\x76\x20", b"\x77\x3f\x09\xe0\x1a",
    b"\x77\x3f\x09\x80\x1a", b"\x80\x10",
)  # fmt: skip


@dataclass
class Frame:
    row: UnwindRow

    @property
    def start(self) -> int:
        return self.row.start


class Functions:
    """Random code: the parts of a CodeMap and of FrameRegisters that a walk queries."""

    def __init__(self, chance: random.Random) -> None:
        self.rows = [some_row(chance, number) for number in range(FUNCTIONS)]
        self._sizes = [chance.choice((None, 1, 1, 1, 4, 8)) for _ in self.rows]

    def is_code(self, address: int) -> bool:
        return 0 <= address - CODE < FUNCTIONS * SIZE

    def frame_at(self, address: int) -> Frame:
        if not self.is_code(address):
            raise StackCut("the stack leads where no code is")
        return Frame(self.rows[(address - CODE) // SIZE])

    def candidates(
        self, frame: Frame, pc: int, sp: int, register: int, *, is_return: bool
    ) -> Sequence[int] | None:
        several = self._sizes[(frame.start - CODE) // SIZE]
        if several is None or register != RBP:
            return None
        if several > 1 and (sp + 8) % (8 * several):
            return ()
        return range(sp + 32, sp + 32 + 8 * several, 8)

    def may_return_to(self, address: int) -> bool:
        return self.is_code(address)

    def may_call(self, returns: int, callee: Frame) -> bool:
        return returns % 3 > 0


def some_row(chance: random.Random, number: int) -> UnwindRow:
    start = CODE + number * SIZE
    cfa = chance.choices(
        (
            CfaRule(SP, 8 * chance.randrange(1, 5)), CfaRule(RBP, 16),
            CfaRule(PC, 8 * chance.randrange(8)), CfaRule(-1, 0, chance.choice(EXPRESSIONS)), None,
        ),
        (20, 10, 2, 4, 0.2),
    )[0]  # fmt: skip
    rules = {PC: RegisterRule(RuleKind.AT_CFA, -8)}
    if chance.random() < 0.1:
        rules[PC] = RegisterRule(RuleKind.CFA_PLUS, chance.randrange(0, 0x280, 8))
    if chance.random() < 0.7:
        rules[RBP] = RegisterRule(RuleKind.AT_CFA, -16)
    if chance.random() < 0.3:
        rules[RBX] = RegisterRule(RuleKind.AT_CFA, -24)
    if chance.random() < 0.3:
        register = chance.choice((SP, RBX, RBP, RBP, RBP, R12))
        rules[register] = chance.choice((
            RegisterRule(RuleKind.UNDEFINED), RegisterRule(RuleKind.SAME),
            RegisterRule(RuleKind.CFA_PLUS, 32),
            RegisterRule(RuleKind.AT_CFA, 8),
            RegisterRule(RuleKind.REGISTER, chance.choice((RBX, RBP, R12, SP))),
            RegisterRule(RuleKind.REGISTER, PC),
            RegisterRule(RuleKind.AT_EXPRESSION, code=chance.choice(EXPRESSIONS)),
            RegisterRule(RuleKind.EXPRESSION, code=chance.choice(EXPRESSIONS)),
        ))  # fmt: skip
    return UnwindRow(start, start + SIZE, cfa, rules, PC, chance.random() < 0.1, False)


@dataclass(frozen=True)
class Word:
    value: int
    of_the_stack: bool  # relative to the start of the stack

    def at(self, begin: int) -> int:
        return (self.value + begin * self.of_the_stack) % (1 << 64)


def some_word(chance: random.Random) -> Word:
    return chance.choices(
        (
            Word(CODE + chance.randrange(FUNCTIONS * SIZE), of_the_stack=False),
            Word(8 * chance.randrange(WORDS), of_the_stack=True),
            Word(BEGIN + 8 * chance.randrange(WORDS), of_the_stack=False),
            Word(chance.choice((0, chance.getrandbits(64))), of_the_stack=False),
        ),
        (8, 4, 1, 0.2),
    )[0]


class Memory:
    """A stack at some address."""

    def __init__(self, begin: int, words: Sequence[Word]) -> None:
        self.begin = begin
        self.data = struct.pack(f"={WORDS}Q", *(word.at(begin) for word in words))

    def read(self, address: int, size: int) -> bytes:
        at = address - self.begin
        if at < 0:  # the bytes before the stack in its page
            return bytes(min(-at, size)) + self.data[: max(size + at, 0)]
        return self.data[at : at + size]


def walked(functions: Functions, memory: Memory, pc: int) -> tuple[Unwound, StackMemory]:
    found = architecture("x86_64")
    assert found is not None
    stack = StackMemory(memory.begin, memory.read)
    code, frames = cast("CodeMap", functions), cast("FrameRegisters", functions)
    return Walk(found, code, frames, stack, {PC: pc, SP: memory.begin}).unwind(), stack


def test_a_cached_walk_is_the_true_walk() -> None:
    from_cache = elsewhere = 0
    for seed in SEEDS:
        chance = random.Random(seed)
        functions, walks = Functions(chance), WalkCache()
        pc = CODE + chance.randrange(FUNCTIONS * SIZE)
        words = [some_word(chance) for _ in range(WORDS)]
        for _ in range(60):
            begin = BEGIN + chance.choice(SHIFTS)
            changed = list(words)
            for _ in range(chance.choice((0, 0, 0, 0, 1, 3))):
                changed[chance.randrange(WORDS)] = some_word(chance)
            memory = Memory(begin, changed)
            truth, stack = walked(functions, memory, pc)
            again = walks.find(pc, begin, memory.data)
            assert not isinstance(again, int), (
                f"seed {seed}: the cache asked for memory that it had"
            )
            assert again in (None, truth), f"seed {seed}"
            if again is not None:
                from_cache += 1
                elsewhere += len(truth.addresses) > 2 and begin != BEGIN
            elif stack.answers is not None:
                walks.keep(pc, stack.answers, truth)
                assert walks.find(pc, begin, memory.data) == truth, f"seed {seed}"
    assert from_cache > len(SEEDS)
    assert elsewhere > len(SEEDS)


@pytest.mark.parametrize(
    "rule", [RegisterRule(RuleKind.UNDEFINED), RegisterRule(RuleKind.AT_CFA, 1 << 20)]
)
def test_a_frame_that_leaves_no_stack_pointer(rule: RegisterRule) -> None:
    functions = Functions(random.Random(0))
    functions.rows = [
        UnwindRow(
            CODE,
            CODE + FUNCTIONS * SIZE,
            CfaRule(SP, 16),
            {SP: rule, PC: RegisterRule(RuleKind.AT_CFA, -8)},
            PC,
            *[False] * 2,
        )
    ] * FUNCTIONS
    words = [Word(CODE + 4, of_the_stack=False)] * WORDS
    found, _ = walked(functions, Memory(BEGIN, words), CODE)
    assert found.addresses == (CODE,)
    assert found.reason
