"""Types of fields that the objects of a snapshot's document share (snapshot_document.py)."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, field


class Address(int):
    """An address of 64 bits, which the document has as a hexadecimal text."""


class IdKey(int):
    """The number of a stack, a lock or a thread as a key: the document has a decimal text."""


def meaning(sentence: str, **schema: Any) -> Meta:
    """Return the description of a key in plain English."""
    return Meta(description=sentence, extra_json_schema=schema or None)


Count = Annotated[int, Meta(ge=0)]
#: Seconds, or a share of an interval, or a rate.
Number = float
Tid = Annotated[int, Meta(ge=0)]
LockId = Annotated[int, Meta(ge=0)]
StackId = Annotated[int, Meta(ge=0)]
#: A factory, for the JSON Schema cannot write a default of a type of our own.
NO_ADDRESS: Any = field(default_factory=Address)
STACK = meaning('The number of a stack in "stacks"; 0: not known.')
SITE = meaning('The return address of the call; "sites" may have its frame.')
LOWER_BOUND = meaning("The time is a lower bound: the wait began before locktop first observed it.")
UNHELD_WAIT = meaning("Of wait_s, the seconds with no known holder: mostly woken, not yet running.")
WAIT_P50 = meaning("Seconds that half of the waits in contended did not exceed.")
WAIT_P99 = meaning("Seconds that 99 of 100 waits in contended did not exceed.")
HOLD_P50 = meaning("Seconds that half of the holds in hold_timed did not exceed.")
HOLD_P99 = meaning("Seconds that 99 of 100 holds in hold_timed did not exceed.")
WAIT_MAX_BOUND = meaning("wait_max_s is a lower bound, as of each sampled lock.")
IDLE_LOCK = meaning("All known waits were idle waits.")
SHARE_OF_INTERVAL = {"minimum": 0, "maximum": 1}
