"""Names for addresses, worked out in a thread of its own: a look never waits for them.

``frames()`` and ``data()`` answer at once with what is known. What is not known yet is put in line;
functions come first, source lines, which take longer, after them.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from locktop.collector.linux import procfs
from locktop.collector.model import Frame
from locktop.collector.model.frames import whose
from locktop.collector.native import lib
from locktop.collector.sanitize import clean
from locktop.collector.symbols.demangle import demangle
from locktop.collector.symbols.jit.jit_code import JitCode
from locktop.collector.symbols.memory_map import AddressSpace, Mapping, parse

if TYPE_CHECKING:
    from locktop.collector.symbols.dwarf.unit_index import Place
    from locktop.collector.symbols.elf.symbol_table import Symbol
    from locktop.collector.symbols.modules import Module

#: Where a thread's or a program's own calls end: what the unwinder saw beyond is not real.
_OUTERMOST = frozenset({"clone", "__clone", "clone3", "__clone3", "_start", "__clone_internal"})
_LIBRARY = "liblocktop"
_LONGEST_NOTE = 1000  # characters; a path alone may have more than most names
_TRIES = 6  # for a name of code in no file, after 1, 2, 4, ... seconds
_HURRY_S = 0.1  # so soon hurry() is heard
_MAPS_AGE_S = 1.0  # a library loaded later is noticed this much later at most


class Resolver:
    """Names for one process."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._space = AddressSpace([])
        self._space_at = 0.0
        self._frames: dict[int, tuple[Frame, ...]] = {}
        self._named: set[int] = set()  # addresses that need no further work
        self._data: dict[int, str] = {}
        self._stacks: dict[int, tuple[Frame, ...]] = {}
        self._without: set[Mapping] = set()  # files without symbols
        self._notes: dict[Mapping, str] = {}  # why, or what is damaged in others
        self._jit = JitCode(pid)
        self._unnamed_code: dict[int, tuple[int, float]] = {}  # how often tried, when again
        self._asked: set[tuple[str, int]] = set()
        self._soon: deque[tuple[Callable[[int], None], int]] = deque()
        self._later: deque[tuple[Callable[[int], None], int]] = deque()
        self._last: deque[tuple[Callable[[int], None], int]] = deque()  # what takes longest
        self._changed = threading.Condition()
        self.version = 0  # grows with every name found
        self._busy = False
        self._closed = False
        self._hurried = False
        self._keeps_maps = False
        self._thread: threading.Thread | None = None
        self._read_maps()

    # ---- what looks call ----

    def frames(self, address: int) -> tuple[Frame, ...]:
        """Return a return address's frames as far as they are known, innermost first: those of
        functions that were inlined, then the one of the function that the call lies in."""
        found = self._frames.get(address)
        if found is None and address >> lib.LT_UNLOADED_BIT:
            found = self._frames[address] = (_unloaded(address),)
            self._named.add(address)
        if found is None or self._is_to_be_tried_again(address):
            found = self._frames[address] = (self._unnamed(address),)
            self._ask("frame", self._name_frame, address)
        return found

    def _is_to_be_tried_again(self, address: int) -> bool:
        if address not in self._unnamed_code or ("frame", address) in self._asked:
            return False
        return time.monotonic() >= self._unnamed_code[address][1]

    def frame(self, address: int) -> Frame:
        """Return a return address's innermost frame as far as it is known."""
        return self.frames(address)[0]

    def site(self, address: int) -> Frame:
        """Return the frame that tells whose call this is: the innermost that is no wrapper."""
        frames = self.frames(address)
        return whose(frames) or frames[-1]

    def is_nameless(self, address: int) -> bool:
        """Tell whether it is known that no function's name will be found for a return address."""
        return address in self._named and not self.frame(address).function

    def data(self, address: int) -> str | None:
        """Return the name of the data at the address, "" if it has none, None if not known yet."""
        found = self._data.get(address)
        if found is None:
            if self._mapping_of_data(address) is None and self._maps_are_fresh():
                return ""  # heap or stack: no file could name it
            self._ask("data", self._name_data, address)
        return found

    def is_of_a_file(self, address: int) -> bool:
        """Tell whether the address belongs to the data of a file, as far as is known: what lies
        there stays as long as the file is mapped."""
        mapping = self._space.find(address)
        if mapping is None or mapping.is_file:
            return mapping is not None
        # Zeroed data, or memory that happens to follow it.
        return self._mapping_of_data(address) is not None and self.data(address) != ""

    def stack(self, stack: int, addresses: Iterable[int]) -> tuple[Frame, ...]:
        """Return a stack's frames, innermost first, without the library's own."""
        known = self._stacks.get(stack)
        if known is not None:
            return known
        # Asked before: what is named in between is not in the frames yet.
        named = all(address in self._named for address in addresses if address)
        every = [frame for address in addresses if address for frame in self.frames(address)]
        frames = as_the_program_knows_it(every)
        if named:
            self._stacks[stack] = frames
        return frames

    def forget(self, stack: int) -> None:
        """Keep a stack's frames no longer: nobody asks for them again."""
        self._stacks.pop(stack, None)

    def wait(self, timeout_s: float = 30.0) -> bool:
        """Wait until everything asked for is worked out; return whether it was in time."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while not self._done():
                left = deadline - time.monotonic()
                if left <= 0 or self._hurried:
                    return False
                self._changed.wait_for(self._done, min(left, _HURRY_S))
            return True

    def _done(self) -> bool:
        return not self._has_work() or self._closed

    def hurry(self) -> None:
        """Let nobody wait any more; names still come. For a handler of signals: takes no lock."""
        self._hurried = True

    def notes(self) -> list[str]:
        """Return a line for each file whose symbols cannot be read."""
        notes = [*self._notes.values(), *self._jit.notes()]
        return [clean(note, _LONGEST_NOTE) for note in dict.fromkeys(notes) if note]

    def read_anew(self) -> None:
        """Forget what lies where: a library was unloaded, and another may be in its place.

        The stacks that were named before keep their names: they are of that time.
        """
        with self._changed:
            self._soon.clear()
            self._later.clear()
            self._last.clear()
            self._asked.clear()
            self._frames, self._named, self._data = {}, set(), {}
            self._read_maps()

    def keep_maps(self) -> None:
        """Read the maps no more: the process has ended, and another may come to its id."""
        self._keeps_maps = True
        self._jit.read_no_more()

    def close(self) -> None:
        """Stop the thread; names found stay."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    # ---- the line ----

    def _ask(self, what: str, work: Callable[[int], None], address: int) -> None:
        if (what, address) in self._asked or self._closed:
            return
        self._asked.add((what, address))
        with self._changed:
            self._soon.append((work, address))
            self._changed.notify_all()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="names", daemon=True)
            self._thread.start()

    def _has_work(self) -> bool:
        return bool(self._waiting() or self._busy)

    def _waiting(self) -> deque[tuple[Callable[[int], None], int]]:
        return self._soon or self._later or self._last

    def _run(self) -> None:
        while True:
            with self._changed:
                self._busy = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._waiting() or self._closed)
                if self._closed:
                    self._jit.close()
                    return
                self._busy = True
                work, address = self._waiting().popleft()
            try:
                work(address)
            except Exception:  # one address without a name must not cost all others theirs
                self._named.add(address)
            self.version += 1
            if not self._waiting():
                _rest()

    # ---- the work ----

    def _name_frame(self, address: int) -> None:
        mapping = self._mapping(address)
        if mapping is not None and mapping.is_of_the_kernel:
            self._named.add(address)
            return
        if mapping is None or not mapping.is_code_of_a_file:
            self._name_jitted(address)
            return
        located = self._locate(mapping, address - 1)
        if located is not None:
            module, link_address = located
            places = module.kept_places(link_address)
            if places and places[-1].function:
                self._frames[address] = _placed(
                    self._unnamed(address, "", link_address + 1), places
                )
                self._named.add(address)
                return
            symbol = module.function(link_address)
            name = clean(demangle(symbol.name)) if symbol else ""
            self._frames[address] = (self._unnamed(address, name, link_address + 1),)
        self._later.append((self._add_places, address))

    def _name_jitted(self, address: int) -> None:
        frame = self._jit.frame(address, self._space.mappings)
        tries, _ = self._unnamed_code.pop(address, (0, 0.0))
        if frame is not None:
            self._frames[address] = (frame,)
        elif tries < _TRIES:  # what a compiler says about its code may come later
            self._asked.discard(("frame", address))
            self._unnamed_code[address] = tries + 1, time.monotonic() + 2**tries
            return
        self._named.add(address)

    def _add_places(self, address: int) -> None:
        mapping = self._mapping(address)
        located = self._locate(mapping, address - 1) if mapping and mapping.is_file else None
        if mapping is not None and located is not None:
            module, link_address = located
            places = module.places(link_address)
            self._note(self._space.base(mapping), module)
            if places:
                self._frames[address] = _placed(self._frames[address][-1], places)
        self._named.add(address)

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
            self._last.append((partial(self._name_part, *located, symbol), address))

    def _name_part(self, module: Module, link_address: int, symbol: Symbol, address: int) -> None:
        name = clean(demangle(symbol.name))
        file, part = module.part(symbol, link_address) or ("", "")
        if part:
            name = clean(f"{file}: {name}{part}" if file else f"{name}{part}")
        elif link_address != symbol.address:
            name += f"+{link_address - symbol.address:#x}"
        self._data[address] = name

    def _locate(self, mapping: Mapping, address: int) -> tuple[Module, int] | None:
        """Return the module and the link-time address."""
        # Here, in the thread: what reads files takes a third of the time to import to the picture.
        from locktop.collector.symbols import modules

        base = self._space.base(mapping)
        if base in self._without:
            return None
        try:
            module = modules.load(self._pid, base)
        except modules.NoSymbols as why:
            self._without.add(base)
            if self._space.has_code(base.path):  # else there were no symbols to be had
                self._notes[base] = str(why)
            return None
        self._note(base, module)
        bias = module.elf.bias(base.start, base.offset)
        return None if bias is None else (module, address - bias)

    def _note(self, base: Mapping, module: Module) -> None:
        if module.note:
            self._notes[base] = module.note

    # ---- the memory map ----

    def _unnamed(self, address: int, function: str = "", link_address: int | None = None) -> Frame:
        mapping = self._space.find(address)
        if mapping is not None and mapping.is_of_the_kernel:
            return Frame(address, function, None, None, mapping.path, address - mapping.start)
        if mapping is None or not mapping.is_file:
            return Frame(address, function, None, None, "", address)
        if link_address is None:
            link_address = address - mapping.start + mapping.offset
        module = clean(mapping.path.rpartition("/")[2])
        return Frame(address, function, None, None, module, link_address)

    def _mapping(self, address: int) -> Mapping | None:
        found = self._space.find(address)
        if found is None:
            self._refresh_maps()
            found = self._space.find(address)
            self._frames[address] = (self._unnamed(address),)
        return found

    def _mapping_of_data(self, address: int) -> Mapping | None:
        mapping = self._space.find(address)
        if mapping is None or mapping.is_file:
            return mapping
        return None if mapping.path else self._space.file_before(address)

    def _maps_are_fresh(self) -> bool:
        return time.monotonic() - self._space_at < _MAPS_AGE_S

    def _refresh_maps(self) -> None:
        if not self._keeps_maps and not self._maps_are_fresh():
            self._read_maps()

    def _read_maps(self) -> None:
        self._space_at = time.monotonic()
        try:
            mappings = parse(procfs.maps(self._pid))
        except OSError:
            return
        if mappings:  # of a process that is exiting there are none: the old ones serve longer
            self._space = AddressSpace(mappings)


def _rest() -> None:
    from locktop.collector.symbols import modules

    modules.rest()


def _unloaded(address: int) -> Frame:
    was_at = address & ((1 << lib.LT_UNLOADED_BIT) - 1)
    return Frame(was_at, "", None, None, "unloaded library", was_at)


def _placed(frame: Frame, places: tuple[Place, ...]) -> tuple[Frame, ...]:
    """Return the frames that a frame is made of, each at its place."""
    last = len(places) - 1
    return tuple(
        replace(
            frame,
            function=clean(demangle(place.function)) or (frame.function if number == last else ""),
            file=clean(place.file) if place.line else None,
            line=place.line or None,
            inlined=number < last,
        )
        for number, place in enumerate(places)
    )


def as_the_program_knows_it(frames: list[Frame]) -> tuple[Frame, ...]:
    """Return a stack without the frames of the library and those beyond the thread's start."""
    kept: list[Frame] = []
    for frame in frames:
        if frame.module.startswith(_LIBRARY):
            continue
        kept.append(frame)
        if frame.function in _OUTERMOST:
            break
    return tuple(kept)
