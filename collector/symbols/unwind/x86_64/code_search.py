"""All ways through the machine code from one place on, until each writes to a lock (x86-64).

Registers and memory have the values of this moment. All other values are unknown, and both ways of
a branch on such a value are followed. A way ends at the first write to the word of the lock, or
where the frame ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from iced_x86 import FlowControl, Instruction, Mnemonic, OpKind, Register
from msgspec import Struct

from locktop.collector.symbols.unwind.first_use import NextUse, SoughtLock
from locktop.collector.symbols.unwind.x86_64.function_code import (
    CALLS,
    FunctionCode,
    FunctionSource,
)
from locktop.collector.symbols.unwind.x86_64.lock_use import NO_USE, use_by
from locktop.collector.symbols.unwind.x86_64.machine_state import MachineState, Read
from locktop.collector.symbols.unwind.x86_64.machine_steps import is_taken, step

#: Instructions that one frame may take; some 10 us each.
_MAX_STEPS = 6000
_MAX_CALL_STEPS = 3000  # of a call that is not for the lock alone
#: Calls within calls: std::make_shared takes a lock 17 calls deep without optimisation.
_MAX_DEPTH = 20
#: Calls of one function within each other on ways with a branch that is not known. A further call
#: returns as on the other ways: Instant::elapsed() of Rust calls a function that may call itself.
_MAX_RECURSION = 2
_MAX_ROUNDS = 64  # of a loop whose branches are all known
_MAX_VISITS = 3  # of a place on ways with a branch that is not known
_MAX_SLEEPS = 4  # system calls on the way
#: The system call of a thread that releases a lock (linux/futex.h).
_FUTEX, _FUTEX_COMMAND, _WAKE = 202, 0x7F, 1
#: The ways that no known branch takes, and the calls within calls in which they are kept.
_MAX_OTHER_WAYS, _MAX_OTHER_DEPTH = 32, 1
_MAX_TABLE = 256  # targets of a jump
#: Bytes at an argument in which a reference to the lock is sought, or the lock.
_ARGUMENT_SIZE, _OBJECT_SIZE = 64, 256
_FLAGS = 0b111  # in the low bits of a reference
_LOW = 1 << 12  # no object lies in the first page
_WORD = 8
_ARGUMENTS = (Register.RDI, Register.RSI, Register.RDX, Register.RCX)
_MASK = (1 << 64) - 1


class _Way(Struct):
    """A way through the code."""

    ip: int
    state: MachineState
    is_certain: bool  # all branches up to here were known
    #: a call that got the lock could not be followed: the lock may have been taken in it
    is_doubtful: bool = False

    def fork(self, ip: int) -> _Way:
        """Return another way that goes on at an address, for a branch that is not known."""
        return _Way(ip, self.state.copy(), is_certain=False, is_doubtful=self.is_doubtful)


class SearchOutcome(Struct):
    """Where all ways through a function lead."""

    uses: NextUse = NO_USE
    end: MachineState | None = None  # the state at the first end; None if no way leads there
    is_lost: bool = False  # a way leads where it cannot be followed


class CodeSearch:
    """The ways from one place in the code."""

    def __init__(
        self, finder: FunctionSource, words: SoughtLock, read: Read, until: int = 0
    ) -> None:
        """``until``: the return address of a call of the first function, where its ways end."""
        self._until = until
        self._finder = finder
        self._words = words
        self._read = read
        self._steps, self._limit = 0, _MAX_STEPS
        self._sleeps = 0
        self._calls = Counter[int]()  # within which the present way is, by function
        self._lost: set[int] = set()  # functions that could not be followed to their end
        self._references: dict[int, bool] = {}  # by address: whether the lock is seen from there

    def follow(self, start: int, state: MachineState, depth: int) -> SearchOutcome:
        """Follow all ways from an address to the end of its function."""
        return _FunctionSearch(self, start, depth).run(state)

    # ---- what the ways of a function share ----

    def is_over(self, instruction: Instruction, depth: int) -> bool:
        """Return whether the ways end before an instruction."""
        return not depth and instruction.next_ip == self._until

    def may_step(self) -> bool:
        """Count an instruction; return whether it may still be followed."""
        self._steps += 1
        return self._steps <= self._limit

    def may_sleep(self, state: MachineState) -> bool:
        """Count a system call; return whether a way may go on: else a loop waits for something."""
        operation = state.register(Register.RSI)
        if state.register(Register.RAX) == _FUTEX and (operation or 0) & _FUTEX_COMMAND == _WAKE:
            return True
        self._sleeps += 1
        return self._sleeps <= _MAX_SLEEPS

    def begin_others(self) -> None:
        """Begin the ways that no known branch takes."""
        self._sleeps = 0

    def function(self, ip: int) -> FunctionCode:
        """Return the code at an address."""
        return self._finder.function(ip)

    def is_at_end(self, ip: int) -> bool:
        """Return whether the frame has only its return address left before an instruction."""
        return self._finder.is_at_end(ip)

    def use(self, instruction: Instruction, state: MachineState) -> NextUse:
        """Return what an instruction does to the lock."""
        return use_by(instruction, state, self._words, self._read)

    def step(self, instruction: Instruction, state: MachineState) -> None:
        """Change the state as an instruction does."""
        step(instruction, state, self._read)

    def destination(self, address: int) -> int:
        """Return the function to which a jump to an address leads."""
        return self._finder.destination(address)

    def target(self, branch: Instruction, state: MachineState) -> int:
        """Return the target of a call or an indirect jump; 0 if it is not known."""
        if branch.flow_control is FlowControl.CALL:
            return self._finder.target(branch)
        return state.operand(branch, 0, self._read) or 0

    def table(self, jump: Instruction, state: MachineState) -> list[int]:
        """Return the targets of a jump by a table whose index is not known."""
        instructions = self._finder.function(jump.ip).instructions
        bases = set(state.registers.values())
        if jump.op0_kind == OpKind.MEMORY and jump.memory_index != Register.NONE:
            base = state.register(jump.memory_base) if jump.memory_base != Register.NONE else 0
            if base is None:
                return []
            table = self._read(base + jump.memory_displacement & _MASK, _WORD * _MAX_TABLE)
            return _entries(table, _WORD, 0, instructions)
        targets: list[int] = []
        for base in bases:
            if _LOW <= base < 1 << 47:
                targets += _entries(self._read(base, 4 * _MAX_TABLE), 4, base, instructions)
        return targets

    def call(
        self,
        target: int,
        state: MachineState,
        depth: int,
        *,
        is_of_lock: bool,
        is_certain: bool,
    ) -> SearchOutcome | None:
        """Follow a function that gets the lock, or that a function of the lock calls.

        ``is_certain``: all branches of the caller were known.

        Returns:
            Where it leads; None if it does not get the lock, or is not followed.
        """
        if not target:
            return None
        if not is_of_lock and not self._gets_lock(state, target) and not self._names_lock(target):
            return None
        if depth >= _MAX_DEPTH or target in self._lost:
            return SearchOutcome(is_lost=True)
        if not is_certain and self._calls[target] >= _MAX_RECURSION:
            return SearchOutcome()
        is_argument, limit = self.is_argument(state), self._limit
        if not is_argument and not is_of_lock:
            self._limit = min(limit, self._steps + _MAX_CALL_STEPS)
        self._calls[target] += 1
        outcome = self.follow(target, state, depth + 1)
        self._calls[target] -= 1
        self._limit = limit
        if outcome.is_lost and not outcome.uses and not is_argument:
            self._lost.add(target)
        if is_argument and outcome.end is None and not outcome.uses and not outcome.is_lost:
            outcome.uses = self._words.take  # the function waits for the lock
        return outcome

    def doubted(self, use: NextUse) -> NextUse:
        """Return a use of which it is not known whether it is the first one."""
        return NextUse(writes=True) if self._words.is_released(use) else use

    def is_argument(self, state: MachineState) -> bool:
        """Return whether an argument is the lock itself."""
        return any(state.register(register) in self._words.addresses for register in _ARGUMENTS)

    def _names_lock(self, target: int) -> bool:
        return any(self._is_object(address) for address in self._finder.function(target).addresses)

    def _is_object(self, address: int) -> bool:
        """Return whether the lock lies in an object at an address, which may bear flags."""
        address &= ~_FLAGS
        return any(0 <= word - address < _OBJECT_SIZE for word in self._words.addresses)

    def _gets_lock(self, state: MachineState, target: int) -> bool:
        """Return whether an argument is the lock, or leads to a reference to it.

        The C library does not look behind such references: free() releases no lock.
        """
        return self.gives_lock(state, by_reference=not self._finder.is_libc(target))

    def gives_lock(self, state: MachineState, *, by_reference: bool = True) -> bool:
        """Return whether an argument is the lock; ``by_reference``: or leads to it."""
        for register in _ARGUMENTS:
            value = state.register(register)
            if value is None or value < _LOW:
                continue
            if self._is_object(value):
                return True
            if not by_reference:
                continue
            for offset in range(0, _ARGUMENT_SIZE, _WORD):
                reference = state.load(value + offset, _WORD, self._read)
                if reference is None or reference < _LOW:
                    continue
                if self._is_object(reference) or self._refers(reference):
                    return True
        return False

    def _refers(self, address: int) -> bool:
        """Return whether the memory at an address has a reference to the lock."""
        refers = self._references.get(address)
        if refers is None:
            data = self._read(address, _ARGUMENT_SIZE)
            refers = any(
                self._is_object(int.from_bytes(data[offset : offset + _WORD], "little"))
                for offset in range(0, len(data) - _WORD + 1, _WORD)
            )
            self._references[address] = refers
        return refers


class _FunctionSearch:
    """The ways through one function."""

    def __init__(self, search: CodeSearch, start: int, depth: int) -> None:
        self._search = search
        self._depth = depth
        self._start = start
        self._code = search.function(start)
        self._seen: dict[int, int] = {}  # visits by address
        self._max_visits = 1  # on ways that are not certain
        self._cut: list[_Way] = []  # ways that came to this bound in a loop
        self._rounds: set[int] = set()  # states in which loops begin again
        self._ways: list[_Way] = []
        #: the ways that branches on known values do not take: memory may change
        self._others: list[_Way] = []
        self._outcome = SearchOutcome()
        self._joined: list[MachineState] = []  # of ways that go on as another way did
        self._is_of_lock = False

    def run(self, state: MachineState) -> SearchOutcome:
        """Follow all ways."""
        self._is_of_lock = self._depth > 0 and self._search.is_argument(state)
        outcome = self._outcome
        self._ways.append(_Way(self._start, state, is_certain=True))
        while self._ways:
            self._follow(self._ways.pop())
            if not self._ways and not outcome.uses and outcome.end is None:
                self._ways = self._further_ways()
        if outcome.end is not None:
            for other in self._joined:
                outcome.end.forget_differences(other)
        return outcome

    def _further_ways(self) -> list[_Way]:
        """Return ways to go on if none leads to an end: once more through loops, then others."""
        if self._cut and self._max_visits < _MAX_VISITS:
            self._max_visits += 1
            ways, self._cut = self._cut, []
        else:
            ways, self._others = self._others, []
            self._search.begin_others()
        return ways

    def _follow(self, way: _Way) -> None:
        outcome, search = self._outcome, self._search
        before = 0
        while way.ip:
            visits = self._seen.get(way.ip, 0)
            if visits >= (_MAX_ROUNDS if way.is_certain else self._max_visits):
                self._joined.append(way.state.copy())
                if way.ip <= before and not way.is_certain:
                    self._cut.append(way)
                return
            self._seen[way.ip] = visits + 1
            instruction = self._instruction(way, before)
            if instruction is None:
                return
            if search.is_over(instruction, self._depth):
                return
            if not search.may_step():
                outcome.is_lost = True
                return
            if instruction.mnemonic == Mnemonic.SYSCALL and not search.may_sleep(way.state):
                return
            use = search.use(instruction, way.state)
            if use:
                self._add_use(use, way)
                return
            if instruction.flow_control is FlowControl.RETURN:
                self._end(way.state)
                return
            before = way.ip
            way.ip = self._next_ip(instruction, way)
            if way.is_certain and way.ip <= before and self._is_repeated(way):
                return

    def _is_repeated(self, way: _Way) -> bool:
        """Return whether a loop was in the same state before: it has no end."""
        state = way.state
        round_ = hash((
            way.ip, frozenset(state.registers.items()), frozenset(state.memory.items())
        ))  # fmt: skip
        is_repeated = round_ in self._rounds
        self._rounds.add(round_)
        return is_repeated

    def _instruction(self, way: _Way, before: int) -> Instruction | None:
        """Return the instruction of a way; None if the way ends in a jump to another function."""
        instruction = self._code.instructions.get(way.ip)
        if instruction is not None:
            return instruction
        if before and self._search.is_at_end(before):
            self._end_in_function(way)
            return None
        self._code = self._search.function(way.ip)  # another part of the function
        instruction = self._code.instructions.get(way.ip)
        if instruction is None:
            self._outcome.is_lost = True
        return instruction

    def _end_in_function(self, way: _Way) -> None:
        """Follow a function that is called by a jump."""
        outcome, target = self._outcome, self._search.destination(way.ip)
        callee = self._callee(target, way.state, way)
        if callee is None:
            if self._search.function(target).may_return:
                self._end(way.state)
            return
        self._add_use(callee.uses, way)
        outcome.is_lost |= callee.is_lost
        if callee.end is not None:
            self._end(callee.end)

    def _callee(self, target: int, state: MachineState, way: _Way) -> SearchOutcome | None:
        is_of_lock, is_certain = self._is_of_lock, way.is_certain
        return self._search.call(
            target, state, self._depth, is_of_lock=is_of_lock, is_certain=is_certain
        )

    def _end(self, state: MachineState) -> None:
        if self._outcome.end is None:
            self._outcome.end = state
        else:
            self._joined.append(state)

    def _add_use(self, use: NextUse, way: _Way) -> None:
        self._outcome.uses |= self._search.doubted(use) if way.is_doubtful else use

    def _next_ip(self, instruction: Instruction, way: _Way) -> int:
        """Go on behind an instruction; return 0 if the way ends."""
        flow, after = instruction.flow_control, instruction.next_ip
        if flow in CALLS:
            return after if self._call(instruction, way) else 0
        if flow is FlowControl.CONDITIONAL_BRANCH:
            return self._branch(instruction, way)
        if flow is FlowControl.UNCONDITIONAL_BRANCH:
            return instruction.near_branch_target
        if flow is FlowControl.INDIRECT_BRANCH:
            return self._jump(instruction, way)
        if flow is FlowControl.EXCEPTION:
            return 0
        self._search.step(instruction, way.state)
        return after

    def _branch(self, instruction: Instruction, way: _Way) -> int:
        target, after = instruction.near_branch_target, instruction.next_ip
        taken = is_taken(instruction, way.state)
        if taken is None:
            way.is_certain = False
            self._ways.append(way.fork(target))
        elif self._keeps_other(instruction):
            self._others.append(way.fork(after if taken else target))
        return target if taken else after

    def _keeps_other(self, branch: Instruction) -> bool:
        is_first = self._seen[branch.ip] == 1
        return is_first and self._depth <= _MAX_OTHER_DEPTH and len(self._others) < _MAX_OTHER_WAYS

    def _jump(self, instruction: Instruction, way: _Way) -> int:
        target = self._search.target(instruction, way.state)
        if target:
            return target
        targets = self._search.table(instruction, way.state)
        is_call = not targets and self._search.is_at_end(instruction.ip)
        is_argument_known = way.state.register(_ARGUMENTS[0]) is not None
        if is_call and is_argument_known and not self._search.gives_lock(way.state):
            self._end(way.state)  # behind a call for another object
            return 0
        self._outcome.is_lost |= not targets
        self._ways += [way.fork(ip) for ip in targets]
        return 0

    def _call(self, call: Instruction, way: _Way) -> bool:
        """Follow a call; return whether the way goes on behind it."""
        state = way.state
        target = self._search.target(call, state)
        inner = state.copy()
        inner.push_return()
        is_argument = self._search.is_argument(state)
        callee = self._callee(target, inner, way)
        if callee is None:
            state.forget_after_call(None)
            return not target or self._search.function(target).may_return
        self._add_use(callee.uses, way)
        self._outcome.is_lost |= callee.is_lost
        way.is_doubtful |= callee.is_lost
        if callee.end is not None:
            state.memory = callee.end.memory
        state.forget_after_call(callee.end)
        if callee.end is not None:
            return True
        # Of a function that gets the lock alone nothing is known: it may take the lock.
        return callee.is_lost and not callee.uses and not is_argument


def _entries(table: bytes, size: int, base: int, code: Mapping[int, Instruction]) -> list[int]:
    """Return the first entries of a table that lead to instructions of the code."""
    targets: list[int] = []
    for offset in range(0, len(table) - size + 1, size):
        entry = int.from_bytes(table[offset : offset + size], "little", signed=size < _WORD)
        if base + entry not in code:
            break
        targets.append(base + entry)
    return list(dict.fromkeys(targets))
