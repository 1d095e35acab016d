"""The lock objects of Python: which lock a thread waits for, who owns it, and who is in its block.

A ``threading.RLock`` has its owner. A ``threading.Lock`` has none. But a thread in the block of
``with lock`` keeps the ``__exit__`` of the lock on its stack of values, to call it at the end
(Python/ceval.c). A ``threading.Condition`` has a lock inside. Its ``__exit__`` releases that lock,
and its ``wait`` releases the lock for a time.

The block of an ``ExitStack`` ends the blocks that are in its list. The block of a
``@contextmanager`` function ends those of its generator, which is suspended meanwhile.

Layouts: Modules/_threadmodule.c, Include/cpython/lock.h, Python/parking_lot.c, Lib/contextlib.py,
Modules/_collectionsmodule.c.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from locktop.collector.linux import process_memory, thread_descriptor
from locktop.collector.symbols.python.interpreter_state import InterpreterState, OpenFrame

_LOCK, _RLOCK, _CONDITION = "_thread.lock", "_thread.RLock", "Condition"
_EXIT, _WAIT, _INNER = "__exit__", "wait", "_lock"
_WORD = struct.Struct("=Q")
_EXIT_STACK, _GENERATOR_MANAGER = "ExitStack", "_GeneratorContextManager"
_CALLBACKS, _DEQUE, _GENERATOR = "_exit_callbacks", "collections.deque", "gen"
#: Of a deque: size, first block, last block, index of the first item. Of a block: next block.
_DEQUE_HEAD = struct.Struct("=QQQQ")
_BLOCK_ITEMS, _FIRST_ITEM_AT, _NEXT_BLOCK_AT = 64, 8, 520
_MAX_CALLBACKS = 1_000  # of an ExitStack
_MAX_MANAGERS = 8  # around each other
_LOW = 1 << 16  # no object lies in the first pages
_ALIGNMENT = 16  # of objects (Objects/obmalloc.c)
_MAX_CANDIDATES = 512
#: A waiter for a PyMutex sleeps at a semaphore of its own. The word before has the address of the
#: PyMutex.
_MUTEX_BEFORE = 8
_SELF_AT = 8  # of a bound method or function of C, from its content on
_LOCKED = 1  # _Py_LOCKED


class LockObject(NamedTuple):
    """A ``threading.Lock`` or ``threading.RLock``."""

    address: int
    owned: bool  # an RLock, which has its owner
    is_mutex: bool  # a PyMutex, and no pointer to a semaphore


class LockObjects:
    """Reads the lock objects of one process."""

    def __init__(self, pid: int, state: InterpreterState) -> None:
        self._pid = pid
        self._state = state
        self._objects = state.objects
        self._header = state.objects.header
        self._types: dict[int, str] = {}  # of this scan: names by address

    def begin(self) -> None:
        """Forget what an earlier scan read: objects come and go."""
        self._types.clear()
        self._state.begin()

    # ---- the lock that a thread waits for ----

    def waited_for(self, word: int, stack: bytes) -> LockObject | None:
        """Return the lock that a thread waits for; None if that is not certainly a lock of Python.

        Args:
            word: the address at which the thread sleeps.
            stack: the innermost bytes of its stack, which has the address of the lock.
        """
        return self._lock_of_mutex(word) or self._lock_of_semaphore(word, stack)

    def _lock_of_mutex(self, word: int) -> LockObject | None:
        if not self._state.layout.may_have_mutexes:
            return None
        address = self._state.word(word - _MUTEX_BEFORE) - self._header
        return self._lock(address, is_mutex=True) if address > _LOW else None

    def _lock_of_semaphore(self, word: int, stack: bytes) -> LockObject | None:
        usable = len(stack) - len(stack) % _WORD.size
        words = dict.fromkeys(value for (value,) in _WORD.iter_unpack(stack[:usable]))
        candidates = [value for value in words if value >= _LOW and not value % _ALIGNMENT]
        candidates = candidates[:_MAX_CANDIDATES]
        fields = self._objects.words([value + self._header for value in candidates])
        matches = [value for value, field in zip(candidates, fields, strict=True) if field == word]
        locks = [lock for value in matches if (lock := self._lock(value, is_mutex=False))]
        return locks[0] if len(locks) == 1 else None

    def _lock(self, address: int, is_mutex: bool) -> LockObject | None:
        if not self._is_lock(address):
            return None
        return LockObject(address, self._type_name(address) == _RLOCK, is_mutex)

    def _is_lock(self, address: int) -> bool:
        return self._type_name(address) in (_LOCK, _RLOCK)

    def is_lock_of(self, lock: LockObject, word: int) -> bool:
        """Return whether an object still is the same lock; see waited_for() for ``word``."""
        if lock.is_mutex:
            return self._lock_of_mutex(word) == lock
        is_same = self._state.word(lock.address + self._header) == word
        return is_same and self._lock(lock.address, is_mutex=False) == lock

    def owner(self, lock: LockObject) -> int:
        """Return the tid of the thread that owns an RLock, 0 if it has no owner."""
        data = process_memory.read(self._pid, lock.address + self._header, 3 * _WORD.size)
        if len(data) < 3 * _WORD.size:
            return 0
        first, owner, _ = struct.unpack("=3Q", data)
        if not owner or (lock.is_mutex and not first & _LOCKED):
            return 0
        return thread_descriptor.tids_of(self._pid, [owner]).get(owner, 0)

    # ---- the blocks that a thread is in ----

    def held_by_blocks(self, frames: Sequence[OpenFrame]) -> frozenset[int]:
        """Return the addresses of the locks whose ``with`` blocks a thread is in.

        A lock that an inner frame has released in Condition.wait() is left out.

        Args:
            frames: the frames of the thread, the innermost first.
        """
        waits = self._released_by_wait(frames)
        locks: set[int] = set()
        released: set[int] = set()
        for frame in frames:
            locks |= set(self._exits(frame)) - released
            if frame.name == _WAIT:
                released.update(waits.get(frame.first_local, ()))
        return frozenset(locks)

    def _released_by_wait(self, frames: Sequence[OpenFrame]) -> dict[int, tuple[int, ...]]:
        """Return the locks of conditions by address, for the frames of Condition.wait()."""
        conditions = [frame.first_local for frame in frames if frame.name == _WAIT]
        return {condition: self._inner_locks(condition) for condition in conditions}

    def _exits(self, frame: OpenFrame, depth: int = 0) -> list[int]:
        """Return the locks that the open blocks of a frame will release."""
        symbols, types = self._state.symbols, self._objects.types_of(frame.values)
        locks: list[int] = []
        for number, (value, type_) in enumerate(zip(frame.values, types, strict=True)):
            owner, names_exit = 0, False
            if type_ == symbols["PyCFunction_Type"]:
                definition, owner = self._pair(value)
                names_exit = self._is_exit_of_c(definition)
            elif type_ == symbols["PyMethod_Type"]:
                function, owner = self._pair(value)
                names_exit = self._is_exit(function)
            elif self._state.layout.has_exits_apart and number + 1 < len(frame.values):
                owner = frame.values[number + 1]
                names_exit = self._is_exit(value)
            if names_exit and owner:
                locks += self._released_by(owner, depth)
        return locks

    def _released_by(self, manager: int, depth: int) -> Sequence[int]:
        """Return the locks that the ``__exit__`` of an object will release."""
        name = self._type_name(manager)
        if name in (_LOCK, _RLOCK):
            return [manager]
        if name == _CONDITION:
            return self._inner_locks(manager)
        if depth == _MAX_MANAGERS:
            return []
        if name == _EXIT_STACK:
            inner = self._managers(self._attribute(manager, _CALLBACKS))
            return [lock for each in inner for lock in self._released_by(each, depth + 1)]
        if name == _GENERATOR_MANAGER:
            frame = self._state.suspended_frame(self._attribute(manager, _GENERATOR))
            return self._exits(frame, depth + 1) if frame is not None else []
        return []

    def _managers(self, callbacks: int) -> list[int]:
        """Return the objects whose ``__exit__`` an ExitStack will call.

        Args:
            callbacks: its deque of pairs; the second item is a bound method.
        """
        symbols, objects = self._state.symbols, self._objects
        pairs = self._items(callbacks)
        second_at = self._state.layout.items_at + _WORD.size
        methods = objects.words([pair + second_at for pair in pairs])
        managers = []
        for pair_type, method, type_ in zip(
            objects.types_of(pairs), methods, objects.types_of(methods), strict=True
        ):
            if pair_type == symbols["PyTuple_Type"] and type_ == symbols["PyMethod_Type"]:
                function, owner = self._pair(method)
                if self._is_exit(function):
                    managers.append(owner)
        return managers

    def _items(self, deque: int) -> list[int]:
        """Return the items of a deque; none of another object."""
        if not deque or self._type_name(deque) != _DEQUE:
            return []
        head = process_memory.read(self._pid, deque + self._header, _DEQUE_HEAD.size)
        if len(head) < _DEQUE_HEAD.size:
            return []
        size, block, _, first = _DEQUE_HEAD.unpack(head)
        items: list[int] = []
        while len(items) < min(size, _MAX_CALLBACKS) and block and first < _BLOCK_ITEMS:
            count = min(_BLOCK_ITEMS - first, size - len(items))
            begin = block + _FIRST_ITEM_AT + _WORD.size * first
            items += self._objects.words([begin + _WORD.size * n for n in range(count)])
            block, first = self._state.word(block + _NEXT_BLOCK_AT), 0
        return items

    def _pair(self, value: int) -> tuple[int, int]:
        """Return the function, and the object to which it is bound."""
        first, second = self._objects.words([
            value + self._header, value + self._header + _SELF_AT,
        ])  # fmt: skip
        return first, second

    def _is_exit_of_c(self, definition: int) -> bool:
        name = self._state.word(definition)
        return process_memory.read_string(self._pid, name, 16) == _EXIT.encode()

    def _is_exit(self, function: int) -> bool:
        (type_,) = self._objects.types_of([function])
        if type_ == self._state.symbols["PyMethodDescr_Type"]:
            return self._is_exit_of_c(self._state.word(function + self._header + 24))
        if type_ != self._state.symbols["PyFunction_Type"]:
            return False
        name = self._state.word(function + self._state.layout.function_name_at)
        return self._objects.texts([name]) == [_EXIT]

    def _inner_locks(self, condition: int) -> tuple[int, ...]:
        """Return the lock inside a threading.Condition; none of another object."""
        if not condition or self._type_name(condition) != _CONDITION:
            return ()
        inner = self._attribute(condition, _INNER)
        return (inner,) if inner and self._is_lock(inner) else ()

    def _attribute(self, instance: int, name: str) -> int:
        """Return the address of an attribute, 0 if there is none."""
        (attributes,) = self._objects.attributes([instance], (name,))
        return attributes.get(name, 0)

    def _type_name(self, address: int) -> str:
        (type_,) = self._objects.types_of([address])
        if type_ not in self._types:
            self._types[type_] = self._state.type_name(type_) if type_ else ""
        return self._types[type_]
