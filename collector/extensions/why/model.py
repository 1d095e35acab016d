"""Waits across processes: who waits for what, who could end it, and the answer for a process."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from locktop.collector.linux.syscalls import SystemCall
from locktop.collector.model import Frame

#: The words for whoever could end a wait at a descriptor of a core.
UNTOLD = "whoever a core does not tell"
#: The role of a thread that certainly has a lock.
HOLDER = "holder"
#: The role of the threads of a process for one that waits at a word of its memory.
ANY_THREAD = "thread"

#: Roles of those that need no descriptor to end a wait.
_WITHOUT_DESCRIPTOR = (HOLDER, ANY_THREAD, "likely holder", "child", "process", "tracer")


class HostThread(Struct, frozen=True):
    """A living thread of the machine. Its ids are those of locktop's pid namespace."""

    tid: int
    pid: int
    name: str
    state: str  # one letter, see proc_pid_stat(5)
    call: SystemCall | None = None  # in which it sleeps; None: it runs, or the call is hidden
    is_hidden: bool = False  # the kernel refuses to tell the call
    runs: int = -1  # how often it was put on a CPU; -1: not counted


class HostProcess(Struct, frozen=True):
    """A process of the machine."""

    pid: int
    comm: str
    parent: int  # pid
    state: str  # one letter, see proc_pid_stat(5)


class Awaited(Struct, frozen=True):
    """The wait of a thread. One of the providers is enough to end the wait.

    A wait that something else may end, as ``other_end`` says, is in no deadlock.
    """

    does: str  # what the thread does, as "reads from pipe 4 (pipe:[123])"
    role: str = ""  # what the providers are, as "writer"
    providers: frozenset[int] = frozenset()  # tids
    pids: tuple[int, ...] = ()  # the processes of the providers
    other_end: str = ""  # who else may end the wait, as "10.0.0.7:5432 on another machine"
    doubt: str = ""  # why the wait may end although all providers are stuck
    #: Of a lock: the threads that alone could change its word, so one of them must go on in any
    #: case. ``providers`` are whom the lock, or a guess, names.
    #: The descriptor of a socket and the option of its time limit, to be asked for.
    socket_limit: tuple[int, int] | None = None
    wakers: frozenset[int] | None = None
    waker_doubt: str = ""  # as ``doubt``, of ``wakers``
    #: Processes that may end a wait at a socket or epoll by a change of it (shutdown(2)), and their
    #: threads. Programs seldom do so: only a certain deadlock needs that they wait too.
    sharers: tuple[int, ...] = ()
    sharer_tids: frozenset[int] = frozenset()
    needs_all: bool = False  # all providers must go on, as the readers of a lock for a writer
    is_settled: bool = False  # a scan of the process has proven that the wait goes on
    #: The id of the holder, if that thread ended without a release; 0: it lives.
    ended_holder: int = 0
    duration_s: float = 0.0  # of a wait for a lock; 0.0: not known
    is_lower_bound: bool = False
    frames: tuple[Frame, ...] = ()  # of the waiting thread

    @property
    def is_at_descriptor(self) -> bool:
        """Whether whoever has a certain descriptor may end the wait."""
        return bool(self.role) and not self.is_settled and self.role not in _WITHOUT_DESCRIPTOR


class WhyVerdict(StrEnum):
    """The answer for a process. The value is the word in JSON."""

    DEADLOCK = "deadlock"  # nobody in the knot can go on
    POSSIBLE = "possible_deadlock"
    WAITS = "waits"  # the chain ends at somebody who may go on
    NONE = "no_wait"


#: The verdicts about a deadlock.
DEADLOCKED = frozenset({WhyVerdict.DEADLOCK, WhyVerdict.POSSIBLE})


class ChainStep(Struct, frozen=True):
    """A thread of a chain, and what it waits for."""

    thread: HostThread
    awaited: Awaited | None  # None: the chain ends here, as the thread runs
    threads_alike: int = 1  # threads of the process that wait for the same


class Chain(Struct, frozen=True):
    """The way from a process to the root of its wait."""

    pid: int
    verdict: WhyVerdict
    steps: tuple[ChainStep, ...]
    back_to: int = -1  # the number of the step at which a circle of steps closes; -1: no circle
    doubts: tuple[str, ...] = ()  # what is missing for certainty


class StuckSets(Struct, frozen=True):
    """The threads that nobody can wake, by tid."""

    possible: frozenset[int]  # if all waits are as they seem
    certain: frozenset[int]
    doubts: Mapping[int, str] = {}  # those that the waits themselves do not have, by tid


class WaitGroup(Struct, frozen=True):
    """The threads of a process that wait for the same."""

    threads: tuple[HostThread, ...]
    awaited: Awaited


class WhyAnswer(Struct, frozen=True):
    """The answers for the processes that were asked for, of one scan at the machine."""

    chains: tuple[Chain, ...]
    scanned: int  # number of processes
    names: Mapping[int, str]  # of the processes in the chains, by pid: "convert 4802"
    #: Names of the threads in the chains, by tid, as the program itself knows them.
    thread_names: Mapping[int, str]
    waits: tuple[WaitGroup, ...] = ()  # of all processes that the chains may reach
    hidden: tuple[int, ...] = ()  # processes whose files or calls this user may not see
    scan_s: float = 0.0  # seconds that the looks took
    #: Sentences about what limits the answer, as files that a core lacks.
    notes: tuple[str, ...] = ()
    is_complete: bool = True  # False: a core was cut, and may hide a deadlock
