"""The idle rules: each wait is idle or contended by one rule."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from unit.builders import records, scenarios
from unit.builders.idle_verdicts import frames, verdict

from locktop.collector.analysis.idle import rules
from locktop.collector.analysis.idle.classifier import Classifier
from locktop.collector.analysis.idle.rules import Rules, Waker, names_by_kind_alone, parse, shipped
from locktop.collector.model import CONTENTION_KINDS, Frame, Kind, Snapshot
from locktop.collector.model.frames import PYTHON


def python(function: str, file: str) -> Frame:
    return Frame(0x1, function, file, 1, PYTHON, 0)


def verdict_by(text: str, kind: Kind, *functions: str, **names: str) -> str:
    return verdict(Rules(parse(text, "x")), kind, *frames(*functions), **names)


#: Kinds for whose waits no shipped rule is needed, each with the reason.
WITHOUT_RULE: dict[Kind, str] = {}


@pytest.mark.parametrize("kind", Kind)
def test_the_kind_decides_without_other_facts(kind: Kind) -> None:
    contended = {Kind.MUTEX, Kind.RWLOCK, Kind.SPIN, Kind.ONCE, Kind.CUSTOM}
    found = verdict(Rules(), kind)
    assert found.split()[0] == ("contended" if kind in contended else "idle")


@pytest.mark.parametrize("kind", Kind)
def test_each_kind_has_a_rule_of_its_own_in_the_file(kind: Kind) -> None:
    last = Rules().candidates(kind, ())[-1]
    assert (last not in shipped()) is (kind in WITHOUT_RULE), "idle.rules has no rule for the kind"
    assert last.knows_kind_alone
    assert last.idle is (kind not in CONTENTION_KINDS)


def test_a_rule_by_the_kind_alone_has_no_other_condition() -> None:
    rules_by_kind = parse("idle a kind=cond\nidle b", "x")
    others = parse("idle a function=f\nidle a thread=t\nidle a lock=l\ncontended a held", "x")
    assert [rule.knows_kind_alone for rule in (*rules_by_kind, *others)] == [True] * 2 + [False] * 4
    assert names_by_kind_alone() == {
        "mutex", "once", "condition", "semaphore", "barrier", "join", "futex", "held", "signalled",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "stack", "says"),
    [
        (Kind.COND, frames("take_gil", "PyEval_RestoreThread"), "contended python-gil"),
        (Kind.COND, (Frame(0x1, "", None, None, "python3.11", 1),), "contended python-gil"),
        (Kind.SEM, (python("wait", "threading.py"),), "idle python-condition"),
        (Kind.SEM, (*frames("PyMutex_Lock", "list_append"), python("wait", "threading.py")),
         "contended python-object"),
        (Kind.SEM, frames("tstate_wait_attach", "time_sleep"), "contended python-pause"),
        (Kind.COND, (Frame(0x1, "", None, None, "_ext.so", 1), *frames("work")), "idle condition"),
        (Kind.SEM, (python("work", "/a/jobs.py"),), "contended python-lock"),
        (Kind.SEM, (python("wait", "/usr/lib/python3.11/threading.py"),), "idle python-condition"),
        (Kind.SEM, (python("_shutdown", "/usr/lib/python3.11/threading.py"),),
         "idle python-condition"),
        (Kind.SEM, (python("_shutdown", "/a/jobs.py"),), "contended python-lock"),
        (Kind.SEM, (python("wait", "/a/jobs.py"),), "contended python-lock"),
        (Kind.SEM, (python("_acquire_restore", "/usr/lib/python3.11/threading.py"),),
         "contended python-lock"),
        (Kind.SEM, (*frames("_multiprocessing_SemLock_acquire_impl"),
                    python("__enter__", "/usr/lib/python3.11/multiprocessing/synchronize.py"),
                    python("work", "/a/jobs.py")), "contended multiprocessing-lock"),
        (Kind.SEM, (*frames("_multiprocessing_SemLock_acquire_impl"),
                    python("__enter__", "synchronize.py"), python("get", "queues.py"),
                    python("work", "/a/jobs.py")), "idle multiprocessing-queue"),
        (Kind.SEM, (*frames("_multiprocessing_SemLock_acquire_impl"),
                    python("wait", "synchronize.py"), python("work", "/a/jobs.py")),
         "idle multiprocessing-queue"),
        (Kind.SEM, (*frames("_multiprocessing_SemLock_acquire_impl"),
                    python("work", "/a/jobs.py")), "idle semaphore"),
        (Kind.SEM, (python("get", "/a/queues.py"),), "contended python-lock"),
        (Kind.SEM, frames("_queue_SimpleQueue_get_impl", "_worker"), "idle python-queue"),
        (Kind.COND, frames("os::PlatformEvent::park()", "ObjectMonitor::EnterI(JavaThread*)"),
         "contended java-monitor-enter"),
        (Kind.COND, frames("os::PlatformEvent::park()", "ObjectMonitor::wait(long, bool)",
                           "ObjectSynchronizer::wait", "JVM_MonitorWait"), "idle java-wait"),
        (Kind.FUTEX, frames("std::sys::sync::mutex::futex::Mutex::lock_contended", "app::put"),
         "contended rust-mutex"),
        (Kind.FUTEX, frames("std::sys::pal::unix::futex::futex_wait",
                            "<std::sys::sync::rwlock::futex::RwLock>::write_contended"),
         "contended rust-rwlock"),
        (Kind.FUTEX, frames("<std::sys::sync::once::futex::Once>::call"), "contended rust-once"),
        (Kind.FUTEX, frames("<std::sys::sync::thread_parking::futex::Parker>::park_timeout"),
         "idle rust-park"),
        (Kind.FUTEX, frames("std::sys::sync::condvar::futex::Condvar::wait", "app::pop"),
         "idle rust-condvar"),
        (Kind.FUTEX, frames("std::sys::sync::thread_parking::futex::Parker::park",
                            "tokio::runtime::park::Inner::park"), "idle rust-park"),
        (Kind.FUTEX, frames("absl::lts_20240116::Mutex::Block(x)",
                            "absl::lts_20240116::Mutex::LockSlowLoop(x)",
                            "absl::lts_20240116::Mutex::LockSlow(x)"), "contended absl-mutex"),
        (Kind.FUTEX, frames("absl::lts_20240116::Mutex::DecrementSynchSem(x)",
                            "absl::lts_20240116::CondVar::WaitCommon(x)",
                            "absl::lts_20240116::CondVar::Wait(x)"), "idle absl-await"),
        (Kind.FUTEX, frames("tbb::detail::r1::wait_on_address", "tbb::detail::d1::mutex::lock"),
         "contended tbb-mutex"),
        (Kind.FUTEX, frames("tbb::detail::r1::wait_bounded_queue_monitor", "app::pop"),
         "idle futex"),
        (Kind.COND, frames("boost::condition_variable::wait", "boost::shared_mutex::lock_shared"),
         "contended boost-shared-mutex"),
        (Kind.COND, frames("boost::condition_variable::wait", "app::pop"), "idle condition"),
        (Kind.FUTEX, frames("runtime.futex.abi0", "runtime.futexsleep", "runtime.notesleep",
                            "runtime.mPark", "runtime.stopm", "runtime.findRunnable"),
         "idle go-idle"),
        (Kind.FUTEX, frames("runtime.futex.abi0", "runtime.futexsleep", "runtime.lock2"),
         "contended go-lock"),
        (Kind.FUTEX, frames("", "GOMP_critical_start", "app::put"), "idle futex"),
        (Kind.FUTEX, (Frame(0x1, "", None, None, "libgomp.so.1.0.0", 1),
                      Frame(0x2, "GOMP_critical_start", None, None, "libgomp.so.1.0.0", 2)),
         "contended openmp-lock"),
        (Kind.FUTEX, frames("futex_wait", "__futex_abstimed_wait_common", "pthread_cond_wait"),
         "idle pthread-condition"),
        (Kind.FUTEX, frames("__lll_lock_wait", "___pthread_mutex_lock", "app::put"),
         "contended pthread-lock"),
        (Kind.COND, frames("", "handler::ha_index_next(unsigned char*)",
                           "mysql_execute_command(THD*, bool)"), "contended mariadb-statement"),
        (Kind.FUTEX, frames("", "ha_commit_trans(THD*, bool)"), "contended mariadb-statement"),
        (Kind.COND, frames("MYSQL_BIN_LOG::wait_for_update_binlog_end_pos(THD*, timespec*)",
                           "mysql_binlog_send(THD*, char*)",
                           "dispatch_command(enum_server_command)"), "idle mariadb-replica"),
        (Kind.COND, frames("Item_func_sleep::val_int()", "mysql_execute_command(THD*, bool)"),
         "idle mariadb-sleep"),
        (Kind.FUTEX, frames("", "tpool::task_group::execute(tpool::task*)",
                            "tpool::thread_pool_generic::worker_main(tpool::worker_data*)"),
         "contended mariadb-task"),
        (Kind.COND, frames("tpool::thread_pool_generic::wait_for_tasks(lock&, data*)",
                           "tpool::thread_pool_generic::worker_main(tpool::worker_data*)"),
         "idle pool"),
        (Kind.FUTEX, frames("__lll_lock_wait_private", "_IO_fwrite"), "contended libc-lock"),
        (Kind.MUTEX, frames("IOThreadMain", "start_thread"), "idle redis-io-threads"),
        (Kind.MUTEX, frames("work", "IOThreadMain_helper", "IOThreadMain"), "contended mutex"),
        (Kind.COND, frames("std::condition_variable::wait(lock&)", "app::ThreadPool::run()"),
         "idle pool"),
        (Kind.COND, frames("app::flush()", "main"), "idle condition"),
    ],
)  # fmt: skip
def test_known_functions_decide_the_verdict(
    kind: Kind, stack: tuple[Frame, ...], says: str
) -> None:
    assert verdict(Rules(), kind, *stack) == says


def test_a_held_semaphore_is_a_lock() -> None:
    assert verdict(Rules(), Kind.SEM, *frames("f"), held=True) == "contended used-as-lock"
    assert verdict(Rules(), Kind.SEM, *frames("f")) == "idle semaphore"


def test_every_shipped_rule_has_a_reason_and_is_reachable() -> None:
    assert all(rule.reason and rule.name for rule in shipped())
    reached = {
        rule.name
        for kind in Kind
        for rule in Rules().candidates(kind, ())
        if not rule.functions
    }  # fmt: skip
    by_kind = {"mutex", "once", "condition", "semaphore", "barrier", "join", "futex"}
    assert by_kind <= reached
    # A rule below a rule that matches every wait of its kinds would never apply.
    for number, rule in enumerate(shipped()):
        if not (rule.functions or rule.thread or rule.lock or rule.held):
            after = shipped()[number + 1 :]
            assert not any(later.kinds & rule.kinds for later in after), rule.name


def test_the_first_matching_rule_decides() -> None:
    text = "idle one kind=mutex function=pool::*\ncontended two function=pool::take\n"
    assert verdict_by(text, Kind.MUTEX, "pool::take") == "idle one"
    assert verdict_by(text, Kind.COND, "pool::take") == "contended two"
    assert verdict_by(text, Kind.COND, "pool::rest") == "idle condition"


@pytest.mark.parametrize(
    ("condition", "fits", "not_"),
    [
        ("function=get", ("get", "get(int, char)"), ("get2", "a::get", "GET")),
        ("function=*get", ("get", "a::get(int)"), ("get_all",)),
        ("function=g?t", ("get", "got"), ("gt", "geet")),
        ("function=a[1]*", ("a[1]b",), ("a1", "a1b")),
        ("function='operator new(*'", ("operator new(unsigned long)",), ("operator new[]",)),
        ("function=get@app", ("get",), ("put",)),
        ("function=get@lib*", (), ("get",)),
        ("function=@app", ("get", ""), ()),
        ("function=*", ("get",), ("",)),
    ],
)
def test_a_glob_matches_functions_and_modules(
    condition: str, fits: tuple[str, ...], not_: tuple[str, ...]
) -> None:
    text = f"contended mine kind=cond {condition}"
    for name in fits:
        assert verdict_by(text, Kind.COND, "outer", name) == "contended mine", name
    for name in not_:
        assert verdict_by(text, Kind.COND, name) == "idle condition", name


def test_only_the_innermost_frames_count() -> None:
    text = "contended mine function=a function=b innermost=2"
    assert verdict_by(text, Kind.COND, "x", "b", "y") == "contended mine"
    assert verdict_by(text, Kind.COND, "x", "y", "a") == "idle condition"


def test_rules_match_names_of_threads_and_locks() -> None:
    text = 'idle gc thread="GC Thread#*"\nidle accept lock=g_accept*\n'
    assert verdict_by(text, Kind.MUTEX, thread="GC Thread#3") == "idle gc"
    assert verdict_by(text, Kind.MUTEX, thread="main", lock="g_accept_mutex") == "idle accept"
    assert verdict_by(text, Kind.MUTEX, thread="main", lock="g_other") == "contended mutex"


@pytest.mark.parametrize(
    ("functions", "type_"),
    [
        (("std::sys::sync::mutex::futex::Mutex::lock_contended", "app::put"), "Rust Mutex"),
        (("std::sys::sync::thread_parking::futex::Parker::park", "app::rest"), "Rust park"),
        (("runtime.futex", "runtime.futexsleep", "runtime.lock2"), "Go runtime lock"),
        (("void std::__detail::__platform_wait<int>(int const*, int)", "app::rest"),
         "std::atomic wait"),
        (("std::__atomic_futex_unsigned_base::_M_futex_wait_until_steady(x)",), "std::future wait"),
        (("absl::lts_2023::synchronization_internal::FutexWaiter::Wait(x)",
          "absl::lts_2023::Mutex::LockSlowLoop(x)"), "absl::Mutex waiter"),
        (("absl::debian3::synchronization_internal::Waiter::Wait",
          "AbslInternalPerThreadSemWait_debian3", ""), "absl waiter"),
        (("gomp_mutex_lock_slow", "GOMP_critical_start"), "OpenMP lock"),
        (("app::put",), ""),
        ((), ""),
    ],
)  # fmt: skip
def test_the_waiters_show_the_type_of_a_futex(functions: tuple[str, ...], type_: str) -> None:
    assert Rules().type(frames(*functions)) == type_
    # A rule of the user changes the verdict, not the type.
    own = Rules(parse("contended mine function=*\nneither theirs function=app::* type=ours", "x"))
    mine = "ours" if any(name.startswith("app::") for name in functions) else type_
    assert own.type(frames(*functions)) == mine
    if functions:
        assert verdict(own, Kind.FUTEX, *frames(*functions)) == "contended mine"


def test_a_rule_with_neither_gives_no_verdict() -> None:
    rules = Rules(parse("neither theirs kind=futex function=take type=gate", "x"))
    assert rules.type(frames("take")) == "gate"
    assert verdict(rules, Kind.FUTEX, *frames("take")) == "idle futex"


@pytest.mark.parametrize(
    ("type_", "waker"),
    [
        ("Rust Mutex", Waker.EVERY_HOLDER),
        ("Rust Once", Waker.HOLDER),
        # Each waiter of parking_lot sleeps at a word of its own, so its wait has several holders.
        ("parking_lot waiter", Waker.UNKNOWN),
        ("Rust Condvar", Waker.UNKNOWN),
        ("Rust park", Waker.UNKNOWN),
        ("", Waker.UNKNOWN),
    ],
)
def test_the_type_of_a_futex_tells_whether_its_waker_held_it(type_: str, waker: Waker) -> None:
    assert Rules().waker(type_) is waker


def test_the_first_rule_with_a_type_tells_its_waker() -> None:
    own = parse(
        'neither mine kind=futex function=take type="gate" waker=holder\n'
        'neither park kind=futex function=park type="Rust Mutex"', "x",
    )  # fmt: skip
    assert Rules(own).waker("gate") is Waker.HOLDER
    assert Rules(own).waker("Rust Mutex") is Waker.UNKNOWN


@pytest.mark.parametrize("words", ["type=gate waker=maybe", "waker=holder"])
def test_a_waker_is_a_holder_of_a_type(words: str) -> None:
    with pytest.raises(ValueError, match=r"x, line 1: .*waker="):
        parse(f"idle mine function=take {words}", "x")


def futex(snapshot: Snapshot, *functions: str, generation: int = 0) -> Snapshot:
    """A snapshot with a futex, lock 77; with functions, a thread waits for lock 77 in them."""
    wait = records.wait(77, Kind.FUTEX, 1.0, stack=78) if functions else None
    waiter = replace(snapshot.threads[0], waiting_for=wait)
    lock = records.lock(77, "futex 0x7000", Kind.FUTEX, generation=generation)
    stacks = {**snapshot.stacks, 78: frames(*functions)} if functions else snapshot.stacks
    return replace(
        snapshot, threads=(waiter, *snapshot.threads[1:]), locks=(*snapshot.locks, lock),
        stacks=stacks,
    )  # fmt: skip


def test_a_futex_is_named_by_its_type_and_keeps_the_name() -> None:
    calm, classifier = scenarios.normal(), Classifier()

    def after(*functions: str, generation: int = 0) -> tuple[str, str]:
        after_rules = classifier.classify(futex(calm, *functions, generation=generation))
        (found,) = (lock for lock in after_rules.locks if lock.id == 77)
        return found.type, found.name

    mutex = "std::sys::sync::mutex::futex::Mutex::lock_contended"
    assert after() == ("", "futex 0x7000")
    assert after("app::work") == ("", "futex 0x7000")
    assert after(mutex) == ("Rust Mutex", "Rust Mutex 0x7000")
    assert after() == ("Rust Mutex", "Rust Mutex 0x7000")
    assert after("gomp_mutex_lock_slow") == ("OpenMP lock", "OpenMP lock 0x7000")
    assert after(generation=1) == ("", "futex 0x7000"), "another lock at the same address"


def test_functions_of_the_c_library_name_its_locks() -> None:
    inside = Frame(0x10, "fputs", None, None, "libc.so.6", 0)
    classifier = Classifier()
    assert classifier.classify_stack((inside, *frames("log")), "t") == ("libc's fputs", None)
    raw = replace(inside, function="syscall")
    assert classifier.classify_stack((raw, *frames("log")), "t") == ("", None)
    type_, rule = classifier.classify_stack(frames("GOMP_x", "gomp_barrier_wait_end"), "t")
    assert (type_, rule is not None and rule.idle) == ("OpenMP barrier", True)


def test_the_shipped_rules_file_is_read_once() -> None:
    assert rules.shipped() is rules.shipped()
