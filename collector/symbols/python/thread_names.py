"""The names that a Python program gave its threads, from the memory of the process.

``threading._active`` has the Thread object of each running thread. CPython before 3.14 does not
give the names to the kernel. The process goes on, so its objects may change during a reading. A
name counts only if two readings agree.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable
from functools import partial

from locktop.collector.linux import process_memory
from locktop.collector.sanitize import clean
from locktop.collector.symbols.python.object_layout import layout_of
from locktop.collector.symbols.python.objects import PythonObjects, Types
from locktop.collector.symbols.python.version import Interpreter, find_interpreter

_RUNTIME = "_PyRuntime"
_TYPES = ("PyDict_Type", "PyUnicode_Type", "PyLong_Type", "PyModule_Type")
#: From 3.13 on, the runtime begins with a table of offsets (pycore_debug_offsets.h).
_COOKIE = b"xdebugpy"
_FIRST_WITH_TABLE = (3, 13)
_TABLE_WORDS = 16
#: Numbers of words: whether threads run without the GIL; the offset of the interpreters' list.
_THREADED_AT, _LIST_AT = 2, 5
#: Before that, the offset of the list (pycore_runtime.h).
_LIST_OFFSETS = {(3, 8): 32, (3, 9): 32, (3, 10): 32, (3, 11): 40, (3, 12): 40}
_MAIN_AT = 8  # of the main interpreter, from the head of the list on
#: Bytes of an interpreter before 3.13 among which the modules are.
_STATE_SIZE = 16 << 10
_MAX_THREADS = 20_000
_NAME, _TID = "_name", "_native_id"
#: A thread that Python did not start. Its name in the kernel says more.
_DUMMY = re.compile(r"Dummy-\d+$")
_MAX_NAME = 80  # characters


class ThreadNameReader:
    """Reads the names of one process's Python threads.

    Attributes:
        is_python: whether the process has an interpreter whose objects can be read.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._objects: PythonObjects | None = None
        self._interpreter: Interpreter | None = None
        self._active = 0  # address of the dictionary
        self.is_python = False

    def read(self) -> dict[int, str]:
        """Return the names by tid, in the pid namespace of the process."""
        if not self._active and not self._find():
            return {}
        first = self._read_once()
        if not first:
            return {}
        second = self._read_once()
        return {tid: name for tid, name in first.items() if second.get(tid) == name}

    def _find(self) -> bool:
        """Find the dictionary of threads; return whether it was found."""
        try:
            self._interpreter = self._interpreter or find_interpreter(
                self._pid, (_RUNTIME, *_TYPES)
            )
        except OSError:
            return False
        if self._interpreter is None:
            return False
        version = self._interpreter.version[:2]
        table = self._table() if version >= _FIRST_WITH_TABLE else ()
        is_free_threaded = bool(table) and table[_THREADED_AT] == 1
        layout = layout_of((version[0], version[1]), is_free_threaded)
        if layout is None or (version >= _FIRST_WITH_TABLE and not table):
            return False
        types = Types(*(self._interpreter.addresses[name] for name in _TYPES))
        self._objects = PythonObjects(partial(process_memory.read_many, self._pid), layout, types)
        self.is_python = True
        self._active = self._find_active(self._objects, self._may_be_modules(table))
        return bool(self._active)

    def _table(self) -> tuple[int, ...]:
        """Return the words of the table of offsets, () without a sound one."""
        assert self._interpreter is not None, "it was found"
        size = 8 * _TABLE_WORDS
        data = process_memory.read(self._pid, self._interpreter.addresses[_RUNTIME], size)
        if len(data) < size or not data.startswith(_COOKIE):
            return ()
        return struct.unpack(f"={_TABLE_WORDS}Q", data)

    def _may_be_modules(self, table: tuple[int, ...]) -> list[int]:
        """Return addresses of objects, one of which is the dictionary of modules."""
        assert self._interpreter is not None, "it was found"
        assert self._objects is not None, "the layout is known"
        version = self._interpreter.version[:2]
        offset = (table[_LIST_AT] if table else _LIST_OFFSETS[version[0], version[1]]) + _MAIN_AT
        (state,) = self._objects.words([self._interpreter.addresses[_RUNTIME] + offset])
        if not state:
            return []
        if table:
            offsets = table[_LIST_AT + 1 :]
            return self._objects.words([state + offset for offset in offsets])
        data = process_memory.read(self._pid, state, _STATE_SIZE)
        return [word for (word,) in struct.iter_unpack("=Q", data[: len(data) // 8 * 8])]

    def _find_active(self, objects: PythonObjects, candidates: Iterable[int]) -> int:
        """Return the address of ``threading._active``, 0 if it is not found.

        Of all dictionaries of an interpreter, that of modules alone has a module "threading".
        """
        plausible = [
            address for address in dict.fromkeys(candidates) if address >= 4096 and address % 8 == 0
        ]
        types = objects.types_of(plausible)
        for candidate, type_ in zip(plausible, types, strict=True):
            if type_ != objects.types.dictionary:
                continue
            module = objects.value(candidate, "threading")
            if module and objects.types_of([module]) == [objects.types.module]:
                (namespace,) = objects.words([module + objects.header])
                active = objects.value(namespace, "_active")
                if objects.types_of([active]) == [objects.types.dictionary]:
                    return active
        return 0

    def _read_once(self) -> dict[int, str]:
        assert self._objects is not None, "the dictionary was found by it"
        threads = [value for _, value in self._objects.items(self._active)][:_MAX_THREADS]
        attributes = self._objects.attributes(threads, (_NAME, _TID))
        named = [thread for thread in attributes if _NAME in thread and _TID in thread]
        names = self._objects.texts([thread[_NAME] for thread in named])
        tids = self._objects.small_ints([thread[_TID] for thread in named])
        result: dict[int, str] = {}
        several = set()
        for tid, name in zip(tids, names, strict=True):
            if tid is None or not name:
                continue
            if tid in result:  # greenlets under gevent: none of the names is the thread's
                several.add(tid)
            result[tid] = name
        return {
            tid: clean(name)[:_MAX_NAME]
            for tid, name in result.items()
            if tid not in several and not _DUMMY.match(name)
        }
