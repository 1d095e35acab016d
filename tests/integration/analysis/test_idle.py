"""Idle and contended waits of real programs: pools on each kind of lock, threads of CPython."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support import tool
from support.targets import PATIENCE_S, Target

from locktop.collector.sources.attach import attach
from locktop.collector.sources.launch import preload_environment

StartTarget = Callable[..., Target]

EACH = 5
#: For each pool: whether its waits are idle, and the name of the rule.
KNOWN = {
    "accept": (False, "mutex"),
    "writer": (False, "mutex"),
    "http": (True, "condition"),
    "db": (True, "semaphore"),
    "turn": (True, "condition"),
    "own": (True, "semaphore"),
}
KINDS = {"http": "cond", "turn": "cond", "db": "sem", "own": "sem"}


@pytest.fixture
def pools(start_target: StartTarget) -> Target:
    """Six pools, in which each thread has come to its lasting wait."""
    target: Target = start_target("six_pools", str(EACH))
    target.expect("ready")

    def all_there(document: dict[str, Any]) -> bool:
        # A thread may wait for the mutex of a condition first.
        waits = [(pool_of(one), one["waiting_for"]) for one in document["threads"]]
        known = [
            pool for pool, wait in waits if wait and KINDS.get(pool, wait["kind"]) == wait["kind"]
        ]
        return len(known) == EACH * len(KNOWN)

    tool.scan_until(target.pid, all_there, "all pools in their waits")
    return target


@pytest.fixture
def config(tmp_path: Path) -> Iterator[Path]:
    """The path of the user's rules, in a directory for this test."""
    (tmp_path / "locktop").mkdir()
    before = os.environ.get("XDG_CONFIG_HOME")
    os.environ["XDG_CONFIG_HOME"] = str(tmp_path)
    yield tmp_path / "locktop" / "idle.rules"
    if before is None:
        del os.environ["XDG_CONFIG_HOME"]
    else:
        os.environ["XDG_CONFIG_HOME"] = before


def pool_of(thread: dict[str, Any]) -> str:
    return str(thread["name"]).partition("-")[0]


def verdicts(document: dict[str, Any]) -> dict[str, tuple[bool, str]]:
    """Return the verdict on each pool.

    Check that all threads of a pool have one verdict, and that the states and the locks agree.
    """
    found: dict[str, tuple[bool, str]] = {}
    for thread in document["threads"]:
        wait = thread["waiting_for"]
        if wait is None:
            continue
        assert thread["state"] == ("idle" if wait["idle"] else "waiting")
        (lock,) = (one for one in document["locks"] if one["id"] == wait["lock"])
        assert lock["idle"] is wait["idle"]
        assert lock["idle_s"] == (lock["wait_s"] if wait["idle"] else 0.0)
        assert {entry["idle"] for entry in lock["wait_stacks"]} == {wait["idle"]}
        verdict = wait["idle"], wait["why"]
        assert found.setdefault(pool_of(thread), verdict) == verdict
    return found


def test_each_pool_has_the_verdict_of_its_kind(pools: Target) -> None:
    assert verdicts(tool.snapshot(pools.pid)) == KNOWN


def test_the_command_line_overrides_in_both_directions(pools: Target) -> None:
    options = ("--idle-matching", "accept_one", "--idle-matching", "!take_*")
    document = tool.snapshot(pools.pid, *options)
    assert verdicts(document) == KNOWN | {
        "accept": (True, "--idle-matching accept_one"),
        "turn": (False, "--idle-matching !take_*"),
    }
    kinds = [lock["idle"] for lock in document["locks"]]
    assert kinds == sorted(kinds), "idle locks come last"


def test_the_users_file_overrides_the_shipped_rules(pools: Target, config: Path) -> None:
    config.write_text(
        "# of this program\n"
        "contended  db-is-a-lock  kind=sem lock=g_db_ready -- one at a time\n"
        "idle  config  kind=rwlock function=write_config innermost=1\n"
    )
    assert verdicts(tool.snapshot(pools.pid)) == KNOWN | {
        "db": (False, "db-is-a-lock"),
        "writer": (True, "config"),
    }
    page = tool.run("snapshot", "-p", pools.pid, "--format", "text").stdout
    assert "sem g_db_ready" in page.split("THREADS WAITING NOW")[1]
    assert "g_config_lock" not in page.split("THREADS WAITING NOW")[1]


@pytest.mark.parametrize("command", ["snapshot", "callers"])
def test_the_error_in_a_users_file_is_one_line(pools: Target, config: Path, command: str) -> None:
    config.write_text("idle fine\n\nidel wrong\n")
    done = tool.run(command, "-p", pools.pid)
    assert (done.returncode, done.stdout) == (2, "")
    wanted = f"locktop: {config}, line 3: 'idel' is neither idle nor contended\n"
    assert done.stderr == wanted


def test_the_threads_of_a_pool_are_one_group(pools: Target) -> None:
    document = tool.snapshot(pools.pid)
    groups = {group["name"]: group for group in document["thread_groups"]}
    assert set(groups) == {*(f"{pool}-#" for pool in KNOWN), "six_pools"}
    by_tid = {thread["tid"]: thread for thread in document["threads"]}
    assert sorted(tid for one in groups.values() for tid in one["threads"]) == sorted(by_tid)
    for pool, (idle, _) in KNOWN.items():
        group = groups[f"{pool}-#"]
        assert {pool_of(by_tid[tid]) for tid in group["threads"]} == {pool}
        assert (len(group["threads"]), group["idle"]) == (EACH, idle)
        waits = [by_tid[tid]["waiting_for"]["since_s"] for tid in group["threads"]]
        assert waits == sorted(waits, reverse=True)
        assert group["longest_s"] == waits[0]
        assert (group["lock"] is None) == (pool == "own")
    assert groups["accept-#"]["lock_name"] == "g_accept_lock"
    assert groups["accept-#"]["holders"] == [pools.pid]


def test_the_text_report_has_one_entry_for_a_group_and_idle_ones_on_demand(pools: Target) -> None:
    page = tool.run("snapshot", "-p", pools.pid, "--format", "text").stdout
    assert page.count("accept_one at") == 1
    assert f"{EACH} threads (accept-#: " in page
    assert "next_query" not in page
    whole = tool.run("snapshot", "-p", pools.pid, "--format", "text", "--idle").stdout
    idle = whole.split("THREADS WAITING FOR WORK NOW")[1]
    assert idle.count("next_query at") == 1
    assert f"{EACH} threads (own-#: " in " ".join(idle.split())


def test_new_rules_apply_to_a_saved_snapshot(pools: Target, tmp_path: Path) -> None:
    saved = tmp_path / "saved.json"
    saved.write_text(json.dumps(tool.snapshot(pools.pid)))

    def weighed(*options: str) -> tuple[set[str], set[str]]:
        done = tool.run("callers", str(saved), "--format", "json", "--idle", *options)
        assert done.returncode == 0, done.stderr
        nodes = json.loads(done.stdout)["nodes"]
        return (
            {node["function"] for node in nodes if node["value"] > 0},
            {node["function"] for node in nodes if node["idle"] > 0},
        )

    waited, idle = weighed()
    assert {"accept_one", "write_config"} <= waited
    assert {"take_turn", "next_query"} <= idle
    assert not waited & {"take_turn", "next_query"}
    waited, idle = weighed("--idle-matching", "!take_turn", "--idle-matching", "accept_one")
    assert {"take_turn", "write_config"} <= waited
    assert {"accept_one", "next_query"} <= idle


@pytest.mark.parametrize(
    ("first_value", "holder", "state", "why"),
    [
        ("e=1", "get e, post e, get e, meet 1, stay", "waiting", "used-as-lock"),
        ("e=0", "post e, get e, meet 1, stay", "idle", "semaphore"),
        ("e=1", "get e, meet 1, stay", "idle", "semaphore"),  # no thread has ever posted
    ],
)
def test_a_semaphore_used_as_a_lock_is_contention(
    start_target: StartTarget, first_value: str, holder: str, state: str, why: str
) -> None:
    target = start_target("scripted_threads", first_value, holder, "meet 1, get e")
    waiter = int(target.truth()["tids"][1])

    def waits(document: dict[str, Any]) -> bool:
        return any(one["tid"] == waiter and one["waiting_for"] for one in document["threads"])

    document = tool.scan_until(target.pid, waits, "a waiter")
    thread = tool.thread_of(document, waiter)
    assert (thread["state"], thread["waiting_for"]["why"]) == (state, why)
    (lock,) = (one for one in document["locks"] if one["id"] == thread["waiting_for"]["lock"])
    assert (lock["used_as_lock"], lock["idle"]) == (state == "waiting", state == "idle")


PYTHON_WAITS = """
import os, queue, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
lock = threading.Lock(); lock.acquire()
event, tasks, done = threading.Event(), queue.Queue(), threading.Condition()
def take(): lock.acquire()
def rest():
    with done: done.wait()
started = {}
def start(name, target):
    thread = threading.Thread(target=target, daemon=True); thread.start()
    started[thread.native_id] = name
start("lock", take)
start("event", event.wait)
start("queue", tasks.get)
start("condition", rest)
pool = ThreadPoolExecutor(1)
started[pool.submit(threading.get_native_id).result()] = "pool"
def asleep(tid):
    with open(f"/proc/self/task/{tid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] == "S"
while not all(map(asleep, started)): time.sleep(0.01)
import json
print(json.dumps(started), flush=True)
sys.stdin.read()
os._exit(0)
"""


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="its locks do not use libc")
def test_python_functions_decide_whether_a_wait_is_idle() -> None:
    with Target([sys.executable, "-c", PYTHON_WAITS], preload_environment("contended")) as target:
        names = {int(tid): name for tid, name in target.truth().items()}
        wanted = {
            "lock": (False, "python-lock"),
            "event": (True, "python-condition"),
            "queue": (True, "python-condition"),
            "condition": (True, "python-condition"),
            "pool": (True, "python-queue"),
        }

        def verdicts_by_name(document: dict[str, Any]) -> dict[str, tuple[bool, str]]:
            return {
                names[one["tid"]]: (one["waiting_for"]["idle"], one["waiting_for"]["why"])
                for one in document["threads"]
                if one["tid"] in names and one["waiting_for"]
            }

        # A thread may sleep for the interpreter lock first.
        tool.scan_until(
            target.pid, lambda document: verdicts_by_name(document) == wanted, "these verdicts"
        )


PYTHON_AT_EXIT = """
import sys, threading
def stay():
    print('{"ready": true}', flush=True)
    sys.stdin.read()
threading.Thread(target=stay).start()
"""


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="its locks do not use libc")
def test_a_main_thread_that_waits_for_the_others_at_its_end_is_idle() -> None:
    with Target([sys.executable, "-c", PYTHON_AT_EXIT], preload_environment("contended")) as target:
        target.truth()

        def main_waits(document: dict[str, Any]) -> bool:
            wait = tool.thread_of(document, target.pid)["waiting_for"]
            return wait is not None and wait["why"] == "python-condition" and bool(wait["idle"])

        document = tool.scan_until(target.pid, main_waits, "an idle wait for the other thread")
        awaited = tool.thread_of(document, target.pid)["waiting_for"]["lock"]
        (lock,) = (one for one in document["locks"] if one["id"] == awaited)
        assert (lock["idle"], lock["used_as_lock"]) == (True, False)


PYTHON_TURNS = """
import json, sys, threading, time
for _ in range(64):  # each leaves memory of a lock that another thread released
    done = threading.Condition()
    def tell():
        with done: done.notify()
    with done:
        threading.Thread(target=tell).start()
        done.wait()
def turns(lock):
    while True:
        with lock: time.sleep(0.02)
at_rest = 0
def rest():
    global at_rest
    with done:
        at_rest += 1
        done.wait()
def all_rest():
    with done: return at_rest == 4
def start(target, *arguments):
    thread = threading.Thread(target=target, args=arguments, daemon=True)
    thread.start()
    return thread.native_id
locks = [threading.Lock() for _ in range(24)]
busy = [start(turns, lock) for lock in locks for _ in range(2)]
resting = [start(rest) for _ in range(4)]
while not all_rest(): time.sleep(0.01)
print(json.dumps({"busy": busy, "resting": resting}), flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="its locks do not use libc")
def test_a_python_lock_at_the_address_of_an_old_one_is_contended() -> None:
    environment = preload_environment("contended")
    with Target([sys.executable, "-c", PYTHON_TURNS], environment) as target:
        tids = target.truth()
        deadline = time.monotonic() + PATIENCE_S
        found: set[int] = set()  # ids
        with closing(attach(target.pid)) as source:
            while not found:
                assert time.monotonic() < deadline
                seen = source.scan()
                waits = {t.tid: t.waiting_for.lock for t in seen.threads if t.waiting_for}
                as_locks = {lock.id for lock in seen.locks if lock.used_as_lock}
                again = {lock.id for lock in seen.locks if lock.generation}
                found = {waits[tid] for tid in tids["busy"] if tid in waits} & as_locks & again
                rest = {waits[tid] for tid in tids["resting"] if tid in waits}
                assert not rest & as_locks, "a wait for a notification is idle"


PYTHON_BRIEF = """
import json, queue, sys, threading, time
lock, done, tasks = threading.Lock(), threading.Condition(), queue.Queue()
def turns():
    while True:
        with lock: time.sleep(0.002)
def notified():
    with done:
        while True: done.wait()
def notify():
    while True:
        with done: done.notify_all()
        tasks.put(1); tasks.put(1)
        time.sleep(0.002)
def take():
    while True: tasks.get()
def start(target, count):
    threads = [threading.Thread(target=target, daemon=True) for _ in range(count)]
    for thread in threads: thread.start()
    return [thread.native_id for thread in threads]
busy, others = start(turns, 3), start(notified, 2) + start(take, 2)
start(notify, 1)
print(json.dumps({"busy": busy, "others": others}), flush=True)
sys.stdin.read()
"""


def _has_symbol(pid: int, symbol: str) -> bool:
    """Return whether a Python program has a symbol, in its own file or in libpython."""
    mapped = {line.split()[-1] for line in Path(f"/proc/{pid}/maps").read_text().splitlines()}
    files = [Path(name) for name in mapped if "python" in Path(name).name]
    return any(symbol.encode() in file.read_bytes() for file in files if file.exists())


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="its locks do not use libc")
def test_a_lock_for_which_threads_wait_too_briefly_for_python_functions_is_contended() -> None:
    with Target([sys.executable, "-c", PYTHON_BRIEF], {}) as target:
        tids = target.truth()
        if not _has_symbol(target.pid, "lock_PyThread_acquire_lock"):
            pytest.skip("it is stripped")
        deadline = time.monotonic() + PATIENCE_S
        turns = set(tids["busy"])
        rules: dict[int, set[str]] = {}  # by lock
        users: dict[int, set[int]] = {}
        with closing(attach(target.pid)) as source:
            while not any("python-lock-shared" in found for found in rules.values()):
                assert time.monotonic() < deadline
                seen = source.scan()
                for tid, wait in ((t.tid, t.waiting_for) for t in seen.threads if t.waiting_for):
                    rules.setdefault(wait.lock, set()).add(seen.why[tid])
                    users.setdefault(wait.lock, set()).add(tid)
        (shared,) = (lock for lock, found in rules.items() if "python-lock-shared" in found)
        assert users[shared] <= turns


PYTHON_JOINS = """
import json, sys, threading
last = threading.Thread(target=sys.stdin.read)
last.start()
joining = [threading.Thread(target=last.join) for _ in range(3)]
for thread in joining: thread.start()
print(json.dumps([thread.native_id for thread in joining]), flush=True)
"""


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="its joins do not use a lock of libc")
def test_several_joins_of_one_python_thread_are_idle_without_the_library() -> None:
    """They wait for one lock, too, and only their Python functions tell them from others."""
    with Target([sys.executable, "-c", PYTHON_JOINS], {}) as target:
        tids = [int(tid) for tid in target.truth()]
        deadline = time.monotonic() + PATIENCE_S
        rules: dict[int, str] = {}
        with closing(attach(target.pid)) as source:
            while {rules.get(tid) for tid in tids} != {"python-condition"}:
                assert time.monotonic() < deadline, rules
                seen = source.scan(resolve=True)
                rules = dict(seen.why)
        assert not any(lock.used_as_lock for lock in seen.locks)


GIL = """
import sys, threading
def spin():
    while True: pass
for _ in range(3): threading.Thread(target=spin, daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("python", [sys.executable, "/usr/bin/python3"])
def test_the_interpreter_lock_is_contention(python: str) -> None:
    if not Path(python).exists():
        pytest.skip(f"{python} is not installed")
    with Target([python, "-c", GIL], preload_environment("contended")) as target:
        target.expect("ready")

        def waited(document: dict[str, Any]) -> bool:
            waits = [one["waiting_for"] for one in document["threads"]]
            return any(one and one["why"] == "python-gil" and not one["idle"] for one in waits)

        document = tool.scan_until(target.pid, waited, "a wait for the interpreter lock")
        conds = [lock for lock in document["locks"] if lock["kind"] == "cond"]
        assert any(not lock["idle"] and lock["wait_s"] > lock["idle_s"] for lock in conds)
