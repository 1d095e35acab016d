"""Incidents that two keys solve over SSH on a terminal of 80x24."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from msgspec import Struct

from locktop.collector.sources.launch import preload_environment
from support import requirements, servers
from support.eventually import until
from support.pythons import PYTHON
from support.targets import TARGETS, Compiler, Target
from support.tool import COMMAND


class Host(Struct, frozen=True):
    """Where the program of an incident runs."""

    compiler: Compiler
    directory: Path  # empty, for the files of the program


#: Starts a program, and yields the arguments with which a user starts locktop.
Start = Callable[[Host], contextlib.AbstractContextManager[list[str]]]


class RemoteIncident(Struct, frozen=True):
    """One incident."""

    name: str
    start: Start
    #: A part of the screen that the user reads first.
    sign: str
    keys: tuple[str, ...]
    #: Regular expressions of the last screen with single blanks: lock, holder, what the holder
    #: does, file and line, and what to do.
    answer: tuple[str, ...]
    #: The same of the screen without a key, where the last one is about something else.
    before: tuple[str, ...] = ()
    #: A refusal on a busy machine that says to try again; then the user presses the last key again.
    refusal: str = ""
    #: Whether it needs a package that is too large for CI.
    is_big: bool = False


def _target(
    name: str, *arguments: str, prepared: bool = True, flags: tuple[str, ...] = ()
) -> Start:
    """A C target that says "ready", or the truth, when the incident is there."""

    @contextlib.contextmanager
    def start(host: Host) -> Iterator[list[str]]:
        program = host.compiler.program(name, *flags)
        environment = preload_environment() if prepared else {}
        with Target([program, *arguments], environment) as target:
            assert target.line()
            yield ["-p", str(target.pid)]

    return start


def _python(prepared: bool) -> Start:
    @contextlib.contextmanager
    def start(_: Host) -> Iterator[list[str]]:
        command = [PYTHON, str(TARGETS / "incidents" / "orders_service.py")]
        with Target(command, preload_environment() if prepared else {}) as target:
            target.expect("ready")
            yield ["-p", str(target.pid)]

    return start


@contextlib.contextmanager
def _stall_that_is_over(host: Host) -> Iterator[list[str]]:
    program = host.compiler.program("long_wait_on_request")
    with Target([program], preload_environment()) as target:
        target.expect("ready")
        target.go_on("2000")
        assert float(target.line()) >= 2.0
        yield ["-p", str(target.pid)]


@contextlib.contextmanager
def _replay(host: Host) -> Iterator[list[str]]:
    file = host.directory / "night.ltrec"
    with _target("hot_index_lock")(host) as process:
        record = [COMMAND, "record", *process, "-d", "3", "-o", str(file)]
        subprocess.run(record, check=True, capture_output=True)
    yield ["replay", str(file)]


@contextlib.contextmanager
def _db_bench(host: Host) -> Iterator[list[str]]:
    command = [str(requirements.command("db_bench", "rocksdb-tools"))]
    command += ["--benchmarks=fillrandom"]
    command += ["--sync=1", "--threads=12", "--num=1000000000", f"--db={host.directory}/db"]
    with Target(command, preload_environment()) as target:
        yield ["-p", str(target.pid)]


@contextlib.contextmanager
def _mariadb(host: Host, level: str | None) -> Iterator[list[str]]:
    """Updates behind FLUSH TABLES WITH READ LOCK of a client that sends nothing more."""
    server = servers.MariaDB(host.directory, requirements.command)
    with servers.running(server.command, level, server.answers) as process:
        server.ask("create database d; create table d.t (id int primary key, n int)")
        with contextlib.ExitStack() as clients:
            reader = clients.enter_context(server.session())
            reader.go_on("flush tables with read lock; select 'locked';")
            reader.expect("locked")
            for number in range(6):
                client = clients.enter_context(server.session())
                client.go_on(f"update d.t set n = {number} where id = 1;")
            query = "select count(*) from information_schema.processlist where state like '%lock'"
            until(lambda: server.ask(query) == [["6"]], "six updates that wait")
            yield ["-p", str(process.pid)]


#: The client that has the lock of all tables sends nothing. So its connection is the only one of
#: the server that does not wait.
_MARIADB = (
    r"signaller likely mariadbd:\d+, the only thread in handle_one_connection that does not wait",
    r"likely behind mariadbd:\d+, in poll at vio_io_wait \[mariadbd\]",
    r"; now in poll\(\d+ -> unix",
    r"advice Look at mariadbd:\d+ first \(Enter\)",
)

INCIDENTS = (
    RemoteIncident(
        "db_bench",
        _db_bench,
        "AwaitState",
        ("enter",),
        # On a disk that syncs at once, the leader of the writers is seldom in the call itself.
        (
            r"cond in rocksdb::WriteThread::BlockingAwaitState",
            r"Contended: (\d+ threads wait, the longest|1 thread waits) \S+,",
            r",( together)? \S+ a second; likely behind db_bench:\d+, (running|in \w+)",
            r"only thread [\w: ]*that does not wait; now (running|in \w+)",
            r"at (rocksdb::[\w:]+ \[librocksdb|librocksdb\S+\+0x|db_bench\+0x)",
            r"advice Look at db_bench:\d+ first \(Enter\): see what it does before it signals it",
        ),
    ),
    RemoteIncident(
        "ab-ba-bare",
        _target("accounts_deadlock", prepared=False),
        "DEADLOCK",
        ("enter",),
        (
            "deposit waits for g_savings, held by withdraw",
            "withdraw waits for g_checking, held by deposit",
            r"deposit waits in transfer accounts_deadlock\.c:18 for mutex g_savings",
            r"withdraw waits in transfer accounts_deadlock\.c:18 for mutex g_checking",
            # Either order is right; the thread that waits for the shorter time is asked to change.
            "Take mutex g_(savings, then mutex g_checking|checking, then mutex g_savings)"
            " in every thread",
        ),
    ),
    RemoteIncident(
        "python",
        _python(prepared=True),
        "submit_order",
        ("enter",),
        (
            r"Lock in submit_order \(orders_service\.py:29\)",
            r"Long hold: held for (at least )?\S+ m?s by Thread-1 \(charge_order\) \(\d+\)",
            r"which sleeps in recvfrom\(3 -> unix socket \d+\) now; 4 threads wait for it",
            r"held by Thread-1 \(charge_order\) .* at ask_payment_provider orders_service\.py:18",
            r"in submit_order orders_service\.py:29",
            r"advice Make the call that sleeps before the lock is taken or after it is released",
        ),
    ),
    RemoteIncident(
        "python-bare",
        _python(prepared=False),
        "submit_order",
        ("enter",),
        (
            r"Lock in submit_order \(orders_service\.py:29\)",
            r"Long wait: 4 threads wait, the longest >\S+[,;] .*probably behind Thread-1 \(",
            r"now in recvfrom\(3",
            r"at ask_payment_provider orders_service\.py:18",
            r"Make the call that sleeps before the lock is taken or after it is released",
        ),
    ),
    RemoteIncident(
        "convoy",
        _target("contention_patterns", "convoy"),
        "CONVOY",
        (),
        # A convoy has no holder for most of the time: its waiters are on their way to a CPU.
        (
            r"g_lock mutex",
            r"Convoy: \d+ threads wait; .* no thread held it for \d+ % of that time; a hold takes",
            r"in convoy contention_patterns\.c:\d+",
            r"advice Take the lock less often and do more each time",
        ),
    ),
    RemoteIncident(
        "starved-writer",
        _target("starved_update"),
        "STARVED",
        (),
        (
            r"g_catalog",
            r"held by query:\d+ reads it for \S+, taken at read_price starved_update\.c:18",
            r"starved_update\.c:18; now \w+",
            r"prices \S+, in update_prices starved_update\.c:\d+",
            r"Starved writer: 1 writer waits",
            r"advice Make the lock prefer writers",
        ),
    ),
    RemoteIncident(
        "stall-over",
        _stall_that_is_over,
        "Quiet now. 1 long wait",
        (),
        (
            r"g_cache_lock mutex",
            r"Long wait, over: worker waited 2\.\d\ds for it, until \S+ ago",
            r"behind long_wait_on_re, which took it at cache_reload long_wait_on_request\.c:46",
            r"the longest hold of all took 2\.\d\ds",
            r"advice Do less while it is held",
        ),
    ),
    RemoteIncident(
        "mariadb",
        partial(_mariadb, level="contended"),
        "6 wait",
        (),
        (r"cond made in MDL_context::MDL_context", *_MARIADB),
        is_big=True,
    ),
    RemoteIncident(
        "mariadb-bare",
        partial(_mariadb, level=None),
        "6 wait",
        (),
        (r"cond in MDL_wait::timed_wait", r"Long wait: 6 threads wait", *_MARIADB),
        is_big=True,
    ),
    RemoteIncident(
        "replay",
        _replay,
        "g_index_lock",
        ("}", "enter"),
        (
            r"g_index_lock mutex",
            r"held by indexer \(\d+\) for \S+, taken at rebuild_index hot_index_lock\.c:22",
            r"; now in read\(3 -> pipe:\[\d+\]\) .* at read_index_page hot_index_lock\.c:17",
            r"in serve_request hot_index_lock\.c:31",
            r"advice Make the call that sleeps before the lock is taken or after it is released",
        ),
    ),
    RemoteIncident(
        "what-if",
        _target("lock_rounds", "4:L1,c2000,U,c1000", flags=("-lm",)),
        "mutexes",
        ("U", "enter"),
        (
            r"\+\d+ % \+\d+ to \+\d+ % \+\d+ % lock_rounds\.c: mutexes\[1\]: hold half as",
            r"replay [+-]\d+ % without a change",
        ),
        before=(
            r"lock_rounds\.c: mutexes\[1\] mutex",
            r"held by group0-\d \(\d+\) for \S+, taken at take lock_rounds\.c:\d+; now \w+",
        ),
        refusal="try again in a steady minute",
    ),
    RemoteIncident(
        "300-threads",
        _target("pool_behind_index", "semaphore"),
        "299 threads behind it",
        (),
        (
            r"g_index_lock mutex",
            r"held by loader \(\d+\) for \S+, taken at load_index pool_behind_index\.c:44",
            r"; now in read\(3 -> pipe:\[\d+\]\) .* at load_index pool_behind_index\.c:46",
            r"291 more behind these, in find_in_index pool_behind_index\.c:60",
            r"advice Make the call that sleeps before the lock is taken or after it is released",
        ),
    ),
)
