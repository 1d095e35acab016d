"""Names for addresses: maps, ELF symbols, DWARF lines, demangling, of programs built here."""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import shutil
import subprocess
import sys
import threading
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from locktop.collector.linux import procfs
from locktop.collector.model import Frame, Kind
from locktop.collector.symbols import memory_map, modules
from locktop.collector.symbols.dwarf.reader import Dwarf
from locktop.collector.symbols.elf.bounded_file import InMemory
from locktop.collector.symbols.elf.file import ElfFile
from locktop.collector.symbols.elf.symbol_table import Symbol
from locktop.collector.symbols.lock_naming import LockIdentity, LockNames, LockStacks
from locktop.collector.symbols.resolver import Resolver
from locktop.collector.symbols.stack_frames import program_frames
from locktop.tui.views import shorten

# Prints its addresses, then waits for the end of its input.
SOURCE = """\
#include <pthread.h>
#include <stdio.h>
pthread_mutex_t g_cache_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t in_bss[4];
struct { int count; pthread_mutex_t lock; } g_data = {1, PTHREAD_MUTEX_INITIALIZER};
__attribute__((noinline)) static void *here(void)
{
    return __builtin_return_address(0);
}
int main(void)
{
    void *address = here();
    printf("%p %p %p %p\\n", address, (void *)&g_cache_lock, (void *)&in_bss[1],
           (void *)&g_data.lock);
    fflush(stdout);
    return getchar();
}
"""
LINE_OF_THE_CALL = 12


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The program with DWARF, with symbols only, and stripped."""
    directory = tmp_path_factory.mktemp("symbols")
    (directory / "cache.c").write_text(SOURCE)
    programs = {}
    for kind, flags in (("dwarf", ["-g"]), ("symbols", []), ("stripped", ["-s"])):
        programs[kind] = directory / kind
        command = ["cc", "-O1", "-pie", "-fPIE", *flags, "-o", str(programs[kind]), "cache.c"]
        subprocess.run(command, cwd=directory, check=True)
    return programs


class Running:
    """The program, and the addresses that it printed."""

    def __init__(self, path: Path) -> None:
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        printed = [int(word, 16) for word in self.process.stdout.readline().split()]
        self.site, self.cache_lock, self.bss_lock, self.data_lock = printed

    def stop(self) -> None:
        self.process.communicate()


@pytest.fixture
def running(request: pytest.FixtureRequest, built: dict[str, Path]) -> Iterator[Running]:
    program = Running(built[request.param])
    yield program
    program.stop()


def resolved(resolver: Resolver, address: int) -> Frame:
    resolver.frame(address)
    assert resolver.wait()
    return resolver.frame(address)


@pytest.mark.parametrize("running", ["dwarf"], indirect=True)
def test_an_address_has_function_file_line_and_data(running: Running) -> None:
    resolver = Resolver(running.process.pid)
    first = resolver.frame(running.site)
    assert (first.function, first.module) == ("", "dwarf")
    frame = resolved(resolver, running.site)
    assert (frame.function, frame.file, frame.line) == ("main", "cache.c", LINE_OF_THE_CALL)
    for address in (running.cache_lock, running.bss_lock, running.data_lock):
        assert resolver.data(address) is None
    assert resolver.wait()
    assert resolver.data(running.cache_lock) == "g_cache_lock"
    assert resolver.data(running.bss_lock) == "cache.c: in_bss[1]"
    assert resolver.data(running.data_lock) == "cache.c: g_data.lock"
    resolver.close()


@pytest.mark.parametrize("running", ["dwarf"], indirect=True)
def test_a_stack_has_its_lines_before_variables_are_searched(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search for a variable reads all debug information."""
    resolver, lines = Resolver(running.process.pid), []
    part = modules.Module.part

    def scan(module: modules.Module, symbol: Symbol, address: int) -> tuple[str, str] | None:
        lines.append(resolver.frame(running.site).line)
        return part(module, symbol, address)

    monkeypatch.setattr(modules.Module, "part", scan)
    both, load = threading.Event(), modules.load

    def load_later(pid: int, mapping: memory_map.Mapping) -> modules.Module:
        assert both.wait(60)
        return load(pid, mapping)

    monkeypatch.setattr(modules, "load", load_later)
    resolver.data(running.bss_lock)
    resolver.frame(running.site)
    both.set()
    assert resolver.wait()
    assert lines == [LINE_OF_THE_CALL]
    resolver.close()


@pytest.mark.parametrize("running", ["symbols"], indirect=True)
def test_a_program_without_dwarf_has_functions_and_no_lines(running: Running) -> None:
    resolver = Resolver(running.process.pid)
    for address in (running.bss_lock, running.data_lock):
        assert resolver.data(address) is None
    frame = resolved(resolver, running.site)
    assert (frame.function, frame.file, frame.line) == ("main", None, None)
    assert resolver.data(running.bss_lock) == "in_bss+0x28"
    assert resolver.data(running.data_lock) == "g_data+0x8"


@pytest.mark.parametrize("running", ["stripped"], indirect=True)
def test_a_program_without_symbols_has_module_and_offset(running: Running) -> None:
    resolver = Resolver(running.process.pid)
    frame = resolved(resolver, running.site)
    assert (frame.function, frame.module) == ("", "stripped")
    assert 0 < frame.offset < 0x10000
    assert resolver.data(running.cache_lock) is None
    assert resolver.wait()
    assert resolver.data(running.cache_lock) == ""


def test_a_replaced_program_is_not_read_for_the_old_program(
    built: dict[str, Path], tmp_path: Path
) -> None:
    path = tmp_path / "program"
    shutil.copy(built["dwarf"], path)
    running = Running(path)
    path.unlink()
    shutil.copy(built["stripped"], path)
    frame = resolved(Resolver(running.process.pid), running.site)
    # Root reads the old file through the map; other users get the address. None reads the new file.
    assert frame.function in ("main", "")
    assert frame.module == "program"
    if os.geteuid() == 0:
        assert frame.function == "main"
    running.stop()


def test_anonymous_memory_has_no_name() -> None:
    resolver = Resolver(os.getpid())
    heap = id(object())
    assert resolver.data(heap) in ("", None)
    assert resolved(resolver, 0x10).module == ""


def test_names_outlive_the_process(built: dict[str, Path]) -> None:
    running = Running(built["dwarf"])
    resolver = Resolver(running.process.pid)
    running.stop()
    assert resolved(resolver, running.site).function == "main"


def test_stacks_omit_frames_of_the_library_and_before_the_start() -> None:
    frames = [
        Frame(n, function, None, None, module, n)
        for n, (function, module) in enumerate(
            [("", "liblocktop.so"), ("put", "x"), ("start", "liblocktop.so"),
             ("start_thread", "libc.so.6"), ("clone3", "libc.so.6"), ("", "")]
        )
    ]  # fmt: skip
    kept = program_frames(frames)
    assert [frame.function for frame in kept] == ["put", "start_thread", "clone3"]


def test_damaged_elf_and_dwarf_raise_value_errors_alone(built: dict[str, Path]) -> None:
    whole = built["dwarf"].read_bytes()
    chance = random.Random(3)
    refused = named = 0
    for _ in range(150):
        data = bytearray(
            whole[: chance.choice((len(whole), len(whole), chance.randrange(len(whole))))]
        )
        for _ in range(chance.choice((1, 8, 200))):
            if data:
                data[chance.randrange(len(data))] = chance.randrange(256)
        try:
            file = ElfFile(InMemory(bytes(data)))
        except ValueError:
            refused += 1
            continue
        for address in range(0x1000, 0x1400, 16):
            with contextlib.suppress(ValueError):
                named += bool(file.functions and file.functions.find(address))
                assert file.objects is None or not file.objects.find(1)
            Dwarf(file, lambda _: "").find(address)
            break
    assert refused
    assert refused < 150


def test_each_line_of_a_memory_map_is_parsed() -> None:
    data = (
        b"1000-2000 r-xp 00000000 fe:00 42 /usr/bin/a b (deleted)\n"
        b"2000-3000 rw-p 00001000 fe:00 42 /usr/bin/a b (deleted)\n"
        b"3000-4000 rw-p 00000000 00:00 0 \n"
        b"8000-9000 rw-p 00000000 00:00 0 [heap]\n"
        b"nonsense\n"
        b"9000-a000 r--p 00000000 fe:00 7 /new\\012line\n"
    )
    space = memory_map.AddressSpace(memory_map.parse(data))
    found = space.find(0x1800)
    assert found is not None
    assert (found.path, found.deleted, found.executable) == ("/usr/bin/a b", True, True)
    assert space.find(0x5000) is None
    bss = space.file_before(0x3800)
    assert bss is not None
    assert space.base(bss) is found
    assert space.file_before(0x8800) is None
    assert [m.path for m in space.mappings][-1] == "/new\nline"


@pytest.mark.parametrize("begins", ["0000", "2000"])
def test_an_adjacent_second_mapping_is_not_the_begin_of_the_file(begins: str) -> None:
    """The kernel may map a file again just below its first mapping.

    A program that names its own functions maps its libraries; a program that reads only headers
    maps one page.
    """
    data = (
        b"7f000000%s-7f0000003000 r--p 00000000 fe:00 7 /lib/b\n"
        b"7f0000003000-7f0000004000 r--p 00000000 fe:00 7 /lib/b\n"
        b"7f0000004000-7f0000005000 r-xp 00001000 fe:00 7 /lib/b\n"
        b"7f0000005000-7f0000006000 rw-p 00002000 fe:00 7 /lib/b\n"
    ) % begins.encode()
    space = memory_map.AddressSpace(memory_map.parse(data))
    copy, beginning, code, data_ = space.mappings
    assert [space.base(one) for one in (beginning, code, data_)] == [beginning] * 3
    assert space.base(copy) is copy


def test_two_parts_of_a_small_program_may_lie_in_its_first_page() -> None:
    data = (
        b"400000-401000 r-xp 00000000 fe:00 42 /usr/bin/a\n"
        b"600000-601000 rw-p 00000000 fe:00 42 /usr/bin/a\n"
        b"7f0000000000-7f0000001000 r-xp 00000000 fe:00 7 /lib/b\n"
        b"7f0000001000-7f0000002000 rw-p 00001000 fe:00 7 /lib/b\n"
        b"7f0000002000-7f0000003000 r-xp 00000000 fe:00 7 /lib/b\n"
        b"7f0000003000-7f0000004000 rw-p 00001000 fe:00 7 /lib/b\n"
    )
    space = memory_map.AddressSpace(memory_map.parse(data))
    program, _, first, _, second, _ = space.mappings
    bases = [space.base(mapping) for mapping in space.mappings]
    assert bases == [program, program, first, first, second, second]


@pytest.mark.parametrize(("flags", "noted"), [(b"rw-s", False), (b"r-xp", True)])
def test_only_a_file_with_code_gets_a_note_for_missing_symbols(
    flags: bytes, noted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory for threads and heaps may follow the file that the library maps."""
    data = (
        b"1000-2000 " + flags + b" 00000000 00:19 42 /dev/shm/locktop-7-1\n"
        b"2000-3000 rw-p 00000000 00:00 0 \n"
    )
    monkeypatch.setattr(procfs, "read", lambda _: data)
    resolver = Resolver(4_000_000)
    for address in (0x1800, 0x2800):
        resolver.data(address)
    assert resolver.wait()
    assert [resolver.data(address) for address in (0x1800, 0x2800)] == ["", ""]
    cannot = ["no symbols from /dev/shm/locktop-7-1: it cannot be read"]
    assert resolver.notes() == (cannot if noted else [])
    resolver.close()


def test_the_memory_map_of_this_process_is_parsed_whole() -> None:
    data = Path("/proc/self/maps").read_bytes()
    parsed = memory_map.parse(data)
    assert len(parsed) == len(data.splitlines())
    executable = os.path.realpath(sys.executable)
    assert any(mapping.path == executable for mapping in parsed)


# Characters that could harm a terminal, a text, a document or the markup of the screen.
EVIL = "evil\x1b[31m\x1b]0;t\x07[bold]\n\u202ex<b>&\u200b\x9b2J\udcff"


@pytest.mark.parametrize("size", [12, 3000, 30_000])
def test_harmful_names_are_sanitized(size: int, tmp_path: Path) -> None:
    filling = "std::map<int, " * (size // 14)
    evil = f"_begin {EVIL} {filling} {EVIL} end_"
    (tmp_path / "a.c").write_text(
        "#include <stdio.h>\n__attribute__((noinline)) void there(void)\n"
        '{ printf("%p 0 0 0\\n", __builtin_return_address(0)); fflush(stdout); getchar(); }\n'
        '__attribute__((noinline)) void evil(void) { there(); puts(""); }\n'
        "int main(void) { evil(); return 0; }\n"
    )
    named = b"--redefine-sym=evil=" + evil.encode("utf-8", "surrogateescape")
    for command in (["cc", "-O1", "-o", "a", "a.c"], ["objcopy", named, "a"]):
        subprocess.run(command, cwd=tmp_path, check=True)
    running = Running(tmp_path / "a")
    name = resolved(Resolver(running.process.pid), running.site).function
    running.stop()
    assert name.startswith("_begin evil")
    assert name.endswith(" end_")
    assert len(name) <= 4096
    assert ("…" in name) == (size > 4096)
    assert all(unicodedata.category(character)[0] not in "C" for character in name)
    assert name.count("[bold]") == 2, "markup stays plain text"
    short = shorten.middle(name, 40)
    assert (short[:6], short[-5:]) == ("_begin", " end_")


def lock_name(
    names: LockNames, id_: int, kind: Kind, address: int, stack: Callable[[], Sequence[Frame]]
) -> str:
    """Return the name of a lock whose waits have this stack."""
    return names.name(LockIdentity(id_, 0, kind, address), LockStacks(most_wait=stack))


@pytest.mark.parametrize("running", ["dwarf"], indirect=True)
def test_a_lock_without_a_symbol_is_named_by_its_wait(running: Running) -> None:
    resolver = Resolver(running.process.pid)
    names = LockNames(resolver)
    wrapped = (
        Frame(1, "std::mutex::lock", "mutex", 9, "x", 1),
        Frame(2, "put", "cache.c", 42, "x", 2),
    )
    unmapped = 0x10
    assert lock_name(names, 1, Kind.MUTEX, unmapped, lambda: wrapped) == "mutex in put (cache.c:42)"
    assert lock_name(names, 2, Kind.RWLOCK, unmapped, tuple) == "rwlock 0x10"
    lock_name(names, 3, Kind.MUTEX, running.cache_lock, lambda: wrapped)
    assert resolver.wait()
    assert lock_name(names, 3, Kind.MUTEX, running.cache_lock, lambda: wrapped) == "g_cache_lock"


def test_a_site_is_the_innermost_frame_that_is_no_wrapper(monkeypatch: pytest.MonkeyPatch) -> None:
    resolver = Resolver(4_000_000)
    gthread = Frame(1, "__gthread_mutex_lock", "gthr-default.h", 749, "x", 1, inlined=True)
    lock = Frame(1, "std::mutex::lock", "std_mutex.h", 100, "x", 1, inlined=True)
    put = Frame(1, "put", "cache.cc", 42, "x", 1)
    monkeypatch.setattr(resolver, "frames", lambda address: (gthread, lock, put))
    assert resolver.frame(1) is gthread
    assert resolver.site(1) is put
    monkeypatch.setattr(resolver, "frames", lambda address: (gthread, lock))
    assert resolver.site(1) is lock, "all of them are wrappers"


@pytest.mark.parametrize("running", ["stripped"], indirect=True)
def test_a_wait_in_a_nameless_frame_does_not_name_the_lock_by_the_caller(
    running: Running,
) -> None:
    resolver, idle = Resolver(running.process.pid), Resolver(running.process.pid)
    idle.close()

    def stack() -> tuple[Frame, ...]:
        return (
            Frame(1, "pthread_mutex_lock", None, None, "libc.so.6", 1),
            Frame(2, "", None, None, "libpthread.so.0", 2),
            resolver.frame(running.site),
            Frame(4, "event_base_loop", "event.c", 9, "libevent.so", 4),
        )

    idle.frame(running.site)
    pending = lock_name(LockNames(idle), 1, Kind.MUTEX, 0x10, stack)
    assert pending == "mutex 0x10", "a name may still come"
    frame = resolved(resolver, running.site)
    expected = f"mutex in stripped+{frame.offset:#x}"
    assert lock_name(LockNames(resolver), 1, Kind.MUTEX, 0x10, stack) == expected
    resolver.close()


@pytest.mark.parametrize("running", ["dwarf"], indirect=True)
def test_a_python_lock_is_named_by_the_waiting_python_function(
    running: Running,
) -> None:
    resolver = Resolver(running.process.pid)
    names = LockNames(resolver)
    native = (
        Frame(1, "PyThread_acquire_lock_timed", "thread_pthread.h", 497, "python3.11", 1),
        Frame(2, "lock_PyThread_acquire_lock", "_threadmodule.c", 179, "python3.11", 2),
        Frame(3, "_PyEval_EvalFrameDefault", "ceval.c", 4769, "python3.11", 3),
    )
    merged = (
        Frame(3, "wait", "threading.py", 327, "python", 0),
        Frame(3, "get", "queue.py", 171, "python", 0),
        Frame(3, "task", "app.py", 23, "python", 0),
    )
    known: list[tuple[Frame, ...]] = [()]

    def name(lock: int) -> str:
        stacks = LockStacks(most_wait=lambda: native, waiter=lambda: known[0])
        return names.name(LockIdentity(lock, 0, Kind.SEM, 0x10), stacks)

    assert name(1) == "sem 0x10", "no function that takes every lock names a lock"
    known[0] = merged[:2]
    assert name(1) == "sem 0x10"
    known[0] = merged
    assert name(1) == "Lock in task (app.py:23)"
    known[0] = ()
    assert name(1) == "Lock in task (app.py:23)", "the lock keeps its name"
    assert name(2) == "sem 0x10"
    names = LockNames(resolver, generations=False)
    known[0] = merged
    assert name(1) == "Lock in task (app.py:23)"
    known[0] = ()
    assert name(1) == "sem 0x10", "each wait for a condition makes a lock, perhaps at this address"
    known[0] = merged[2:]
    assert name(1) == "Lock in task (app.py:23)"
    known[0] = ()
    assert name(1) == "Lock in task (app.py:23)"
    resolver.close()


@pytest.mark.parametrize("running", ["dwarf"], indirect=True)
def test_names_found_during_a_stack_are_in_the_next_stack(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolver = Resolver(running.process.pid)
    frames = resolver.frames

    def and_then_it_is_named(address: int) -> tuple[Frame, ...]:
        found = frames(address)
        assert resolver.wait()
        return found

    monkeypatch.setattr(resolver, "frames", and_then_it_is_named)
    assert [frame.function for frame in resolver.stack(1, [running.site])] == [""]
    assert [frame.function for frame in resolver.stack(1, [running.site])] == ["main"]
    resolver.close()


def test_the_module_of_kernel_code_is_vdso() -> None:
    vdso = next(m for m in memory_map.parse(procfs.maps(os.getpid())) if m.path == "[vdso]")
    with contextlib.closing(Resolver(os.getpid())) as resolver:
        resolver.frame(vdso.start + 0x10)
        assert resolver.wait()
        found = resolver.frame(vdso.start + 0x10)
    assert (found.module, found.offset, found.function) == ("[vdso]", 0x10, "")


def test_no_name_is_read_while_the_user_has_stopped_the_reading() -> None:
    resolver = Resolver(os.getpid())
    try:
        address = ctypes.cast(ctypes.CDLL("libc.so.6").malloc, ctypes.c_void_p).value
        assert address is not None
        resolver.set_reading(False)
        assert resolver.frame(address + 4).function == ""
        assert resolver.count_left() == 0
        assert resolver.wait(0.0), "nothing is waited for"
        resolver.set_reading(True)
        resolver.frame(address + 4)
        assert resolver.wait()
        assert "malloc" in resolver.frame(address + 4).function
        resolver.set_reading(False)
        assert "malloc" in resolver.frame(address + 4).function, "a name that was read stays"
    finally:
        resolver.close()
