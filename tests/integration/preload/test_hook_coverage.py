"""The library interposes every lock or wait function of libc, or has a reason not to."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerDefSection, GNUVerSymSection
from elftools.elf.sections import SymbolTableSection

from locktop.collector.sources.launch import preload_environment

HOOKS = Path(__file__).resolve().parents[3] / "native" / "src" / "interpose" / "hooks.def"

#: The functions of threads and their locks.
THREADS = re.compile(r"_*(pthread|sem|mtx|cnd|thrd|tss)_|call_once$")
#: Words in the names of other functions that may lock or wait.
LOCKS_OR_WAITS = re.compile(
    r"(?<!c)lock|wait|once|join|futex|barrier|semaphore|latch|park|sleep|p?poll|select|suspend|pause"
    r"|^sem(timed)?op$|^msg(rcv|snd)$|mq_.*(receive|send)|^lio_listio|^syscall$"
)
#: Functions that match and do neither. Extend this list only after reading what a function does.
NEITHER = re.compile(
    r"_*pthread_(mutex|rwlock|cond|barrier)?attr_\w+|pthread_[gs]etattr(_default)?_np"
    r"|_*pthread_(key_(create|delete)|[gs]etspecific)|tss_\w+"
    r"|_*pthread_(cleanup_\w+|(un)?register_cancel\w*|unwind_next)"
    r"|pthread_(cancel|testcancel|setcancel(state|type)|sigmask|sigqueue|kill(_other_threads_np)?)"
    r"|pthread_([gs]et(affinity_np|concurrency|schedparam)|setschedprio|getcpuclockid|getname_np)"
    r"|pthread_(atfork|equal|self|yield)"
    r"|\w+_unlocked(_chk)?|_IO_peekc_locked|__fsetlocking|unlockpt|m(un)?lock(2|all)?"
    r"|epoll_c(reate1?|tl)|sigblock|__rpc_thread_svc_\w+|svc_getreq_poll|xdr_des_block"
)

#: Exports that others call: native/src/interpose/address_sanitizer.c.
NO_HOOKS = {"__asan_default_options"}


def exports(path: str) -> dict[str, dict[str, int]]:
    """Return the address of each version of each function that a library exports."""
    found: dict[str, dict[str, int]] = {}
    with open(path, "rb") as file:
        elf = ELFFile(file)
        versions = elf.get_section_by_name(".gnu.version")
        definitions = elf.get_section_by_name(".gnu.version_d")
        symbols = elf.get_section_by_name(".dynsym")
        assert isinstance(versions, GNUVerSymSection)
        assert isinstance(definitions, GNUVerDefSection)
        assert isinstance(symbols, SymbolTableSection)
        names = {
            version["vd_ndx"]: next(names).name for version, names in definitions.iter_versions()
        }
        for index, symbol in enumerate(symbols.iter_symbols()):
            if symbol["st_shndx"] == "SHN_UNDEF" or symbol["st_info"]["type"] not in (
                "STT_FUNC",
                "STT_GNU_IFUNC",
            ):
                continue
            number = versions.get_symbol(index)["ndx"]
            version = names[number & 0x7FFF] if isinstance(number, int) else ""
            found.setdefault(symbol.name, {})[version] = symbol["st_value"]
    return found


def may_lock_or_wait(name: str) -> bool:
    """Return whether a function must be in hooks.def."""
    found = THREADS.match(name) or LOCKS_OR_WAITS.search(name)
    return bool(found) and not NEITHER.fullmatch(name)


@pytest.fixture(scope="module")
def libc() -> dict[str, dict[str, int]]:
    """The functions that libc exports to programs."""
    with open("/proc/self/maps") as maps:
        path = next(line.split()[-1] for line in maps if line.rstrip().endswith("/libc.so.6"))
    found = {
        name: {version: at for version, at in versions.items() if version != "GLIBC_PRIVATE"}
        for name, versions in exports(path).items()
    }
    return {name: versions for name, versions in found.items() if versions}


@pytest.fixture(scope="module")
def library() -> dict[str, dict[str, int]]:
    """The functions that the library interposes: all exports except those of locktop.h."""
    found = exports(preload_environment()["LD_PRELOAD"])
    return {name: versions for name, versions in found.items() if not name.startswith("locktop_")}


def listed(pattern: str) -> set[str]:
    """Return the names in all lines of hooks.def that match."""
    return set(re.findall(rf"^{pattern}", HOOKS.read_text(), re.MULTILINE))


def interposed() -> set[str]:
    return listed(r"HOOK(?:_VERSION)?\([^,]+, (\w+)") | listed(r"HOOK_ALIAS\((\w+), ")


def left_alone() -> set[str]:
    return listed(r'LEFT_ALONE\((\w+), ".+"\)$')


def test_each_lock_or_wait_function_is_in_the_list_of_hooks(
    libc: dict[str, dict[str, int]],
) -> None:
    wanted = set(filter(may_lock_or_wait, libc))
    assert len(wanted) > 100
    assert wanted - interposed() - left_alone() == set()


#: Functions that another glibc might add.
FUTURE = [
    *("pthread_park_np", "pthread_mutex_locktwo", "__pthread_mutex_timedlock", "sem_waitv"),
    *("mtx_clocklock", "cnd_clockwait", "thrd_timedjoin", "futex_waitv", "latch_wait"),
]


@pytest.mark.parametrize("name", FUTURE)
def test_a_new_lock_function_of_another_glibc_would_be_noticed(name: str) -> None:
    assert may_lock_or_wait(name)


def test_the_library_exports_exactly_the_listed_hooks(library: dict[str, dict[str, int]]) -> None:
    assert interposed() | NO_HOOKS == set(library)


def test_no_function_is_both_interposed_and_left_alone() -> None:
    assert interposed() & left_alone() == set()


def test_each_version_of_a_function_with_several_versions_is_interposed(
    libc: dict[str, dict[str, int]], library: dict[str, dict[str, int]]
) -> None:
    """If the versions of a function differ, the library has them all; else it has none."""
    for name in set(library) & set(libc):
        if len(set(libc[name].values())) > 1:
            assert set(library[name]) == set(libc[name]), name
        else:
            assert set(library[name]) == {""}, name
