"""A snapshot with waits that samples divide among two Python functions."""

from __future__ import annotations

from msgspec.structs import replace
from unit.builders import records, scenarios

from locktop.collector.model import Frame, PythonShare, Snapshot, WaitStack

LOCK, NATIVE, PRICE, REFUND = 91, 900, 901, 902


def _stack(*functions: str, module: str = "python") -> tuple[Frame, ...]:
    begins = Frame(1, "begins", None, None, "libc.so.6", 1)
    return (*(Frame(2, name, f"{name}.py", 3, module, 0) for name in functions), begins)


STACKS = {
    NATIVE: _stack("takes", "evaluates", module="x"),
    PRICE: _stack("price", "serve"),
    REFUND: _stack("refund", "serve"),
}
#: Of 100 samples 60 met one function, 20 the other one, and 20 were not read.
SHARES = PythonShare(PRICE, 60, 30), PythonShare(NATIVE, 20, 20), PythonShare(REFUND, 20, 10)


def divided() -> Snapshot:
    """Return a snapshot with one lock, at which threads waited for 100 seconds."""
    lock = replace(
        records.lock(LOCK, "g_orders"),
        acquisitions=500,
        contended=400,
        wait_s=100.0,
        wait_stacks=(WaitStack(NATIVE, 400, 100.0, False, SHARES),),
    )
    return replace(scenarios.normal(), locks=(lock,), stacks=STACKS, deadlocks=(), notes=())
