"""Where the parts of interpreters, threads, frames and code lie, by version of CPython.

Offsets are in bytes. From 3.13 on, the interpreter says most of them itself, in the table at the
begin of ``_PyRuntime`` (pycore_debug_offsets.h). Those of older versions are of release builds for
64 bits (Include/internal/pycore_interp.h, pycore_frame.h, cpython/pystate.h, code.h).
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from locktop.collector.symbols.python.object_layout import FREE_THREADED_HEADER, HEADER

OLDEST, NEWEST = (3, 8), (3, 14)
#: From 3.13 on, the runtime begins with a table of offsets.
COOKIE = b"xdebugpy"
FIRST_WITH_TABLE = (3, 13)
TABLE_WORDS = 86
#: Numbers of words of the table: whether threads run without the GIL; the list of interpreters; the
#: list of the threads of an interpreter.
THREADED_AT, LIST_AT, _THREADS_AT = 2, 5, 9
#: The same for what has other numbers from 3.14 on: the frame of a thread and its id, three parts
#: of a frame, and the instructions of a code object.
_WORDS = {(3, 13): (23, 24, 29, 30, 31, 32, 43), (3, 14): (26, 27, 32, 33, 34, 35, 48)}
#: The same for what only 3.14 tells: the number of the copy of the instructions that a frame runs,
#: and the copies of a code object. With the GIL both are 0. Then the frame of a generator, and the
#: items of a tuple.
_LATER_WORDS = {(3, 14): (38, 49, 85, 57)}
#: The head of the list of interpreters before 3.13 (pycore_runtime.h).
LIST_OFFSETS = {(3, 8): 32, (3, 9): 32, (3, 10): 32, (3, 11): 40, (3, 12): 40}


class FrameLayout(Struct, frozen=True):
    """The layout of the frames of Python functions, and of their code.

    A frame has its local variables and then its stack of values. Up to 3.10 a frame has a list of
    open blocks (``with``, ``try``). Since then the code has a table that tells the block of each
    instruction. Both say how many values stay on the stack if the block ends by an exception.
    """

    size: int
    caller_at: int
    code_at: int
    locals_at: int
    instruction_at: int = 0  # address of the present instruction
    stack_at: int = 0  # address of the stack, up to 3.10
    blocks_at: int = 0  # the list of blocks, up to 3.10: type, handler, values on the stack
    block_count_at: int = 0
    copy_number_at: int = 0  # number of the copy of the instructions that it runs; 0: no copies
    #: of the code
    exceptions_at: int = 0  # the table
    local_count_at: int = 0
    instructions_at: int = 0  # the first instruction
    copies_at: int = 0  # address of the list of copies of the instructions: size, addresses


class StateLayout(Struct, frozen=True):
    """The layout of one version."""

    version: tuple[int, int]
    threads_at: int  # the first thread of an interpreter
    thread_id_at: int  # pthread_self() of a thread
    frame_at: int  # the innermost frame of a thread
    frame_of_c_frame_at: int | None  # 3.11 and 3.12: the thread has a C frame, which has the frame
    frame: FrameLayout
    function_name_at: int  # of a Python function
    code_name_at: int
    generator_frame_at: int  # the frame of a generator, up to 3.10 its address
    items_at: int  # the first item of a tuple

    @property
    def may_have_mutexes(self) -> bool:
        """Whether a lock may be a PyMutex of one byte, and not a pointer to a semaphore.

        In 3.13 a Lock is one from 3.13.1 on, and an RLock is not.
        """
        return self.version >= (3, 13)

    @property
    def suspended(self) -> tuple[int, ...]:
        """The states of the frame of a suspended generator, from 3.11 on (pycore_frame.h)."""
        return (-1,) if self.version < (3, 13) else (-2, -1)

    @property
    def has_exits_apart(self) -> bool:
        """Whether ``__exit__`` and its object lie on the stack one after the other."""
        return self.version >= (3, 14)


_BLOCKS_OF_38 = FrameLayout(
    size=368, caller_at=24, code_at=32, locals_at=360, stack_at=64, block_count_at=112,
    blocks_at=120,
)  # fmt: skip
_BLOCKS_OF_310 = FrameLayout(
    size=360, caller_at=24, code_at=32, locals_at=352, stack_at=64, block_count_at=104,
    blocks_at=112,
)  # fmt: skip
_FRAME_OF_311 = FrameLayout(
    size=80, caller_at=48, code_at=32, locals_at=72, instruction_at=56,
    exceptions_at=40, local_count_at=76, instructions_at=184,
)  # fmt: skip
_FRAME_OF_312 = FrameLayout(
    size=80, caller_at=8, code_at=0, locals_at=72, instruction_at=56,
    exceptions_at=40, local_count_at=72, instructions_at=192,
)  # fmt: skip
#: The frame of a generator, behind its state (Include/cpython/genobject.h).
_GENERATOR_FRAMES = {(3, 8): 16, (3, 9): 16, (3, 10): 16, (3, 11): 80, (3, 12): 72, (3, 13): 72}
GENERATOR_STATE_BEFORE = 5  # bytes before that frame, from 3.11 on
_ITEMS_AT = 24  # of a tuple
#: threads, id of a thread, its frame, the frame of its C frame; the layout of frames.
_OLD: dict[tuple[int, int], tuple[int, int, int, int | None, FrameLayout]] = {
    (3, 8): (8, 176, 24, None, _BLOCKS_OF_38),
    (3, 9): (8, 176, 24, None, _BLOCKS_OF_38),
    (3, 10): (8, 176, 24, None, _BLOCKS_OF_310),
    (3, 11): (16, 152, 56, 8, _FRAME_OF_311),
    (3, 12): (72, 136, 56, 0, _FRAME_OF_312),
}


def is_free_threaded(table: Sequence[int]) -> bool:
    """Return whether threads run without the GIL, by the table of offsets; () before 3.13."""
    return len(table) > THREADED_AT and table[THREADED_AT] == 1


def layout_of(version: tuple[int, int], table: Sequence[int]) -> StateLayout | None:
    """Return the layout of a version; None if it is not known.

    Args:
        version: major and minor.
        table: the words of the table of offsets; empty before 3.13.
    """
    if version in _OLD:
        threads_at, thread_id_at, frame_at, frame_of_c_frame_at, frame = _OLD[version]
        name_at = 64 if version < (3, 10) else 32
        code_name_at = 112 if version < (3, 11) else 120
        return StateLayout(
            version, threads_at, thread_id_at, frame_at, frame_of_c_frame_at, frame, name_at,
            code_name_at, _GENERATOR_FRAMES[version], _ITEMS_AT,
        )  # fmt: skip
    if version not in _WORDS or len(table) < TABLE_WORDS:
        return None
    more = FREE_THREADED_HEADER - HEADER if is_free_threaded(table) else 0  # bytes
    if version in _LATER_WORDS:
        copy_number_at, copies_at, generator_frame_at, items_at = (
            table[word] for word in _LATER_WORDS[version]
        )
    else:
        copy_number_at, copies_at = 0, 0
        generator_frame_at, items_at = _GENERATOR_FRAMES[version] + more, _ITEMS_AT + more
    frame_at, thread_id_at, caller, code, instruction, locals_, instructions = (
        table[word] for word in _WORDS[version]
    )
    frame = FrameLayout(
        size=locals_ + 8, caller_at=caller, code_at=code, locals_at=locals_,
        instruction_at=instruction, exceptions_at=40 + more, local_count_at=72 + more,
        instructions_at=instructions, copy_number_at=copy_number_at, copies_at=copies_at,
    )  # fmt: skip
    return StateLayout(
        version, table[_THREADS_AT], thread_id_at, frame_at, None, frame, 32 + more, 120 + more,
        generator_frame_at, items_at,
    )  # fmt: skip
