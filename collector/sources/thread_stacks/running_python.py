"""The Python functions of threads that do not rest while they are read.

The merged stacks of a scan are of waits that went on through the whole reading. A thread that runs,
or that fights for the GIL, has none. Its functions are read twice here, without a stop. The outer
functions that both readings have are the stack. If the readings differ further in, it is cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from itertools import takewhile

from locktop.collector.model import Frame, Snapshot, Thread
from locktop.collector.model.frames import PYTHON
from locktop.collector.sources.thread_stacks.scanned_ids import stack_id
from locktop.collector.symbols.python import merge_stacks
from locktop.collector.symbols.python.frame_reader import PythonFrame, PythonReader, Runs
from locktop.collector.symbols.python.interpreter import is_interpreter

#: Seconds for each reading.
_PATIENCE_S = 10.0
#: Two are enough unless a reading fails, or misses a thread: threads come and go.
_MAX_READINGS = 4
#: The inner end of a stack whose innermost functions changed.
WENT_ON = Frame(
    address=0,
    function="(went on to other functions while it was read)",
    file=None,
    line=None,
    module="",
    offset=0,
)


def read(
    snapshot: Snapshot, pid: int, later: Mapping[int, tuple[Frame, ...]]
) -> dict[int, tuple[Frame, ...]]:
    """Return by tid the functions of threads whose stack lacks them.

    Args:
        snapshot: a scan of this moment, with all names.
        pid: the process, as locktop's own pid namespace has it.
        later: by tid, stacks that were read after the scan.
    """
    stacks = [*snapshot.stacks.values(), *later.values()]
    if snapshot.ended or not any(map(_is_of_python, stacks)):
        return {}
    tids = [
        thread.tid
        for thread in snapshot.threads
        if thread.alive and not thread.pid and _lacks_functions(snapshot, thread, later)
    ]
    if not tids:
        return {}
    with closing(PythonReader(pid)) as reader:
        return _read(tids, reader)


def _read(tids: Sequence[int], reader: PythonReader) -> dict[int, tuple[Frame, ...]]:
    stacks: dict[int, tuple[Frame, ...]] = {}
    before: dict[int, Runs] = {}
    for _ in range(_MAX_READINGS):
        reader.ask()
        now = reader.answer(_PATIENCE_S) or {}
        for tid in set(tids) - stacks.keys():
            if frames := _common(before.get(tid, ()), now.get(tid, ())):
                stacks[tid] = frames
        before |= now
        if len(stacks) == len(tids) or reader.gave_up:
            break
    return stacks


def _lacks_functions(
    snapshot: Snapshot, thread: Thread, later: Mapping[int, tuple[Frame, ...]]
) -> bool:
    frames = later.get(thread.tid) or snapshot.stacks.get(stack_id(snapshot, thread), ())
    return not frames or merge_stacks.runs_python(frames)


def _is_of_python(frames: Iterable[Frame]) -> bool:
    return any(frame.module == PYTHON or is_interpreter(frame) for frame in frames)


def _common(before: Runs, after: Runs) -> tuple[Frame, ...]:
    """Return the outer functions that both readings have, innermost first."""
    first, last = _outermost_first(before), _outermost_first(after)
    pairs = takewhile(lambda pair: _is_same(*pair), zip(first, last, strict=False))
    kept = [_frame(frame) for _, frame in pairs]
    if not kept:
        return ()
    is_whole = len(kept) == len(first) == len(last)
    return (*(() if is_whole else (WENT_ON,)), *reversed(kept))


def _outermost_first(runs: Runs) -> Sequence[PythonFrame]:
    return [frame for run in reversed(runs) for frame in reversed(run)]


def _is_same(first: PythonFrame, last: PythonFrame) -> bool:
    return first[:2] == last[:2] and first.directory == last.directory


def _frame(frame: PythonFrame) -> Frame:
    return Frame(
        address=0,
        function=frame.function,
        file=frame.file,
        line=frame.line,
        module=PYTHON,
        offset=0,
        directory=frame.directory,
    )
