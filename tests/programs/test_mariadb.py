"""MariaDB under sysbench: mutexes, conditions and rwlocks of libc, and futexes of InnoDB."""

from __future__ import annotations

import re
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from support import servers, tool, unprepared, watched
from support.targets import PATIENCE_S
from support.watched import Need

from locktop.collector.model import Kind

pytestmark = pytest.mark.big

ROWS, TRANSACTIONS = 1000, 1000


def figure(output: str, name: str) -> int:
    found = re.search(rf"{name}: +(\d+)", output)
    assert found, output
    return int(found[1])


@pytest.mark.parametrize("level", [None, "contended", "all"])
def test_each_query_is_answered(level: str | None, need: Need, tmp_path: Path) -> None:
    server = servers.MariaDB(tmp_path, need)
    with servers.running(server.command, level, server.answers) as process:
        server.ask("create database sbtest")
        server.sysbench(f"--table-size={ROWS}", "prepare")
        before = {name: int(count) for name, count in server.ask("show global status like 'Com_%'")
                  if count.isdigit()}  # fmt: skip
        load = [f"--table-size={ROWS}", f"--events={TRANSACTIONS}", "--threads=16", "--time=0"]
        said = server.sysbench(*load, "run")
        after = dict(server.ask("show global status like 'Com_%'"))
        assert figure(said, "transactions") == TRANSACTIONS
        assert int(after["Com_commit"]) - before["Com_commit"] == TRANSACTIONS
        # The server also answered queries that it refused because of a deadlock of transactions.
        sent = figure(said, "queries") + figure(said, "ignored errors")
        answered = int(after["Com_stmt_execute"]) - before["Com_stmt_execute"]
        assert answered == sent
        for table in (1, 2):
            assert server.ask(f"select count(*) from sbtest.sbtest{table}") == [[str(ROWS)]]
            ((_, _, _, verdict),) = server.ask(f"check table sbtest.sbtest{table} extended")
            assert verdict == "OK"
        if level is None:
            return
        document = watched.checked(tool.snapshot(process.pid))
    assert len(document["threads"]) > 5
    assert watched.total(document, "acquisitions", "mutex") > TRANSACTIONS
    assert watched.total(document, "wait_s", "futex") > 0, "InnoDB's own"
    assert watched.total(document, "wait_s", "cond") > 0


#: The queries of the sessions, one after the other, with the state of each in the server. The first
#: session holds all that the others want.
HELD = "begin; update t set n = 1 where id = 1; select get_lock('name', 0)"
WANTED = {
    "update t set n = 2 where id = 1; select 'done'": "Updating",
    "select get_lock('name', 600)": "User lock",
    "flush tables with read lock; unlock tables; select 'done'": "Waiting for backup lock",
}


def thread_in(server: servers.MariaDB, state: str) -> int:
    """Wait until the server has a query in ``state``; return the tid of its thread."""
    query = f"select tid from information_schema.processlist where state = '{state}'"
    deadline = time.monotonic() + PATIENCE_S
    while not (found := server.ask(query)):
        assert time.monotonic() < deadline, server.ask("show processlist")
    ((tid,),) = found
    return int(tid)


def test_scans_without_the_library(need: Need, tmp_path: Path) -> None:
    """The sampling source scans under load, and with queries that wait for each other."""
    server = servers.MariaDB(tmp_path, need)
    with ExitStack() as stack:
        process = stack.enter_context(servers.running(server.command, None, server.answers))
        server.ask("create database sbtest")
        server.sysbench(f"--table-size={ROWS}", "prepare")
        load = [f"--table-size={ROWS}", f"--events={TRANSACTIONS}", "--threads=16", "--time=0"]
        said, snapshots = unprepared.scans_while(process.pid, lambda: server.sysbench(*load, "run"))
        assert figure(said, "transactions") == TRANSACTIONS
        assert len(snapshots) > 1
        for table in (1, 2):
            ((_, _, _, verdict),) = server.ask(f"check table sbtest.sbtest{table} extended")
            assert verdict == "OK"

        server.ask("create table sbtest.t (id int primary key, n int)")
        server.ask("insert into sbtest.t values (1, 0)")
        first, *others = (stack.enter_context(server.session()) for _ in (HELD, *WANTED))
        first.go_on(f"use sbtest; {HELD};")
        first.expect("1")
        waiting = {}
        for session, (query, state) in zip(others, WANTED.items(), strict=True):
            session.go_on(f"use sbtest; {query};")
            waiting[state] = thread_in(server, state)
        seen = unprepared.scan_until(process.pid, unprepared.all_wait(waiting.values()))
        for state, tid in waiting.items():
            wait = unprepared.wait_of(seen, tid)
            assert wait is not None
            assert (wait.kind, wait.holders) == (Kind.COND, ()), state
            assert seen.why[tid].startswith("mariadb-statement"), state
        assert seen.deadlocks == ()
        kinds = unprepared.beside_gdb(process.pid, need("gdb"), tmp_path)
        assert kinds[Kind.COND] >= len(WANTED)
        first.go_on("commit; select release_lock('name');")
        first.expect("1")
        assert sorted(session.line() for session in others) == ["1", "done", "done"]
        assert server.ask("select n from sbtest.t") == [["2"]]
