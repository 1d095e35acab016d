"""The state of a process's CPython: its threads and their frames, read from its memory.

The process goes on meanwhile, so nothing here is trusted: a pointer counts only if the type of what
it leads to is the expected one, and lists have limits.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence, Set
from functools import partial
from typing import NamedTuple

from locktop.collector.linux import process_memory, thread_descriptor
from locktop.collector.symbols.python import object_layout, state_layout
from locktop.collector.symbols.python.objects import PythonObjects, Types
from locktop.collector.symbols.python.state_layout import FrameLayout, StateLayout
from locktop.collector.symbols.python.version import find_interpreter

_RUNTIME = "_PyRuntime"
_TYPES = ("PyDict_Type", "PyUnicode_Type", "PyLong_Type", "PyModule_Type")
_FUNCTION_TYPES = (
    "PyType_Type", "PyCode_Type", "PyCFunction_Type", "PyMethod_Type", "PyMethodDescr_Type",
    "PyFunction_Type", "PyGen_Type", "PyTuple_Type",
)  # fmt: skip
_WORD = struct.Struct("=Q")
_MAIN_AT = 8  # the main interpreter, from the head of the list of interpreters on
_NEXT_AT = 8  # of a thread state
_MAX_THREADS = 2_000
_MAX_FRAMES = 200  # of a thread, the innermost ones
_MAX_VALUES = 64  # of a frame
_MAX_BLOCKS = 20  # CO_MAXBLOCKS
_MAX_TABLE = 1 << 16  # bytes of a table of exceptions
_BLOCK = struct.Struct("=iii")
_FLAGS_AT = 152  # of a type, from its content on
_IS_TYPE = 1 << 31  # the flag of a class of types (Include/object.h)
#: The low bits of a reference on the stack of values, from 3.14 on (pycore_stackref.h).
_TAG = 3


class OpenFrame(NamedTuple):
    """The frame of a Python function that has called another function, or sleeps."""

    name: str  # of the function
    first_local: int  # address of the object; 0: none
    values: tuple[int, ...]  # of its open blocks, the outermost first


class _Code(NamedTuple):
    name: str
    local_count: int
    exceptions: bytes  # the table


class InterpreterState:
    """Reads the threads and frames of one process."""

    def __init__(
        self, pid: int, layout: StateLayout, objects: PythonObjects, symbols: dict[str, int]
    ) -> None:
        self._pid = pid
        self.layout = layout
        self.objects = objects
        self.symbols = symbols  # addresses by name
        self._states: dict[int, int] = {}  # by tid
        self._codes: dict[int, _Code | None] = {}  # by address
        self._copies: dict[tuple[int, int], int] = {}  # of instructions: see _first_instruction()

    def begin(self) -> None:
        """Forget the code that an earlier scan read: it comes and goes."""
        self._codes.clear()
        self._copies.clear()

    def threads(self, wanted: Set[int]) -> dict[int, int]:
        """Return the addresses of the states of the main interpreter's threads, by tid.

        Args:
            wanted: tids in the pid namespace of the process.
        """
        states = self._states
        if not wanted <= states.keys() or not self._are_still(states):
            states = self._states = self._all_threads()
        return {tid: states[tid] for tid in wanted & states.keys()}

    def _are_still(self, states: Mapping[int, int]) -> bool:
        """Return whether these still are the states of these threads."""
        id_at = self.layout.thread_id_at
        ids = self.objects.words([state + id_at for state in states.values()])
        return list(thread_descriptor.tids_of(self._pid, ids).values()) == list(states)

    def _all_threads(self) -> dict[int, int]:
        layout, offset = self.layout, state_layout.LIST_OFFSETS.get(self.layout.version)
        if offset is None:
            offset = self.word(self.symbols[_RUNTIME] + 8 * state_layout.LIST_AT)
        interpreter = self.word(self.symbols[_RUNTIME] + offset + _MAIN_AT)
        state = self.word(interpreter + layout.threads_at) if interpreter else 0
        states: dict[int, int] = {}  # by pthread_self()
        size = layout.thread_id_at + 8
        while state and len(states) < _MAX_THREADS:
            data = process_memory.read(self._pid, state, size)
            descriptor = self._word_in(data, layout.thread_id_at) if len(data) == size else 0
            if not descriptor or descriptor in states:
                break
            states[descriptor] = state
            state = self._word_in(data, _NEXT_AT)
        tids = thread_descriptor.tids_of(self._pid, states)
        return {tid: states[address] for address, tid in tids.items()}

    def frames(self, state: int) -> list[OpenFrame]:
        """Return the frames of a thread by the address of its state, the innermost first."""
        return self.frames_of([state])[0]

    def frames_of(self, states: Sequence[int]) -> list[list[OpenFrame]]:
        """Return the frames of several threads; one system call reads one frame of each."""
        layout = self.layout
        frames: list[list[OpenFrame]] = [[] for _ in states]
        begins = self.objects.words([state + layout.frame_at for state in states])
        if layout.frame_of_c_frame_at is not None:
            offset = layout.frame_of_c_frame_at
            begins = self.objects.words([begin + offset if begin else 0 for begin in begins])
        current = {number: begin for number, begin in enumerate(begins) if begin}
        for _ in range(_MAX_FRAMES):
            if not current:
                break
            wanted = [(address, layout.frame.size) for address in current.values()]
            pieces = process_memory.read_many(self._pid, wanted)
            callers: dict[int, int] = {}
            for (number, address), data in zip(current.items(), pieces, strict=True):
                if len(data) < layout.frame.size:
                    continue
                frame = self._frame(address, data)
                if frame is not None:  # else it is no function of Python
                    frames[number].append(frame)
                if caller := self._word_in(data, layout.frame.caller_at):
                    callers[number] = caller
            current = callers
        return frames

    def suspended_frame(self, generator: int) -> OpenFrame | None:
        """Return the frame of a suspended generator; None of another object."""
        layout = self.layout
        address = generator + layout.generator_frame_at
        if self.objects.types_of([generator]) != [self.symbols["PyGen_Type"]]:
            return None
        if layout.frame.stack_at:
            address = self.word(address)  # 0 if the generator has ended
        else:
            state_at = address - state_layout.GENERATOR_STATE_BEFORE
            state = process_memory.read(self._pid, state_at, 1)
            if int.from_bytes(state, "little", signed=True) not in layout.suspended:
                return None
        data = process_memory.read(self._pid, address, layout.frame.size)
        return self._frame(address, data) if len(data) == layout.frame.size else None

    def word(self, address: int) -> int:
        """Return the word at an address, 0 if it cannot be read."""
        return self.objects.words([address])[0]

    def type_name(self, type_: int) -> str:
        """Return the name of a type, "" if that is no type."""
        type_of_types = self.symbols["PyType_Type"]
        (meta,) = self.objects.types_of([type_])
        if meta != type_of_types and (  # such as ABCMeta
            self.objects.types_of([meta]) != [type_of_types]
            or not self.word(meta + self.objects.header + _FLAGS_AT) & _IS_TYPE
        ):
            return ""
        name = self.word(type_ + self.objects.header + 8)
        return process_memory.read_string(self._pid, name, 64).decode("latin-1")

    # ---- frames ----

    def _word_in(self, data: bytes, offset: int) -> int:
        return int(_WORD.unpack_from(data, offset)[0])

    def _code(self, address: int) -> _Code | None:
        frame = self.layout.frame
        if not address or self.objects.types_of([address]) != [self.symbols["PyCode_Type"]]:
            return None
        (name,) = self.objects.texts([self.word(address + self.layout.code_name_at)])
        if not frame.instructions_at:
            return _Code(name or "", 0, b"")
        count = self.word(address + frame.local_count_at) & 0xFFFFFFFF
        table = self.word(address + frame.exceptions_at)
        size = min(self.word(table + self.objects.header), _MAX_TABLE) if table else 0
        begin = table + self.objects.header + 16  # behind the size and the hash
        return _Code(name or "", count, process_memory.read(self._pid, begin, size))

    def _frame(self, address: int, data: bytes) -> OpenFrame | None:
        """Return a frame with its memory; None if it is no frame of a Python function."""
        frame = self.layout.frame
        code_address = self._word_in(data, frame.code_at) & ~_TAG
        if code_address not in self._codes:
            self._codes[code_address] = self._code(code_address)
        code = self._codes[code_address]
        if code is None:
            return None
        first_local = self._word_in(data, frame.locals_at) & ~self._tag
        if frame.stack_at:
            stack, depth = self._word_in(data, frame.stack_at), _depth_of_blocks(data, frame)
        else:
            instruction = self._word_in(data, frame.instruction_at)
            unit = (instruction - self._first_instruction(code_address, data)) // 2
            stack = address + frame.locals_at + 8 * code.local_count
            depth = depth_at(code.exceptions, unit)
        values: tuple[int, ...] = ()
        if 0 < depth <= _MAX_VALUES:
            words = self.objects.words([stack + 8 * number for number in range(depth)])
            values = tuple(word & ~self._tag for word in words)
        return OpenFrame(code.name, first_local, values)

    def _first_instruction(self, code: int, data: bytes) -> int:
        """Return the address of the first instruction that a frame runs, 0 if it is not found."""
        frame = self.layout.frame
        if not frame.copy_number_at:
            return code + frame.instructions_at
        (number,) = struct.unpack_from("=i", data, frame.copy_number_at)
        if (code, number) not in self._copies:
            copies = self.word(code + frame.copies_at)
            count, first = self.objects.words([copies, copies + 8 + 8 * number])
            self._copies[code, number] = first if 0 <= number < count else 0
        return self._copies[code, number]

    @property
    def _tag(self) -> int:
        return _TAG if self.layout.version >= (3, 14) else 0


def find_state(pid: int) -> InterpreterState | None:
    """Return the state of a process's CPython; None without one whose layout is known.

    Raises:
        OSError: the process is gone, or its memory map may not be read.
    """
    interpreter = find_interpreter(pid, (_RUNTIME, *_TYPES, *_FUNCTION_TYPES))
    if interpreter is None:
        return None
    version = interpreter.version[0], interpreter.version[1]
    table: tuple[int, ...] = ()
    if version >= state_layout.FIRST_WITH_TABLE:
        size = 8 * state_layout.TABLE_WORDS
        data = process_memory.read(pid, interpreter.addresses[_RUNTIME], size)
        if len(data) == size and data.startswith(state_layout.COOKIE):
            table = struct.unpack(f"={state_layout.TABLE_WORDS}Q", data)
    layout = state_layout.layout_of(version, table)
    objects = object_layout.layout_of(version, state_layout.is_free_threaded(table))
    if layout is None or objects is None:
        return None
    types = Types(*(interpreter.addresses[name] for name in _TYPES))
    reader = PythonObjects(partial(process_memory.read_many, pid), objects, types)
    return InterpreterState(pid, layout, reader, dict(interpreter.addresses))


def depth_at(table: bytes, unit: int) -> int:
    """Return how many values stay on the stack if an instruction raises an exception.

    Args:
        table: as in Objects/exception_handling_notes.txt of CPython.
        unit: the number of the instruction, in units of two bytes.
    """
    numbers: list[int] = []
    value = 0
    for position, byte in enumerate(table):
        if byte & 0x80 and numbers and len(numbers) % 4:
            return 0  # an entry begins within another one
        if byte & 0x80 and position:
            value = 0
        value = value << 6 | byte & 0x3F
        if byte & 0x40:
            continue
        numbers.append(value)
        value = 0
        if len(numbers) == 4:
            start, size, _, depth = numbers
            if start <= unit < start + size:
                return depth >> 1
            numbers = []
    return 0


def _depth_of_blocks(data: bytes, frame: FrameLayout) -> int:
    """Return how many values stay on the stack if the innermost open block ends."""
    (count,) = struct.unpack_from("=i", data, frame.block_count_at)
    if not 0 < count <= _MAX_BLOCKS:
        return 0
    _, _, level = _BLOCK.unpack_from(data, frame.blocks_at + _BLOCK.size * (count - 1))
    return int(level)
