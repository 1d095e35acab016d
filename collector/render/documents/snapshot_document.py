"""The document of a snapshot: each object, key, type and meaning, described once.

The codec (snapshot_codec.py), the JSON Schema and docs/snapshot.md come from these types. A field
has the name of its model field; ``rename`` gives the key where the two differ. Keys may be added;
the keys that exist keep their meaning. The value null means "not measured".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, Struct, defstruct

from locktop.collector.extension.discovery import sections
from locktop.collector.extension.parts import SnapshotSection
from locktop.collector.render.documents.snapshot_fields import (
    NO_ADDRESS,
    Address,
    Count,
    IdKey,
    Number,
    Tid,
    meaning,
)
from locktop.collector.render.documents.snapshot_findings import (
    BlockingRootEntry,
    DeadlockEntry,
    EventEntry,
    HangEntry,
    MarkEntry,
    MisuseEntry,
    OrderCycleEntry,
    PatternEntry,
    UnobservedWaitEntry,
)
from locktop.collector.render.documents.snapshot_locks import LockClassEntry, LockEntry
from locktop.collector.render.documents.snapshot_threads import (
    AwaitedChildEntry,
    ChildWaitsEntry,
    ThreadElsewhereEntry,
    ThreadEntry,
    ThreadGroupEntry,
)

FORMAT = "locktop.snapshot"
VERSION = 1
#: Frames of one stack, far more than are ever recorded.
MAX_FRAMES = 4096


class ProcessEntry(Struct, kw_only=True, gc=False):
    """The process."""

    pid: Annotated[Tid, meaning("The process id.")]
    comm: Annotated[str, meaning("The name of the process.")] = ""
    cmdline: Annotated[list[str], meaning("The command with its arguments.")] = []
    exe: Annotated[str, meaning("The path of the program.")] = ""
    started_at: Annotated[str, meaning("The start of the process, ISO 8601 in UTC.")] = ""
    counted_since: Annotated[
        str, meaning("The begin of the counters, ISO 8601 in UTC. An exec begins them anew.")
    ] = ""
    cpu_share: Annotated[Number, meaning("CPUs used in the last interval.")] = 0.0
    rss_bytes: Annotated[Count, meaning("Resident memory in bytes.")] = 0
    cpus: Annotated[Count, meaning("CPUs that the process may use; 0: not known.")] = 0


class FrameEntry(Struct, kw_only=True, gc=False):
    """A frame of a stack."""

    function: Annotated[str, meaning("The name of the function; empty: not known.")] = ""
    file: Annotated[str | None, meaning("The source file.")] = None
    line: Annotated[Count | None, meaning("The line in the source file.")] = None
    module: Annotated[str, meaning("The program or library.")] = ""
    address: Annotated[Address, meaning("The address of the code.")] = NO_ADDRESS
    offset: Annotated[Address, meaning("The offset in the module.")] = NO_ADDRESS
    inlined: Annotated[bool, meaning("The compiler inlined the function.")] = False


class CoreDocument(
    Struct,
    kw_only=True,
    gc=False,
    rename={"unobserved_waiters": "unseen_waiters", "unobserved_waits": "unseen"},
):
    """The document without the sections of extensions."""

    format: Annotated[Literal["locktop.snapshot"], meaning("The name of the format.")]
    version: Annotated[Literal[1], meaning("The version of the format.")]
    taken_at: Annotated[str, meaning("The time of the scan, ISO 8601 in UTC.")] = ""
    host: Annotated[str, meaning("The name of the machine.")] = ""
    source: Annotated[
        str,
        meaning("preload: with the library; proc: sampled; core, recording: of such a file."),
    ] = ""
    duration_s: Annotated[Number, meaning("Seconds that the figures cover; with -d the interval.")]
    session_s: Annotated[
        Number | None, meaning("Figures of a session or span of so many seconds; null: all.")
    ] = None
    lost_events: Annotated[Count, meaning("Records that newer records overwrote.")] = 0
    ended: Annotated[bool, meaning("The process has ended; the figures are its last.")] = False
    stopped: Annotated[bool, meaning("A signal or a debugger has stopped the process.")] = False
    level: Annotated[
        str, meaning("The recording level: dormant, counting, contended, blocks, all, or sampled.")
    ] = "contended"
    complete: Annotated[
        bool, meaning("Recording began with the program: no earlier hold or wait is missing.")
    ] = True
    locks_left_out: Annotated[
        Count, meaning('Locks without contention that "locks" leaves out.')
    ] = 0
    names_left: Annotated[
        Count, meaning("Names that were not read in time: there, functions or lines are missing.")
    ] = 0
    unobserved_waiters: Annotated[list[Tid], meaning("Threads in unobserved waits.")] = []
    unobserved_waits: Annotated[
        list[UnobservedWaitEntry], meaning("Details of the first 32 of these threads.")
    ] = []
    notes: Annotated[list[str], meaning("What the user should know, one line each.")] = []
    process: Annotated[ProcessEntry, meaning("The process.")]
    threads: Annotated[list[ThreadEntry], meaning("The threads in order of tid.")]
    thread_groups: Annotated[list[ThreadGroupEntry], meaning("The thread groups.")] = []
    threads_elsewhere: Annotated[
        list[ThreadElsewhereEntry],
        meaning("Holders of locks in shared memory that are threads of other processes."),
    ] = []
    waiting_children: Annotated[
        list[ChildWaitsEntry],
        meaning("Children whose threads wait, if no thread of the process itself does."),
    ] = []
    awaited_child: Annotated[
        AwaitedChildEntry | None,
        meaning("The child that a thread waits for, if no thread waits for a lock."),
    ] = None
    locks: Annotated[list[LockEntry], meaning("The locks, most wait first.")]
    lock_classes: Annotated[list[LockClassEntry], meaning("The lock classes.")] = []
    blocking: Annotated[
        list[BlockingRootEntry], meaning("Root holders, most waiting first; 64 at most.")
    ] = []
    deadlocks: Annotated[list[DeadlockEntry], meaning("Deadlocks, certain or possible.")] = []
    hang: Annotated[
        HangEntry | None, meaning("All threads wait for each other; null: one may go on.")
    ] = None
    lock_order: Annotated[list[OrderCycleEntry], meaning("Potential deadlocks, surest first.")] = []
    lock_order_suppressed: Annotated[
        Count, meaning("Potential deadlocks that a suppression file leaves out.")
    ] = 0
    lock_order_unproven: Annotated[
        Count, meaning("Potential deadlocks left out, for an address may have had two locks.")
    ] = 0
    lock_orders_left_out: Annotated[
        bool, meaning("Some lock orders found no room: potential deadlocks may be missing.")
    ] = False
    lock_order_search_cut: Annotated[
        bool, meaning("The search for potential deadlocks ended at a limit: some may be missing.")
    ] = False
    stacks: Annotated[
        dict[IdKey, Annotated[list[FrameEntry], Meta(max_length=MAX_FRAMES)]],
        meaning("Stacks by number: frames, innermost first."),
    ] = {}
    sites: Annotated[
        dict[Address, FrameEntry], meaning("By return address: the innermost frame of the program.")
    ] = {}
    events: Annotated[list[EventEntry], meaning("The newest events, newest first.")] = []
    marks: Annotated[list[MarkEntry], meaning("The newest marks, newest first.")] = []
    recent_lock_waits: Annotated[
        dict[IdKey, list[Number]],
        meaning("By lock: seconds waited in twelve parts of 5 s, the last one not over."),
    ] = {}
    recent_thread_waits: Annotated[dict[IdKey, list[Number]], meaning("The same by thread.")] = {}
    misuses: Annotated[list[MisuseEntry], meaning("Misuses, the first one first.")] = []
    patterns: Annotated[list[PatternEntry], meaning("Contention patterns.")] = []

    #: Shares were saved with the figures, rates were not.
    interval_s = property(lambda self: self.duration_s)


def _type_of(section: SnapshotSection) -> Any:
    return section.entry | None if section.default is None else section.entry


if TYPE_CHECKING:
    Document = CoreDocument
else:
    Document = defstruct(
        "Document",
        [
            (name, Annotated[_type_of(section), meaning(section.meaning)], section.default)
            for name, section in sections().items()
        ],
        bases=(CoreDocument,),
        namespace={"__doc__": "Everything that one scan of a process showed."},
        module=__name__,
        kw_only=True,
        gc=False,
    )
