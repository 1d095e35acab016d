"""Which function of a stack made a lock."""

from __future__ import annotations

import pytest

from locktop.collector.model import Frame
from locktop.collector.symbols.demangle import demangle
from locktop.collector.symbols.lock_makers import is_wrapper, maker

#: Symbols as they are in the files of programs.
WRAPPERS = (
    # constructors of locks
    "_ZN2v84base14RecursiveMutexC2Ev",
    "_ZN7rocksdb4port5MutexC1Eb",
    "_ZN7rocksdb17InstrumentedMutexC2EPNS_10StatisticsEPNS_11SystemClockEib",
    "_ZN7rocksdb4port7CondVarC1EPNS0_5MutexE",
    "_ZN4node9MutexBaseINS_16LibuvMutexTraitsEEC2Ev",
    "_ZN6QMutexC1Ev",
    "_ZN14QReadWriteLockC1ENS_13RecursionModeE",
    "_ZN14QWaitConditionC1Ev",
    "_ZN7MonitorC1EiPKcb",
    "_ZN13PlatformMutexC1Ev",
    "_ZN15CriticalSectionC1Ev",
    "_ZN6webrtc9MutexImplC1Ev",
    "_ZN8SpinLockC1Ev",
    "_ZN6RWLockC2Ev",
    # methods of locks, and of templates with a lock
    "_ZN4node16LibuvMutexTraits4initEP15pthread_mutex_t",
    "_ZN7OSMutex4initEv",
    "_ZN11PolicyMutexI14TTASEventMutexI13GenericPolicyEE4initE10latch_id_tPKcj",
    "_ZN2v84base16LazyInstanceImplINS0_14RecursiveMutexENS0_32StaticallyAllocatedInstanceTrait"
    "IS2_EENS0_21DefaultConstructTraitIS2_EENS0_23ThreadSafeInitOnceTraitENS0_18LeakyInstance"
    "TraitIS2_EEE12InitInstanceEPv",
    # libraries
    "_ZNSt5mutexC1Ev",
    "_ZSt9call_onceIRFvvEJEEvRSt9once_flagOT_DpOT0_",
    "_ZN2v84base12CallOnceImplEPSt6atomicIhESt8functionIFvvEE",
    "_ZN11parking_lot5mutex14Mutex$LT$T$GT$3new17h0123456789abcdefE",
    "_ZN3std4sync5mutex14Mutex$LT$T$GT$3new17h0123456789abcdefE",
    "_ZN4core3ops8function6FnOnce9call_once17h0123456789abcdefE",
    "_ZN3app4sync7MyMutex3new17h0123456789abcdefE",
    # functions
    "uv_mutex_init",
    "uv_mutex_init_recursive",
    "uv_rwlock_init",
    "uv_sem_init",
    "uv_cond_init",
    "uv_once",
    "apr_thread_mutex_create",
    "g_rec_mutex_impl_new",
    "SDL_CreateMutex",
    "CRYPTO_THREAD_lock_new",
    "PR_NewLock",
    "PR_NewCondVar",
    "inline_mysql_mutex_init",
    "evthread_posix_lock_alloc",
    "rb_native_mutex_initialize",
)
MAKERS = (
    # types that have locks, or whose names only look like locks
    "_ZN5CacheC1Em",
    "_ZN7rocksdb6DBImplC2ERKNS_9DBOptionsE",
    "_ZN11LockManagerC1Ev",
    "_ZN9LockTableC2Ei",
    "_ZN5ClockC1Ev",
    "_ZN5BlockC1Ev",
    "_ZN13HealthMonitorC1Ev",
    "_ZN3app4Pool3new17h0123456789abcdefE",
    "_ZN83_$LT$app..Pool$u20$as$u20$core..default..Default$GT$7default17h0123456789abcdefE",
    # functions that make more than one lock, or no lock
    "conn_new",
    "block_alloc",
    "clock_init",
    "init_locks",
    "init_once",
    "lock_table_init",
    "lock_manager_init",
    "mutex_pool_create",
    "create_thread",
    "uv_loop_init",
    "event_base_new",
    "semantic_new",
    "main",
)


def frame(function: str, module: str = "app") -> Frame:
    return Frame(
        address=1, function=demangle(function), file=None, line=None, module=module, offset=1
    )


@pytest.mark.parametrize("symbol", WRAPPERS)
def test_a_function_that_only_makes_a_lock_is_a_wrapper(symbol: str) -> None:
    assert is_wrapper(demangle(symbol))


@pytest.mark.parametrize("symbol", MAKERS)
def test_other_functions_are_no_wrappers(symbol: str) -> None:
    assert not is_wrapper(demangle(symbol))


@pytest.mark.parametrize(
    ("stack", "made"),
    [
        (("_ZN2v84base14RecursiveMutexC2Ev", "_ZN5CacheC1Em", "main"), "Cache::Cache"),
        (("uv_mutex_init", "_ZN4node9MutexBaseINS_16LibuvMutexTraitsEEC2Ev", "setup"), "setup"),
        (("conn_new", "main"), "conn_new"),
        (("_ZNSt5mutexC1Ev", "_ZN3FooC1Ev"), "Foo::Foo"),
        (("uv_mutex_init", "", "main"), ""),
        (("", "main"), ""),
        # a stack of wrappers alone, as at the level "counting"
        (("_ZN7rocksdb4port5MutexC1Eb",), "rocksdb::port::Mutex::Mutex"),
        (("uv_mutex_init",), None),
        # Python functions name the locks of Python
        (("PyThread_allocate_lock", "newlockobject", "main"), None),
        ((), None),
    ],
)
def test_the_maker_is_the_innermost_function_that_is_no_wrapper(
    stack: tuple[str, ...], made: str | None
) -> None:
    found = maker(frame(function) for function in stack)
    assert (found and found.function) == made


def test_the_runtime_is_no_maker() -> None:
    stack = [frame("mtx_init", "libc.so.6"), frame("", "libstdc++.so.6.0.30"), frame("conn_new")]
    assert maker(stack) is stack[2]


def test_frames_behind_the_maker_are_not_read() -> None:
    stack = iter([frame("uv_mutex_init"), frame("conn_new"), frame("main")])
    maker(stack)
    assert next(stack).function == "main"


def test_no_function_of_a_stripped_python_makes_a_lock() -> None:
    """Python functions say whose the lock is."""
    nameless = Frame(1, "", None, None, "python3.11", 1)
    assert maker([nameless, frame("main")]) is None
    assert maker([frame("_PySemaphore_Init", "python3.14"), nameless]) is None
    assert maker([Frame(1, "", None, None, "server", 1)]) is not None
