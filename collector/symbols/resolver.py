"""Names for addresses, resolved by a thread of its own: a scan never waits for them.

`frames()` and `data()` return at once what is known. Other addresses are queued: functions first,
then source lines and parts of variables, which take longer.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from locktop.collector.linux import procfs
from locktop.collector.model import Frame
from locktop.collector.model.frames import innermost_own_frame
from locktop.collector.native import lib
from locktop.collector.sanitize import clean
from locktop.collector.symbols.demangle import demangle
from locktop.collector.symbols.jit.jit_code import JitCode
from locktop.collector.symbols.memory_map import AddressSpace, Mapping, parse
from locktop.collector.symbols.stack_frames import (
    UNLOADED,
    located_frames,
    program_frames,
    unloaded_frame,
)

if TYPE_CHECKING:
    from locktop.collector.symbols.elf.symbol_table import Symbol
    from locktop.collector.symbols.kernel_code import VdsoNames
    from locktop.collector.symbols.modules import Module

_MAX_NOTE = 1000  # characters; a path may be longer than most names
_TRIES = 6  # for the name of compiled code, after 1, 2, 4, ... seconds
_HURRY_S = 0.1  # how soon hurry() is noticed
MAPS_AGE_S = 1.0  # the longest delay until a new library is noticed
_LAST_NAME_S = 1.0  # reread() waits so long for the name that is being read
_MAX_KEPT = 64  # modules that are found without opening their files again


class _CodeTry(NamedTuple):
    """The attempts to name compiled code."""

    tries: int
    next_at: float  # on the monotonic clock


class _KeptModule(NamedTuple):
    """A module, and the distance of its addresses in memory to those at link time."""

    module: Module
    bias: int | None


class _Work(NamedTuple):
    run: Callable[[int], None]
    address: int


class Resolver:
    """Names for one process.

    Attributes:
        version: Grows with every name that is found.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._space = AddressSpace([])
        self._space_at = 0.0
        self._frames: dict[int, tuple[Frame, ...]] = {}
        self._named: set[int] = set()  # addresses that need no further work
        self._data: dict[int, str] = {}
        self._unmapped: set[int] = set()  # addresses of data that no known file has
        self._stacks: dict[int, tuple[Frame, ...]] = {}
        self._without_symbols: set[Mapping] = set()
        self._modules: dict[Mapping, _KeptModule] = {}  # as long as the memory map stays
        self._notes: dict[Mapping, str] = {}  # lines for the user about a file
        self._jit = JitCode(pid)
        self._vdso: VdsoNames | None = None
        self._unnamed_code: dict[int, _CodeTry] = {}
        self._requested: set[tuple[str, int]] = set()
        self._functions: deque[_Work] = deque()
        self._lines: deque[_Work] = deque()
        self._parts: deque[_Work] = deque()  # of variables; they take longest
        self._changed = threading.Condition()
        self.version = 0
        self._busy = False
        self._map_number = 0  # grows each time that the map is read anew
        self._held = False
        self._is_stopped = False  # by the user: addresses stay without names
        self._new = 0  # requests since the last call of count_left()
        self._closed = False
        self._is_hurried = False
        self._keeps_maps = False
        self._thread: threading.Thread | None = None
        self._read_maps()

    # ---- for scans ----

    def frames(self, address: int) -> tuple[Frame, ...]:
        """Return the known frames of a return address, innermost first.

        Frames of inlined functions come before the frame of the function with the call.
        """
        frames = self._frames.get(address)
        if frames is None and address >> lib.LT_UNLOADED_BIT:
            frames = self._frames[address] = (unloaded_frame(address),)
            self._named.add(address)
        if frames is None or self._is_due(address):
            frames = self._frames[address] = (self._unnamed_frame(address),)
            self._request("frame", self._name_frame, address)
        return frames

    def _is_due(self, address: int) -> bool:
        if address not in self._unnamed_code or ("frame", address) in self._requested:
            return False
        return time.monotonic() >= self._unnamed_code[address].next_at

    def frame(self, address: int) -> Frame:
        """Return the innermost known frame of a return address."""
        return self.frames(address)[0]

    def site(self, address: int) -> Frame:
        """Return the frame that says whose call this is: the innermost that is no wrapper."""
        frames = self.frames(address)
        return innermost_own_frame(frames) or frames[-1]

    def is_final(self, frame: Frame) -> bool:
        """Tell whether nothing more than this frame has can be known of its return address."""
        is_named = frame.address in self._named and frame in self.frames(frame.address)
        return is_named or frame.module == UNLOADED

    def data(self, address: int) -> str | None:
        """Return the name of the data at an address; "" if it has none, None if not known yet."""
        name = self._data.get(address)
        if name is None:
            if self._mapping_of_data(address) is not None:
                self._request("data", self._name_data, address)
            elif self._maps_are_fresh():
                return ""  # heap or stack: no file names it
            else:
                self._unmapped.add(address)
                self._request("maps", self._name_unmapped, 0)
        return name

    def is_of_a_file(self, address: int) -> bool:
        """Tell whether an address belongs to the data of a file, as far as is known.

        Such data stays as long as the file is mapped.
        """
        mapping = self._space.find(address)
        if mapping is None or mapping.is_file:
            return mapping is not None
        # Zeroed data, or memory that follows it by chance.
        return self._mapping_of_data(address) is not None and self.data(address) != ""

    def stack(self, stack: int, addresses: Iterable[int]) -> tuple[Frame, ...]:
        """Return a stack's frames, innermost first, without those of the preload library."""
        frames_of_stack = self._stacks.get(stack)
        if frames_of_stack is not None:
            return frames_of_stack
        # Checked first: the frames may lack a name that is found in between.
        named = all(address in self._named for address in addresses if address)
        every = [frame for address in addresses if address for frame in self.frames(address)]
        frames = program_frames(every)
        if named:
            self._stacks[stack] = frames
        return frames

    def forget(self, stack: int) -> None:
        """Release the frames of a stack that is not used any more."""
        self._stacks.pop(stack, None)

    def wait(self, timeout_s: float = 30.0) -> bool:
        """Wait until all requests are resolved; return whether they were in time."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while not self._is_done():
                left = deadline - time.monotonic()
                if left <= 0 or self._is_hurried:
                    return False
                self._changed.wait_for(self._is_done, min(left, _HURRY_S))
            return True

    def _is_done(self) -> bool:
        return not self._count_requests or self._closed

    @property
    def _count_requests(self) -> int:
        return len(self._functions) + len(self._lines) + len(self._parts) + self._busy

    def count_left(self, with_new: bool = True) -> int:
        """Return how many names are not read yet.

        Args:
            with_new: Whether to count if all of them were requested since the last call. Nearly
                each scan requests some, which the next one has.
        """
        with self._changed:
            left, new, self._new = self._count_requests, self._new, 0
        return left if with_new or left > new else 0

    @contextmanager
    def pause_reading(self) -> Iterator[None]:
        """Read no names meanwhile: only one thread of Python runs at a time."""
        self._held = True
        try:
            yield
        finally:
            with self._changed:
                self._held = False
                self._changed.notify_all()

    def set_reading(self, wanted: bool) -> None:
        """Read names, or read no more and drop what waits. Names that were read stay.

        A later scan requests the dropped names again, if they are wanted by then.
        """
        if self._is_stopped is not wanted:
            return
        with self._changed:
            self._is_stopped = not wanted
            for waiting in (self._functions, self._lines, self._parts):
                waiting.clear()
            self._requested.clear()
            self._frames = {
                address: frames
                for address, frames in self._frames.items()
                if address in self._named or not wanted
            }
            self._changed.notify_all()

    def hurry(self) -> None:
        """End all calls of wait(); names still come. For a signal handler: takes no lock."""
        self._is_hurried = True

    def notes(self) -> list[str]:
        """Return a line for each file whose symbols cannot be read."""
        notes = [*self._notes.values(), *self._jit.notes()]
        return [clean(note, _MAX_NOTE) for note in dict.fromkeys(notes) if note]

    def reread(self) -> None:
        """Read the memory map anew: a library was unloaded, and another may have its addresses.

        Stacks that have names keep them: the names are of that time.
        """
        with self._changed:
            self._map_number += 1
            self._drop_names()
            # The name that is being read is one of the map before.
            self._changed.wait_for(lambda: not self._busy, _LAST_NAME_S)
            self._drop_names()
            self._read_maps()

    def _drop_names(self) -> None:
        for kept in (self._functions, self._lines, self._parts, self._requested, self._unmapped):
            kept.clear()
        self._frames, self._named, self._data, self._modules = {}, set(), {}, {}
        self._vdso = None

    def keep_maps(self) -> None:
        """Read the memory map no more: the process has ended, and another one may get its id."""
        self._keeps_maps = True
        self._jit.read_no_more()

    def close(self) -> None:
        """Stop the thread; known names stay."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    # ---- the queue ----

    def _request(self, what: str, work: Callable[[int], None], address: int) -> None:
        if (what, address) in self._requested or self._closed or self._is_stopped:
            return
        self._requested.add((what, address))
        with self._changed:
            self._new += 1
            self._functions.append(_Work(work, address))
            self._changed.notify_all()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="names", daemon=True)
            self._thread.start()

    def _waiting(self) -> deque[_Work]:
        return self._functions or self._lines or self._parts

    def _run(self) -> None:
        map_number = self._map_number
        while True:
            with self._changed:
                if map_number != self._map_number and self._busy:
                    self._drop_names()  # reading the last name took very long
                self._busy = False
                self._changed.notify_all()
                self._changed.wait_for(self._may_go_on)
                if self._closed:
                    self._jit.close()
                    return
                self._busy = True
                map_number = self._map_number
                work = self._waiting().popleft()
            try:
                work.run(work.address)
            except Exception:  # an error at one address must not stop the others
                self._named.add(work.address)
            self.version += 1
            if not self._waiting():
                _release_memory()

    def _may_go_on(self) -> bool:
        return self._closed or (not self._held and bool(self._waiting()))

    # ---- the work ----

    def _name_frame(self, address: int) -> None:
        mapping = self._mapping(address)
        if mapping is not None and mapping.is_of_the_kernel:
            self._frames[address] = (
                self._unnamed_frame(address, self._kernel_function(mapping, address)),
            )
            self._named.add(address)
            return
        if mapping is None or not mapping.is_code_of_a_file:
            self._name_jitted(address)
            return
        located = self._locate(mapping, address - 1)
        if located is not None:
            from locktop.collector.symbols import kernel_code

            module, link_address = located
            if kernel_code.returns_from_handler(module.elf, link_address + 1):
                named = self._unnamed_frame(address, kernel_code.SIGNAL_FRAME, link_address + 1)
                self._frames[address] = (named,)
                self._named.add(address)
                return
            locations = module.stored_locations(link_address)
            if locations and locations[-1].function:
                self._frames[address] = located_frames(
                    self._unnamed_frame(address, "", link_address + 1), locations
                )
                self._named.add(address)
                return
            symbol = module.function(link_address)
            name = clean(demangle(symbol.name)) if symbol else ""
            self._frames[address] = (self._unnamed_frame(address, name, link_address + 1),)
        self._lines.append(_Work(self._add_locations, address))

    def _kernel_function(self, mapping: Mapping, address: int) -> str:
        from locktop.collector.symbols.kernel_code import VdsoNames

        if self._vdso is None:
            self._vdso = VdsoNames(self._pid)
        return clean(self._vdso.function(mapping, address - 1))

    def _name_jitted(self, address: int) -> None:
        frame = self._jit.frame(address, self._space.mappings)
        tries = self._unnamed_code.pop(address, _CodeTry(0, 0.0)).tries
        if frame is not None:
            self._frames[address] = (frame,)
        elif tries < _TRIES:  # a compiler may name its code later
            self._requested.discard(("frame", address))
            self._unnamed_code[address] = _CodeTry(tries + 1, time.monotonic() + 2**tries)
            return
        self._named.add(address)

    def _add_locations(self, address: int) -> None:
        mapping = self._mapping(address)
        located = self._locate(mapping, address - 1) if mapping and mapping.is_file else None
        if mapping is not None and located is not None:
            module, link_address = located
            locations = module.locations(link_address)
            self._note(self._space.base(mapping), module)
            if locations:
                self._frames[address] = located_frames(self._frames[address][-1], locations)
        self._named.add(address)

    def _name_unmapped(self, _: int) -> None:
        self._refresh_maps()
        self._requested.discard(("maps", 0))
        while self._unmapped:
            self._name_data(self._unmapped.pop())

    def _name_data(self, address: int) -> None:
        mapping = self._mapping_of_data(address)
        if mapping is None:
            self._refresh_maps()
            mapping = self._mapping_of_data(address)
        located = self._locate(mapping, address) if mapping else None
        symbol = located[0].data(located[1]) if located else None
        if symbol is None or located is None:
            self._data[address] = ""
        else:
            module, link_address = located
            name_part = partial(self._name_part, module, link_address, symbol)
            self._parts.append(_Work(name_part, address))

    def _name_part(self, module: Module, link_address: int, symbol: Symbol, address: int) -> None:
        name = clean(demangle(symbol.name))
        file, part = module.part(symbol, link_address) or ("", "")
        if part:
            name = clean(f"{file}: {name}{part}" if file else f"{name}{part}")
        elif link_address != symbol.address:
            name += f"+{link_address - symbol.address:#x}"
        self._data[address] = name

    def _locate(self, mapping: Mapping, address: int) -> tuple[Module, int] | None:
        """Return the module of a mapping and the link-time address; None if there is none."""
        # Here, in the thread: this import takes a third of the time until the first screen.
        from locktop.collector.symbols import modules

        base = self._space.base(mapping)
        if base in self._without_symbols:
            return None
        kept = self._modules.get(base)
        if kept is not None:
            self._note(base, kept.module)
            return None if kept.bias is None else (kept.module, address - kept.bias)
        try:
            module = modules.load(self._pid, base)
        except modules.NoSymbols as why:
            self._without_symbols.add(base)
            if self._space.has_code(base.path):  # else the file has no code
                self._notes[base] = str(why)
            return None
        self._note(base, module)
        bias = module.elf.bias(base.start, base.offset)
        if len(self._modules) >= _MAX_KEPT:
            self._modules.clear()
        self._modules[base] = _KeptModule(module, bias)
        return None if bias is None else (module, address - bias)

    def _note(self, base: Mapping, module: Module) -> None:
        if module.note:
            self._notes[base] = module.note

    # ---- the memory map ----

    def _unnamed_frame(
        self, address: int, function: str = "", link_address: int | None = None
    ) -> Frame:
        mapping = self._space.find(address)
        if mapping is not None and mapping.is_of_the_kernel:
            return _frame(address, function, mapping.path, address - mapping.start)
        if mapping is None or not mapping.is_file:
            return _frame(address, function, "", address)
        if link_address is None:
            link_address = address - mapping.start + mapping.offset
        return _frame(address, function, clean(mapping.path.rpartition("/")[2]), link_address)

    def _mapping(self, address: int) -> Mapping | None:
        mapping = self._space.find(address)
        if mapping is None:
            self._refresh_maps()
            mapping = self._space.find(address)
            self._frames[address] = (self._unnamed_frame(address),)
        return mapping

    def _mapping_of_data(self, address: int) -> Mapping | None:
        mapping = self._space.find(address)
        if mapping is None or mapping.is_file:
            return mapping
        return None if mapping.path else self._space.file_before(address)

    def _maps_are_fresh(self) -> bool:
        return time.monotonic() - self._space_at < MAPS_AGE_S

    def _refresh_maps(self) -> None:
        if not self._keeps_maps and not self._maps_are_fresh():
            self._read_maps()

    def _read_maps(self) -> None:
        self._space_at = time.monotonic()
        self._modules = {}
        try:
            mappings = parse(procfs.maps(self._pid))
        except OSError:
            return
        if mappings:  # an exiting process has none: the old ones stay
            self._space = AddressSpace(mappings)


def _frame(address: int, function: str, module: str, offset: int) -> Frame:
    return Frame(
        address=address, function=function, file=None, line=None, module=module, offset=offset
    )


def _release_memory() -> None:
    from locktop.collector.symbols import modules

    modules.release_memory()
