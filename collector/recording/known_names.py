"""The names of one program that its snapshots know, for the snapshots that still lack them.

A name belongs to code or to a lock, not to a moment. The first snapshots of a process may have
addresses in place of names, because names are read beside the scans.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from locktop.collector.model import Frame, Lock, Pattern, Snapshot
from locktop.collector.model.frames import innermost_own_frame
from locktop.collector.model.kinds import OBJECT_LOCK, PYTHON_LOCK
from locktop.collector.render.words.lock_kind import kind_word
from locktop.collector.symbols.stack_frames import UNLOADED, program_frames

#: The longest pause between two searches for a name in the newest scan.
_MAX_PAUSE_NS = 10_000_000_000


class Code(Struct, frozen=True):
    """A return address, and the file that was mapped there."""

    address: int
    module: str


class LockLife(Struct, frozen=True):
    """A lock from its initialisation to the next one at the same address."""

    id: int
    generation: int
    kind: str
    address: int


Item = Code | LockLife


class LoadedCode(Struct, frozen=True):
    """A program and its libraries: an address means the same in two snapshots with equal ones."""

    pid: int
    exe: str
    counted_since: str
    source: str
    unloads: int

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot) -> LoadedCode:
        """Return the program of a snapshot, with the libraries that it has."""
        process = snapshot.process
        return cls(
            pid=process.pid,
            exe=process.exe,
            counted_since=process.counted_since,
            source=snapshot.source,
            unloads=snapshot.unloads,
        )


class _Searches(Struct, frozen=True):
    """The newest scan at the first search for a name, and at the last one."""

    first_ns: int
    last_ns: int

    def is_due(self, newest_ns: int) -> bool:
        """Return whether to search again. A name that never comes is searched ever more rarely."""
        pause_ns = min(self.last_ns - self.first_ns, _MAX_PAUSE_NS)
        return newest_ns > self.last_ns and newest_ns - self.last_ns >= pause_ns


class KnownNames:
    """The names of one ``LoadedCode``. Times are nanoseconds since 1970."""

    def __init__(self) -> None:
        self._frames: dict[Code, tuple[Frame, ...]] = {}
        self._locks: dict[LockLife, str] = {}
        self._nameless_ns: dict[Item, int] = {}  # a snapshot after all requested names has none
        self._searches: dict[Item, _Searches] = {}

    def wanted(self, snapshot: Snapshot, newest_ns: int) -> set[Item]:
        """Return what lacks a name in a snapshot, and is to be searched now.

        Args:
            snapshot: as it was kept.
            newest_ns: the time of the newest scan.
        """
        searches = self._searches
        frames = {frame for part in _parts(snapshot) for frame in part if _may_get_more(frame)}
        items: set[Item] = {_code(frame) for frame in frames}
        items.update(_life(lock) for lock in snapshot.locks if is_provisional(lock))
        return {
            item
            for item in items
            if ((before := searches.get(item)) is None or before.is_due(newest_ns))
            and not self._has_name(item)
        }

    def learn(self, snapshot: Snapshot, time_ns: int, wanted: set[Item]) -> set[Item]:
        """Take the names of a later snapshot; return what to search in the next snapshots."""
        items: set[Item] = set()
        nameless: set[Item] = set()
        for part in _parts(snapshot):
            for calls in _calls(part):
                code = _code(calls[0])
                if code not in wanted:
                    continue
                items.add(code)
                if _rank(calls) > _rank(self._frames.get(code, ())):
                    self._frames[code] = calls
        for lock in snapshot.locks:
            life = _life(lock)
            if life not in wanted:
                continue
            items.add(life)
            if not is_provisional(lock):
                self._locks[life] = lock.name
        if not snapshot.names_left:  # of the requests of earlier scans
            # A lock gets its name from names of functions, one scan after these are read.
            nameless = {item for item in items if self._nameless_ns.get(item, time_ns) != time_ns}
            self._nameless_ns.update(dict.fromkeys(items - nameless, time_ns))
        return {item for item in wanted - nameless if not self._has_name(item)}

    def unsearched(self, items: set[Item], time_ns: int) -> set[Item]:
        """Return those that were not searched in a snapshot of this time yet."""
        searches = self._searches
        return {item for item in items if item not in searches or searches[item].last_ns < time_ns}

    def note_search(self, items: Iterable[Item], newest_ns: int) -> None:
        """Note that these were searched, up to the newest scan."""
        for item in items:
            before = self._searches.get(item)
            first_ns = before.first_ns if before is not None else newest_ns
            self._searches[item] = _Searches(first_ns=first_ns, last_ns=newest_ns)

    def _has_name(self, item: Item) -> bool:
        if isinstance(item, LockLife):
            return item in self._locks
        return _is_whole(self._frames.get(item, ()))

    def apply(self, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot with the names that are known; the same object if it has them."""
        if not self._frames and not self._locks:
            return snapshot
        stacks = {stack: self._name_frames(frames) for stack, frames in snapshot.stacks.items()}
        sites = {address: self._site(frame) for address, frame in snapshot.sites.items()}
        before = {lock.id: lock.name for lock in snapshot.locks}
        locks = tuple([self._named_lock(lock, snapshot, stacks) for lock in snapshot.locks])
        renamed = {before[lock.id]: lock.name for lock in locks if lock.name != before[lock.id]}
        return replace(
            snapshot,
            stacks=stacks,
            sites=sites,
            locks=locks,
            patterns=tuple([_reword(pattern, renamed) for pattern in snapshot.patterns]),
        )

    def _name_frames(self, frames: tuple[Frame, ...]) -> tuple[Frame, ...]:
        if not any(_may_get_more(frame) and _code(frame) in self._frames for frame in frames):
            return frames
        better = [frame for calls in _calls(frames) for frame in self._better(calls)]
        return program_frames(better)

    def _better(self, calls: tuple[Frame, ...]) -> tuple[Frame, ...]:
        frames = self._frames.get(_code(calls[0]), ())
        return frames if _rank(frames) > _rank(calls) else calls

    def _site(self, frame: Frame) -> Frame:
        """Return the frame of a call site, which has no frames of inlined functions beside it."""
        if not _may_get_more(frame):
            return frame
        frames = self._better((frame,))
        return innermost_own_frame(frames) or frames[-1]

    def _named_lock(
        self, lock: Lock, snapshot: Snapshot, stacks: Mapping[int, Sequence[Frame]]
    ) -> Lock:
        name = self._locks.get(_life(lock)) if is_provisional(lock) else None
        if name is None:
            return lock
        if _needs_proof(lock, name, snapshot) and name not in _uses(lock, name, snapshot, stacks):
            return lock
        return replace(lock, name=name)


def _parts(snapshot: Snapshot) -> Iterator[tuple[Frame, ...]]:
    yield from snapshot.stacks.values()
    for frame in snapshot.sites.values():
        yield (frame,)


def _code(frame: Frame) -> Code:
    return Code(frame.address, frame.module)


def _life(lock: Lock) -> LockLife:
    return LockLife(lock.id, lock.generation, lock.kind.value, lock.address)


def _may_get_more(frame: Frame) -> bool:
    """Return whether a frame of a file lacks a name. Compiled code moves, so its address is no
    proof."""
    return frame.file is None and frame.module not in ("", UNLOADED)


def _rank(calls: Sequence[Frame]) -> int:
    """Return how much is known of the frames of one address: a function, then its line too."""
    if not calls or not calls[-1].function:
        return 0
    return 2 if calls[-1].file is not None else 1


def _is_whole(calls: Sequence[Frame]) -> bool:
    return _rank(calls) > 1


def _calls(frames: Iterable[Frame]) -> Iterator[tuple[Frame, ...]]:
    """Yield the frames of each return address: those of inlined functions, and their caller."""
    calls: list[Frame] = []
    for frame in frames:
        calls.append(frame)
        if not frame.inlined:
            yield tuple(calls)
            calls = []
    if calls:
        yield tuple(calls)


def is_provisional(lock: Lock) -> bool:
    """Return whether a name ends with the address, as long as a better name may come."""
    return lock.address != 0 and lock.name.endswith(f" {lock.address:#x}")


def _needs_proof(lock: Lock, name: str, snapshot: Snapshot) -> bool:
    """Return whether a name must be true of the moment, too.

    Such a name tells where threads waited, and another lock may have had the address before. Python
    initialises its locks, so with the library each has a generation of its own.
    """
    word = _first_words(lock, name)
    is_python_lock = word in (PYTHON_LOCK, OBJECT_LOCK)
    return name.startswith(f"{word} in ") and (not is_python_lock or snapshot.is_sampled)


def _first_words(lock: Lock, name: str) -> str:
    """Return the words that begin a name by the function that waits."""
    word = kind_word(lock.kind, name)
    return OBJECT_LOCK if word == PYTHON_LOCK and name.startswith(OBJECT_LOCK) else word


def _uses(
    lock: Lock, name: str, snapshot: Snapshot, stacks: Mapping[int, Sequence[Frame]]
) -> Iterator[str]:
    """Yield the names that a lock gets from the functions that wait for it.

    They begin with the same word for the kind as ``name``.
    """
    word = _first_words(lock, name)
    used = {entry.stack for entry in lock.wait_stacks}
    waits = (thread.waiting_for for thread in snapshot.threads)
    used.update(wait.stack for wait in waits if wait is not None and wait.lock == lock.id)
    for stack in used:
        for frame in stacks.get(stack, ()):
            if frame.file is not None:
                yield f"{word} in {frame.function} ({frame.file}:{frame.line})"
            elif frame.function:
                yield f"{word} in {frame.function}"
            else:
                yield f"{word} in {frame.module}+{frame.offset:#x}"


def _reword(pattern: Pattern, renamed: Mapping[str, str]) -> Pattern:
    """Return a pattern whose sentences have the new names of locks."""
    evidence, advice = pattern.evidence, pattern.advice
    for before, after in renamed.items():
        evidence, advice = evidence.replace(before, after), advice.replace(before, after)
    return replace(pattern, evidence=evidence, advice=advice)
