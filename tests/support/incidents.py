"""The incidents of the guide: a program, the keys of a user, and the answer on the screen."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Struct

from locktop.collector.sources.launch import preload_environment
from support.pythons import PYTHON, need_semaphores
from support.targets import TARGETS, Compiler, Target


class Incident(Struct, frozen=True):
    """One incident."""

    name: str
    target: str  # a name of tests/targets/incidents; a Python program ends in .py
    is_prepared: bool  # whether the program runs with the library
    headline: str  # a part of the line that the user reads first
    keys: tuple[str, ...]  # Textual's names, from `locktop -p PID` on
    #: Texts of the screen of 80x24, each of which must be there: the answer.
    answer: tuple[str, ...]


INCIDENTS = (
    Incident(
        "hot-lock",
        "hot_index_lock",
        True,
        "g_index_lock",
        ("enter", "enter"),
        ("indexer  thread", "in read(", "g_index_lock", "rebuild_index", "hot_index_lock.c:"),
    ),
    Incident(
        "deadlock",
        "accounts_deadlock",
        False,
        "DEADLOCK",
        ("d",),
        ("DEADLOCK", "deposit", "withdraw", "g_savings", "g_checking", "accounts_deadlock.c:"),
    ),
    Incident(
        "starved-writer",
        "starved_update",
        True,
        "g_catalog",
        ("4",),
        ("STARVED", "g_catalog", "query", "read_price starved_update.c:"),
    ),
    Incident(
        "python",
        "orders_service.py",
        True,
        "submit_order",
        ("enter", "enter"),
        ("recv", "ask_payment_provider", "orders_service.py:"),
    ),
)


def need_answer(incident: Incident) -> None:
    """Skip a test whose answer is the holder of a Python lock that has no owner."""
    if incident.target.endswith(".py"):
        need_semaphores(PYTHON)


@contextmanager
def started(incident: Incident, compiler: Compiler) -> Iterator[Target]:
    """Start the program of an incident, and wait until the incident is there."""
    if incident.target.endswith(".py"):
        command = [PYTHON, str(TARGETS / "incidents" / incident.target)]
    else:
        command = [str(compiler.program(incident.target))]
    environment = preload_environment() if incident.is_prepared else {}
    with Target(command, environment) as target:
        target.expect("ready")
        yield target
