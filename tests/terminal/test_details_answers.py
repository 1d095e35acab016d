"""At 80x24 the first ten lines of the details say what is wrong, who, where, and what to do.

Each program waits as its incident says; one key opens the details of what the screen begins with.
"""

from __future__ import annotations

import itertools
import re
from contextlib import ExitStack

import pytest
from msgspec import Struct
from support import requirements
from support.pty_tool import PtyTool
from support.pythons import PYTHON, need_semaphores
from support.targets import TARGETS, Compiler, Target
from support.tool import COMMAND

from locktop.collector.sources.launch import preload_environment

LINES = 10


class Answer(Struct, frozen=True):
    """A program, and the patterns of the answer."""

    name: str
    target: tuple[str, ...]
    texts: tuple[str, ...]  # patterns of the first lines, with each break of a line as one blank
    is_prepared: bool = True


ANSWERS = (
    Answer(
        "two-locks-crossed",
        ("accounts_deadlock",),
        (
            "DEADLOCK: 2 threads wait for each other",
            r"deposit waits in transfer accounts_deadlock\.c:\d+ for mutex g_savings, held by wi",
            r"withdraw waits in transfer accounts_deadlock\.c:\d+ for mutex g_checking, held by d",
            "advice Take mutex g_",
            "end the process",
        ),
        is_prepared=False,
    ),
    Answer(
        "convoy",
        ("contention_patterns", "convoy"),
        (
            "Convoy: ",
            "advice Take the lock less often",
            r"waiters ▸ \d: marcher:\d+ .* in convoy contention_patterns\.c:\d+",
        ),
    ),
    Answer(
        "starved-writer",
        ("starved_update",),
        (
            "Starved writer: 1 writer waits",
            "prefer writers",
            r"held by .*query:\d+ .* at read_price starved_update\.c:\d+",
            r"waiters 1: prices .* in update_prices starved_update\.c:\d+",
        ),
    ),
    Answer(
        "lock-held-in-a-read",
        ("hot_index_lock",),
        (
            "Long hold: held for .* sleeps in read",
            "advice Make the call that sleeps before the lock is taken",
            r"held by indexer .* taken at rebuild_index hot_index_lock\.c:\d+",
            r"at read_index_page hot_index_lock\.c:\d+",
            r"waiters ▸ 24: request",
        ),
    ),
    Answer(
        "semaphore-without-units",
        ("semaphore_units_leaked",),
        (
            "DEADLOCK: 6 threads wait for sem g_slots",
            r"all 3 units taken in borrow_connection \(semaphore_units_leaked\.c:\d+\), not",
            "client:",
            "advice Post each unit of sem g_slots on every way out",
        ),
    ),
    Answer(
        "python-lock",
        ("orders_service.py",),
        (
            r"Lock in submit_order \(orders_service\.py:\d+\)",
            "Long hold: .* sleeps in recvfrom",
            "advice Make the call that sleeps before the lock is taken",
            r"held by .*\(charge_order\).* at ask_payment_provider orders_service\.py:\d+",
        ),
    ),
    Answer(
        "python-lock-bare",
        ("orders_service.py",),
        (
            r"Lock in submit_order \(orders_service\.py:\d+\)",
            r"Long wait: 4 threads wait, .*; probably behind Thread-1 .*, in recvfrom",
            "advice Make the call that sleeps before the lock is taken",
            r"held by probably .*\(charge_order\).* at ask_payment_provider orders_service\.py:\d+",
        ),
        is_prepared=False,
    ),
    Answer(
        "lock-held-in-a-read-bare",
        ("contention_patterns", "longhold"),
        (
            "g_lock",
            r"Long hold: held for .* sleeps in read",
            "advice Make the call that sleeps before the lock is taken",
            r"held by holder .* at long_hold contention_patterns\.c:\d+",
            r"waiters ▸ 2: waiter:",
        ),
        is_prepared=False,
    ),
    Answer(
        "convoy-bare",
        ("contention_patterns", "convoy"),
        (
            "g_lock",
            r"Contended: in \d+ of \d+ samples threads waited, up to \d at once",
            "advice Take the lock less often, do less while it is held",
            r"held by (marcher|not known)",
            r"waiters ▸ \d: marcher:\d+ .* in convoy contention_patterns\.c:\d+",
        ),
        is_prepared=False,
    ),
    Answer(
        "rust-bare",
        ("rust_journal",),
        (
            "Rust Mutex<Journal>",
            r"Contended: in \d+ of \d+ samples threads waited, up to \d at once",
            "advice Take the lock less often, do less while it is held",
            r"waiters ▸ \d: writer-\d.* in rust_journal::append rust_journal\.rs:\d+",
        ),
        is_prepared=False,
    ),
    Answer(
        "lost-wake-up",
        ("condition_waits_unsignalled",),
        (
            "g_lost cond",
            "No signal: 3 threads wait",
            "advice Find the thread that has to signal it",
            r"waiters ▸ 3: lost:.* in await_done condition_waits_unsignalled\.c:\d+",
        ),
    ),
)


def command_of(answer: Answer, compiler: Compiler) -> list[str]:
    """Return the command of a program."""
    name, *arguments = answer.target
    if name.endswith(".py"):
        need_semaphores(PYTHON)
        return [PYTHON, str(TARGETS / "incidents" / name)]
    if name.startswith("rust_"):
        requirements.command("rustc")
    return [str(compiler.program(name)), *arguments]


def first_lines(text: str) -> str:
    """Return the first lines of the details, each blank once; "" without details."""
    lines = text.splitlines()
    title = next((i for i, line in enumerate(lines) if line.startswith("▶ Details")), None)
    if title is None:
        return ""
    return re.sub(r"\s+", " ", " ".join(lines[title + 1 : title + 1 + LINES]))


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: answer.name)
def test_one_key_gives_the_answer(answer: Answer, compiler: Compiler) -> None:
    environment = preload_environment() if answer.is_prepared else {}
    with ExitStack() as stack:
        target = stack.enter_context(Target(command_of(answer, compiler), environment))
        assert target.line()
        tool = stack.enter_context(PtyTool([COMMAND, "-p", str(target.pid)], (80, 24)))
        # A list of locks has a row for the lock. A row that came later stands below others.
        tool.until(
            lambda text: re.search(answer.texts[0], re.sub(r"\s+", " ", text)) is not None,
            answer.texts[0],
        )
        tool.press("g" + "j" * row_of(answer.texts[0], tool.text))
        tool.press("\r")
        tool.until(
            lambda text: all(re.search(one, first_lines(text)) for one in answer.texts),
            str(answer.texts),
        )


def row_of(words: str, text: str) -> int:
    """The number of the row of the list with these words, from 0 on; 0 if none has them."""
    lines = [re.sub(r"\s+", " ", line) for line in text.split("\n")]
    head = next(number for number, line in enumerate(lines) if line.startswith(" LOCK "))
    rows = itertools.takewhile(lambda line: line and not line.startswith("─"), lines[head + 1 :])
    return next((number for number, row in enumerate(rows) if re.search(words, row)), 0)
