"""Waits told apart: the rules, their file, and what follows for threads, locks and sums."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace
from support.rights import as_nobody
from unit.builders import scenarios as pictures

from locktop.collector.analysis.idle import rules
from locktop.collector.analysis.idle.classifier import Classifier, wait_s
from locktop.collector.analysis.idle.rules import Rules, choose, parse, shipped
from locktop.collector.config import idle_rules_file
from locktop.collector.errors import LocktopError
from locktop.collector.export import snapshot_writer
from locktop.collector.export.snapshot_reader import parse as parse_snapshot
from locktop.collector.model import Frame, Kind, Lock, Snapshot, Thread, ThreadState, Use, WaitStack
from locktop.collector.profile import call_tree
from locktop.collector.symbols.python.merge_stacks import PYTHON
from locktop.tui import cli


def frames(*functions: str) -> tuple[Frame, ...]:
    return tuple(Frame(0x10 + i, name, None, None, "app", i) for i, name in enumerate(functions))


def python(function: str, file: str) -> Frame:
    return Frame(0x1, function, file, 1, PYTHON, 0)


def verdict(rules: Rules, kind: Kind, *stack: Frame, held: bool = False, **names: str) -> str:
    candidates = rules.candidates(kind, stack)
    found = choose(candidates, names.get("lock", ""), names.get("thread", ""), held)
    return f"{'idle' if found.idle else 'contended'} {found.name}"


def told_by(text: str, kind: Kind, *functions: str, **names: str) -> str:
    return verdict(Rules(parse(text, "x")), kind, *frames(*functions), **names)


@pytest.mark.parametrize("kind", Kind)
def test_without_more_to_go_by_the_kind_tells(kind: Kind) -> None:
    contended = {Kind.MUTEX, Kind.RWLOCK, Kind.SPIN, Kind.ONCE, Kind.CUSTOM}
    found = verdict(Rules(), kind)
    assert found.split()[0] == ("contended" if kind in contended else "idle")


@pytest.mark.parametrize(
    ("kind", "stack", "says"),
    [
        (Kind.COND, frames("take_gil", "PyEval_RestoreThread"), "contended python-gil"),
        (Kind.COND, (Frame(0x1, "", None, None, "python3.11", 1),), "contended python-gil"),
        (Kind.SEM, (python("wait", "threading.py"),), "idle python-condition"),
        (Kind.COND, (Frame(0x1, "", None, None, "_ext.so", 1), *frames("work")), "idle condition"),
        (Kind.SEM, (python("work", "/a/jobs.py"),), "contended python-lock"),
        (Kind.SEM, (python("wait", "/usr/lib/python3.11/threading.py"),), "idle python-condition"),
        (Kind.SEM, (python("wait", "/a/jobs.py"),), "contended python-lock"),
        (Kind.SEM, (python("_acquire_restore", "/usr/lib/python3.11/threading.py"),),
         "contended python-lock"),
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
        (Kind.FUTEX, frames("__lll_lock_wait_private", "_IO_fwrite"), "contended libc-lock"),
        (Kind.MUTEX, frames("IOThreadMain", "start_thread"), "idle redis-io-threads"),
        (Kind.MUTEX, frames("work", "IOThreadMain_helper", "IOThreadMain"), "contended mutex"),
        (Kind.COND, frames("std::condition_variable::wait(lock&)", "app::ThreadPool::run()"),
         "idle pool"),
        (Kind.COND, frames("app::flush()", "main"), "idle condition"),
    ],
)  # fmt: skip
def test_places_that_are_known(kind: Kind, stack: tuple[Frame, ...], says: str) -> None:
    assert verdict(Rules(), kind, *stack) == says


def test_a_semaphore_that_somebody_holds_is_a_lock() -> None:
    assert verdict(Rules(), Kind.SEM, *frames("f"), held=True) == "contended used-as-lock"
    assert verdict(Rules(), Kind.SEM, *frames("f")) == "idle semaphore"


def test_every_rule_that_ships_has_a_reason_and_can_be_reached() -> None:
    assert all(rule.reason and rule.name for rule in shipped())
    reached = {
        rule.name
        for kind in Kind
        for rule in Rules().candidates(kind, ())
        if not rule.functions
    }  # fmt: skip
    by_kind = {"mutex", "once", "condition", "semaphore", "barrier", "join", "futex"}
    assert by_kind <= reached
    # A rule below one that fits every wait of its kinds would never be asked.
    for number, rule in enumerate(shipped()):
        if not (rule.functions or rule.thread or rule.lock or rule.held):
            after = shipped()[number + 1 :]
            assert not any(later.kinds & rule.kinds for later in after), rule.name


def test_the_first_rule_that_fits_counts() -> None:
    text = "idle one kind=mutex function=pool::*\ncontended two function=pool::take\n"
    assert told_by(text, Kind.MUTEX, "pool::take") == "idle one"
    assert told_by(text, Kind.COND, "pool::take") == "contended two"
    assert told_by(text, Kind.COND, "pool::rest") == "idle condition"


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
def test_what_a_glob_fits(condition: str, fits: tuple[str, ...], not_: tuple[str, ...]) -> None:
    text = f"contended mine kind=cond {condition}"
    for name in fits:
        assert told_by(text, Kind.COND, "outer", name) == "contended mine", name
    for name in not_:
        assert told_by(text, Kind.COND, name) == "idle condition", name


def test_only_so_many_innermost_frames_are_looked_at() -> None:
    text = "contended mine function=a function=b innermost=2"
    assert told_by(text, Kind.COND, "x", "b", "y") == "contended mine"
    assert told_by(text, Kind.COND, "x", "y", "a") == "idle condition"


def test_names_of_threads_and_locks() -> None:
    text = 'idle gc thread="GC Thread#*"\nidle accept lock=g_accept*\n'
    assert told_by(text, Kind.MUTEX, thread="GC Thread#3") == "idle gc"
    assert told_by(text, Kind.MUTEX, thread="main", lock="g_accept_mutex") == "idle accept"
    assert told_by(text, Kind.MUTEX, thread="main", lock="g_other") == "contended mutex"


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
def test_what_a_futex_is_its_waiters_tell(functions: tuple[str, ...], type_: str) -> None:
    assert Rules().type(frames(*functions)) == type_
    # A verdict of the user's own takes nothing from that.
    own = Rules(parse("contended mine function=*\nneither theirs function=app::* type=ours", "x"))
    mine = "ours" if any(name.startswith("app::") for name in functions) else type_
    assert own.type(frames(*functions)) == mine
    if functions:
        assert verdict(own, Kind.FUTEX, *frames(*functions)) == "contended mine"


def test_a_rule_that_says_neither_is_no_verdict() -> None:
    rules = Rules(parse("neither theirs kind=futex function=take type=gate", "x"))
    assert rules.type(frames("take")) == "gate"
    assert verdict(rules, Kind.FUTEX, *frames("take")) == "idle futex"


def futex(snapshot: Snapshot, *functions: str, generation: int = 0) -> Snapshot:
    """With a futex, lock 77, that a thread waits for in such a stack, if there is one."""
    wait = pictures.wait(77, Kind.FUTEX, 1.0, stack=78) if functions else None
    waiter = replace(snapshot.threads[0], waiting_for=wait)
    lock = pictures.lock(77, "futex 0x7000", Kind.FUTEX, generation=generation)
    stacks = {**snapshot.stacks, 78: frames(*functions)} if functions else snapshot.stacks
    return replace(
        snapshot, threads=(waiter, *snapshot.threads[1:]), locks=(*snapshot.locks, lock),
        stacks=stacks,
    )  # fmt: skip


def test_a_futex_is_called_by_its_type_and_keeps_it() -> None:
    calm, classifier = pictures.normal(), Classifier()

    def after(*functions: str, generation: int = 0) -> tuple[str, str]:
        told = classifier.classify(futex(calm, *functions, generation=generation))
        (found,) = (lock for lock in told.locks if lock.id == 77)
        return found.type, found.name

    mutex = "std::sys::sync::mutex::futex::Mutex::lock_contended"
    assert after() == ("", "futex 0x7000")
    assert after("app::work") == ("", "futex 0x7000")
    assert after(mutex) == ("Rust Mutex", "Rust Mutex 0x7000")
    assert after() == ("Rust Mutex", "Rust Mutex 0x7000")
    assert after("gomp_mutex_lock_slow") == ("OpenMP lock", "OpenMP lock 0x7000")
    assert after(generation=1) == ("", "futex 0x7000"), "another lock at its place"


def test_functions_of_the_c_library_are_what_is_known_of_its_locks() -> None:
    inside = Frame(0x10, "fputs", None, None, "libc.so.6", 0)
    classifier = Classifier()
    assert classifier.of_functions((inside, *frames("log")), "t") == ("libc's fputs", None)
    raw = replace(inside, function="syscall")
    assert classifier.of_functions((raw, *frames("log")), "t") == ("", None)
    type_, rule = classifier.of_functions(frames("GOMP_x", "gomp_barrier_wait_end"), "t")
    assert (type_, rule is not None and rule.idle) == ("OpenMP barrier", True)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("sleepy x", "'sleepy' is neither idle nor contended"),
        ("idle", "needs a name"),
        ("idle function=x", "needs a name"),
        ("idle x where=y", "'where=y' is no condition"),
        ("idle x y", "'y' is no condition"),
        ("idle x kind=door", "'door' is no kind; there are mutex, rwlock"),
        ("idle x kind=", "kind= needs a value"),
        ("neither x kind=futex function=f", "a rule that says neither needs type="),
        ("idle x innermost=0", "innermost=0 is not a number of frames"),
        ("idle x innermost=two", "innermost=two is not a number of frames"),
        ("idle x function='a", "No closing quotation"),
    ],
)
def test_a_malformed_rule_is_named_by_file_and_line(
    line: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    file = idle_rules_file.path()
    assert file == tmp_path / "locktop" / "idle.rules"
    file.parent.mkdir()
    file.write_text(f"# mine\n\nidle fine kind=cond -- why not\n{line}\n")
    assert cli.main(["snapshot", "-p", "1"]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"locktop: {file}, line 4: ")
    assert says in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("kind", ["directory", "binary", "large"])
def test_a_file_that_cannot_be_read_is_one_line(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    file = idle_rules_file.path()
    file.parent.mkdir()
    if kind == "directory":
        file.mkdir()
    else:
        file.write_bytes(b"\xff\xfe" if kind == "binary" else b"#" * (2 << 20))
    with pytest.raises(LocktopError, match=r"idle\.rules"):
        idle_rules_file.load()


def test_without_a_file_there_are_the_shipped_rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    assert verdict(idle_rules_file.load(), Kind.COND) == "idle condition"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
def test_rules_of_another_user_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    idle_rules_file.path().parent.mkdir(mode=0o700)
    idle_rules_file.path().write_text("contended file kind=cond\n")
    assert verdict(idle_rules_file.load(), Kind.COND) == "contended file"
    # HOME may lead there after a change of user.
    assert as_nobody(lambda: verdict(idle_rules_file.load(), Kind.COND)) == "idle condition"


def test_the_command_line_goes_before_the_file_and_that_before_the_shipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    idle_rules_file.path().parent.mkdir()
    idle_rules_file.path().write_text("contended file function=take function=rest function=go\n")
    rules = idle_rules_file.load(["take", "!go"])
    assert verdict(rules, Kind.MUTEX, *frames("take")) == "idle --idle-matching take"
    assert verdict(rules, Kind.COND, *frames("go")) == "contended --idle-matching !go"
    assert verdict(rules, Kind.COND, *frames("rest")) == "contended file"
    for empty in ("", "!", " "):
        with pytest.raises(LocktopError, match="needs a function"):
            idle_rules_file.load([empty])


# ---- what follows ----


def told(snapshot: Snapshot, *own: str) -> Snapshot:
    return Classifier(Rules(parse("\n".join(own), "x"))).classify(snapshot)


def thread_of(snapshot: Snapshot, name: str) -> Thread:
    return next(thread for thread in snapshot.threads if thread.name == name)


def lock_of(snapshot: Snapshot, name: str) -> Lock:
    return next(lock for lock in snapshot.locks if lock.name == name)


def test_what_is_as_its_kind_stays_the_object_that_it_is() -> None:
    before = pictures.normal()
    after = told(before)
    assert all(a is b for a, b in zip(before.threads, after.threads, strict=True))
    assert all(a is b for a, b in zip(before.locks, after.locks, strict=True))
    assert after.why == {
        4711: "join", 4712: "mutex", 4713: "mutex", 4715: "mutex",
        4720: "pool", 4721: "pool", 4722: "pool",
    }  # fmt: skip


def test_a_wait_for_a_mutex_that_is_for_work() -> None:
    after = told(pictures.normal(), "idle serving kind=mutex function=serve_get")
    worker = thread_of(after, "worker-0")  # in stack 1, under serve_get
    assert worker.waiting_for is not None
    assert (worker.state, worker.waiting_for.idle) == (ThreadState.IDLE, True)
    assert after.why[worker.tid] == "serving"
    # Of the last half second its wait took 0.234 s.
    assert worker.wait_share == pytest.approx(0.97 - 0.234 / 0.5)
    assert worker.idle_share == pytest.approx(0.234 / 0.5)
    other = thread_of(after, "worker-1")
    assert other.state is ThreadState.WAITING
    lock = lock_of(after, "g_cache_lock")
    assert [entry.idle for entry in lock.wait_stacks] == [True, False]
    assert not lock.idle
    assert lock.idle_s == 3720.5
    assert wait_s(lock) == pytest.approx(1467.6)


def test_a_lock_whose_waits_were_all_for_work_is_idle_and_last() -> None:
    before = pictures.normal()
    after = told(before, "idle all lock=g_table_lock", "idle cache lock=g_cache_lock")
    for name in ("g_table_lock", "g_cache_lock"):
        lock = lock_of(after, name)
        assert (lock.idle, lock.idle_s) == (True, lock.wait_s)
    assert [lock.idle for lock in after.locks] == [False, False, True, True, True, True]
    assert after.locks[0].name == "stats_mutex"
    again = told(after)
    assert again.locks == before.locks
    assert [t.state for t in again.threads] == [t.state for t in before.threads]


def test_a_condition_that_is_contention() -> None:
    normal = pictures.normal()
    stacks = (WaitStack(3, 10, 10_801.0),)
    locks = tuple(
        replace(lock, wait_stacks=stacks) if lock.name == "pool_ready" else lock
        for lock in normal.locks
    )
    after = told(replace(normal, locks=locks), "contended turn function=queue_take")
    lock = lock_of(after, "pool_ready")
    assert (lock.idle, lock.idle_s) == (False, 0.0)
    assert after.locks[0] is lock, "most wait"
    assert thread_of(after, "pool-1").state is ThreadState.WAITING
    assert thread_of(after, "pool-1").wait_share == 1.0
    root = call_tree.tree(call_tree.branches(after, call_tree.WAIT))
    assert root.value == pytest.approx(3720.5 + 1467.6 + 310.4 + 0.0213 + 10_801.0)
    plain = call_tree.tree(call_tree.branches(told(after), call_tree.WAIT))
    assert (plain.value, plain.idle) == pytest.approx((root.value - 10_801.0, 10_801.0 + 3720.0))


def test_a_rule_on_a_thread_says_nothing_of_sums() -> None:
    after = told(pictures.normal(), "idle mine thread=worker-0")
    assert thread_of(after, "worker-0").state is ThreadState.IDLE
    assert lock_of(after, "g_cache_lock") is not None
    assert lock_of(after, "g_cache_lock").idle_s == 0.0


def test_who_waits_in_a_circle_is_not_idle_whatever_the_rules_say() -> None:
    after = told(pictures.deadlock(), "idle everything")
    for thread in after.threads:
        if thread.waiting_for is not None:
            stuck = thread.name.startswith("philosopher")
            assert thread.waiting_for.idle is not stuck
            assert after.why[thread.tid] == ("deadlock" if stuck else "everything")


def sem(first_value: int, signals: int, acquisitions: int = 0, **more: object) -> Lock:
    made = pictures.lock(9, "s", Kind.SEM, wait_s=5.0, waiters=(1,), signals=signals, **more)
    return replace(
        made,
        acquisitions=acquisitions,
        first_value=first_value,
        wait_stacks=(WaitStack(1, 1, 5.0),),
    )


def at_semaphore(lock: Lock, *uses: tuple[int, int]) -> Snapshot:
    """One thread waits for it; the threads have got and posted it so often."""
    threads = tuple(
        pictures.thread(
            1 + n, f"t{n}", ThreadState.IDLE, uses=(Use(lock.id, *use),),
            waiting_for=pictures.wait(lock.id, Kind.SEM, 5.0) if n == 0 else None,
        )
        for n, use in enumerate(uses)
    )  # fmt: skip
    return pictures.snapshot(threads, (lock,))


@pytest.mark.parametrize(
    ("lock", "uses", "is_lock"),
    [
        (sem(1, 3, 4), ((1, 1), (3, 2)), True),
        (sem(4, 3, 4), ((1, 1), (3, 2)), True),
        (sem(1, 9, 10), ((1, 1), (3, 2)), True),  # threads that ended got it, too
        (sem(0, 3, 4), ((1, 1), (3, 2)), False),  # none was free: a queue
        (sem(-1, 3, 4), ((1, 1), (3, 2)), False),  # not known
        (sem(1, 0, 1), ((1, 0), (0, 0)), False),  # never given back
        (sem(1, 3, 6), ((2, 1), (4, 2)), False),  # another process posts it
        (sem(1, 3, 4, generation=1), ((1, 1), (3, 2)), False),  # or what lay there before
        (sem(1, 3, 4, foreign_releases=True), ((1, 1), (3, 2)), False),
    ],
)
def test_semaphores_used_as_locks(
    lock: Lock, uses: tuple[tuple[int, int], ...], is_lock: bool
) -> None:
    classifier = Classifier()
    after = classifier.classify(at_semaphore(lock, *uses))
    found = after.locks[0]
    assert (found.used_as_lock, found.idle, found.idle_s) == (
        is_lock, not is_lock, 0.0 if is_lock else 5.0,
    )  # fmt: skip
    assert after.why == {1: "used-as-lock" if is_lock else "semaphore"}
    assert (after.threads[0].state is ThreadState.WAITING) is is_lock
    # What threads did is told while somebody waits; it stays known afterwards, and in a file.
    free = replace(lock, waiters=())
    later = classifier.classify(pictures.snapshot((), (free,)))
    assert later.locks[0].idle is not is_lock
    saved = parse_snapshot(json.dumps(snapshot_writer.document(later)).encode(), "x")
    assert saved.locks[0].idle is not is_lock


def later(first: Sequence[tuple[int, int]], *more: Sequence[tuple[int, int]]) -> list[bool]:
    """Whether a semaphore where another one lay, which others posted, is known to be used as a lock
    in one look after the other; what threads have got and posted by then."""
    classifier = Classifier()
    told = []
    for uses in (first, *more):
        posts = sum(posted for _, posted in uses)
        lock = sem(1, posts, generation=3, foreign_releases=True)
        told.append(classifier.classify(at_semaphore(lock, *uses)).locks[0].used_as_lock)
    return told


@pytest.mark.parametrize(
    ("scans", "told"),
    [
        ([[(7, 9), (4, 2)], [(9, 11), (6, 3)], [(9, 11), (7, 4)]], [False, False, True]),
        ([[(7, 9), (4, 2)], [(9, 11), (6, 5)]], [False, True]),  # it had it when first seen
        ([[(7, 9), (4, 2)], [(7, 9), (9, 7)], [(7, 11), (9, 7)]], [False, True, False]),
        ([[(7, 9), (4, 2)], [(7, 20), (14, 2)]], [False, False]),  # one posts, the other gets
        ([[(7, 9), (4, 2)], [(2, 2), (9, 7)], [(2, 2), (14, 12)]], [False, False, True]),
        ([[(7, 9)], [(7, 9), (5, 4)]], [False, True]),  # a new thread
    ],
)
def test_semaphores_where_others_were(scans: list[list[tuple[int, int]]], told: list[bool]) -> None:
    assert later(*scans) == told


def test_of_a_semaphore_where_another_one_was_what_ended_threads_did_is_not_known() -> None:
    classifier = Classifier()
    for posts, uses in ((11, ((7, 9), (4, 2))), (23, ((7, 9), (9, 7)))):
        lock = sem(1, posts, generation=1)
        after = classifier.classify(at_semaphore(lock, *uses))
        assert not after.locks[0].used_as_lock
    anew = sem(1, 33, generation=2)
    assert not classifier.classify(at_semaphore(anew, (12, 14), (14, 12))).locks[0].used_as_lock
    threads = at_semaphore(anew, (22, 24), (14, 12)).threads
    unknown = (*threads, pictures.thread(9, "full", ThreadState.IDLE, uses=None))
    seen = pictures.snapshot(unknown, (replace(anew, signals=43),))
    assert not classifier.classify(seen).locks[0].used_as_lock
    seen = pictures.snapshot(threads, (replace(anew, signals=43),))
    assert classifier.classify(seen).locks[0].used_as_lock
    seen = pictures.snapshot((), (replace(anew, waiters=()),))
    assert classifier.classify(seen).locks[0].used_as_lock, "it stays known"


def test_what_functions_say_of_one_wait_goes_for_those_whose_functions_are_not_known() -> None:
    rules = (
        "contended takes kind=sem function=cache_get for-all\n"
        "idle rests kind=sem function=queue_take for-all\n"
        "contended alone kind=sem function=main"
    )
    normal = pictures.normal()
    takes, rests, alone = (
        next(
            id_ for id_, frames in normal.stacks.items() if any(f.function == name for f in frames)
        )
        for name in ("cache_get", "queue_take", "main")
    )
    classifier = Classifier(Rules(parse(rules, "x")))

    def why(*stacks: int, generation: int = 0) -> list[str]:
        lock = pictures.lock(9, "s", Kind.SEM, wait_s=5.0, waiters=(1,), generation=generation)
        threads = tuple(
            pictures.thread(
                1 + n, f"t{n}", ThreadState.IDLE,
                waiting_for=replace(pictures.wait(9, Kind.SEM, 5.0), stack=stack),
            )
            for n, stack in enumerate(stacks)
        )  # fmt: skip
        seen = replace(pictures.snapshot(threads, (lock,)), stacks=normal.stacks)
        after = classifier.classify(seen)
        assert after.locks[0].used_as_lock is (after.why[1] != "semaphore")
        return [after.why[thread.tid] for thread in threads]

    assert why(0) == ["semaphore"]
    assert why(0, takes) == ["used-as-lock", "takes"]
    assert why(0, alone) == ["used-as-lock", "alone"]
    assert why(0, rests) == ["semaphore", "rests"], "another one lies there by now"
    assert why(0, alone) == ["semaphore", "alone"], "that rule is for no other"
    assert why(0, takes) == ["used-as-lock", "takes"]
    assert why(0, generation=1) == ["semaphore"]


def test_who_waits_behind_a_certain_deadlock_is_not_idle() -> None:
    ring = pictures.deadlock()
    (deadlock,) = ring.deadlocks
    behind = replace(ring, deadlocks=(replace(deadlock, stuck=(4711,)),))
    assert told(behind).why[4711] == "deadlock"
    doubted = replace(behind, deadlocks=(replace(deadlock, stuck=(4711,), certain=False),))
    assert told(doubted).why[4711] == "join"


def test_names_that_come_later_are_looked_at_again() -> None:
    classifier = Classifier(Rules(parse("contended turn function=queue_take", "x")))
    normal = pictures.normal()
    nameless = tuple(replace(frame, function="") for frame in normal.stacks[3])
    first = classifier.classify(replace(normal, stacks={**normal.stacks, 3: nameless}))
    assert thread_of(first, "pool-1").state is ThreadState.IDLE
    assert thread_of(classifier.classify(normal), "pool-1").state is ThreadState.WAITING


def test_of_an_interval_what_was_for_work_is_told_apart() -> None:
    def scan(queue: float, turn: float) -> Snapshot:
        stacks = (WaitStack(3, 5, queue), WaitStack(1, 5, turn))
        made = pictures.lock(9, "c", Kind.COND, wait_s=queue + turn, wait_stacks=stacks)
        return pictures.snapshot((), (made,))

    classifier = Classifier(Rules(parse("contended turn function=cache_get", "x")))
    before, after = classifier.classify(scan(10.0, 1.0)), classifier.classify(scan(14.0, 2.5))
    assert after.locks[0].rates.wait == pytest.approx(1.5 / 0.5), "contention alone"
    interval = snapshot_writer.document(after, before)["locks"][0]["interval"]
    assert (interval["wait_s"], interval["idle_s"]) == (5.5, 4.0)


def test_the_file_that_ships_is_read_once() -> None:
    assert rules.shipped() is rules.shipped()
