"""MariaDB under sysbench: mutexes, conditions, rwlocks of libc, and futexes of its own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support import servers, tool, watched
from support.watched import Need

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
        # Those refused because of a deadlock between transactions were answered too.
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
