"""Compares predictions of `locktop whatif` with changes of real programs (docs/whatif.md).

    PYTHONPATH=tests .venv/bin/python bench/whatif_real.py [PROGRAM...]

The programs are in bench/whatif_programs/. The command predicts all changes of a program from one
recording under load. Then the program runs unchanged and with each change, in turns, without the
library. The truth of a change is the median ratio of the program's own counters.

Each refusal counts: of all changes of a program, or of a single one.

Debian packages: rocksdb-tools, libevent-dev, pigz, mariadb-server, sysbench,
libsqlite3-dev, g++, make, dpkg-dev, patch. Sources come from Debian, too. They are unpacked and
built in build/whatif/, or in the directory that LOCKTOP_BENCH_CACHE names.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from support import tool
from whatif_programs.base import BEGIN_S, RealChange, RealProgram
from whatif_programs.db_bench import LevelDB, RocksDB
from whatif_programs.mariadb import MariaDBServer
from whatif_programs.memcached import Memcached
from whatif_programs.pigz import Pigz
from whatif_programs.service import Service
from whatif_programs.sqlite import SQLite
from whatif_table import Result, Table

from locktop.collector.sources.launch import preload_environment

_PROGRAMS: tuple[type[RealProgram], ...] = (
    RocksDB,
    LevelDB,
    SQLite,
    Memcached,
    MariaDBServer,
    Pigz,
    Service,
)
_ROUNDS = 3
#: Real programs take many locks: the default ring would lose records.
_RING = {"LOCKTOP_RING": "65536"}


def predicted(program: RealProgram, changes: Sequence[RealChange]) -> dict[str, Any]:
    """Return the answer of the command for some changes of a program."""
    environment = {**preload_environment(None), **_RING}
    with program.running(program.base, environment) as run:
        time.sleep(BEGIN_S)
        options = ["--format=json", f"-d{program.recorded_s}"]
        for change in changes:
            subject = _address(run.pid, change) if change.is_of_lock() else change.subject
            options += [change.option, f"{subject}={change.amount}".removeprefix("=")]
        done = tool.run("whatif", "-p", run.pid, *options)
    if done.returncode not in (0, 3):
        raise SystemExit(f"{program.name}: {done.stderr}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def _address(pid: int, change: RealChange) -> str:
    """Return the address of the lock with a part of a name that threads take most often."""
    locks = [lock for lock in tool.snapshot(pid)["locks"] if change.subject in lock["name"]]
    if not locks:
        raise SystemExit(f"no lock has the name {change.subject}")
    most: dict[str, Any] = max(locks, key=lambda lock: lock["acquisitions"] or 0)
    return str(most["address"])


def truths(program: RealProgram, changes: Sequence[RealChange]) -> dict[str, float]:
    """Return the median ratio of the throughputs, of each change."""
    found: dict[str, list[float]] = {change.name: [] for change in changes}
    for number in range(_ROUNDS):
        order = list(changes)
        random.Random(number).shuffle(order)
        base = program.rate(program.base)
        for change in order:
            rate = program.rate({**program.base, **change.setting})
            found[change.name].append(rate / base)
    return {name: statistics.median(ratios) for name, ratios in found.items()}


def _with_truth(
    program: RealProgram, changes: Sequence[RealChange], answer: dict[str, Any]
) -> list[Result]:
    by_kind = {(one["kind"], one["amount"]): one for one in answer["predictions"]}
    answered = [change for change in changes if _key(change) in by_kind]
    truth = truths(program, answered)
    found = []
    for change in answered:
        one = by_kind[_key(change)]
        found.append(
            Result(
                program=program.name,
                change=change.name,
                predicted=one["ratio"],
                low=one["low"],
                high=one["high"],
                truth=truth[change.name],
            )
        )
    return found


def _key(change: RealChange) -> tuple[str, float]:
    return change.option.removeprefix("--"), float(change.amount)


def compare(program: RealProgram, table: Table) -> None:
    """Add the predictions and truths of a program, or the refusal, to the table."""
    answer = predicted(program, program.changes)
    note = _note(program, answer)
    for one in answer["refused"]:
        table.refuse(program.name, one["reason"], f"{one['text']}, {note}")
    if not answer["refusal"]:
        table.add(_with_truth(program, program.changes, answer), note)
    elif not answer["refused"]:
        table.refuse(program.name, answer["refusal"], note)


def _note(program: RealProgram, answer: dict[str, Any]) -> str:
    rounds, replayed = answer["throughput"]["per_s"], answer["replayed"]
    return f"{rounds:,.0f} rounds/s, replay {replayed:.3f}, truth in {program.unit}"


def main(names: Sequence[str]) -> None:
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    root = Path(__file__).resolve().parent.parent
    cache = Path(os.environ.get("LOCKTOP_BENCH_CACHE", root / "build" / "whatif"))
    cache.mkdir(parents=True, exist_ok=True)
    table = Table()
    for kind in _PROGRAMS:
        if not names or kind.name in names:
            program = kind()
            program.prepare(cache)
            compare(program, table)
    table.print_summary()


if __name__ == "__main__":
    main(sys.argv[1:])
