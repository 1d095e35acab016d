"""Where threads took the units of semaphores that they did not post."""

from __future__ import annotations

from msgspec.structs import replace

from locktop.collector.analysis import semaphore_ownership
from locktop.collector.model import Draft, TakenUnits, UnitTaker
from locktop.collector.native import lib
from locktop.collector.shm.unloaded_code import UnloadedCode
from locktop.collector.sources.preload.stack_table import StackFrames


def annotate(draft: Draft, frames: StackFrames, unloaded: UnloadedCode) -> bool:
    """Fill in who took the units of semaphores, and where; return whether there is any.

    Args:
        draft: A classified draft (``Lock.used_as_lock``).
        frames: The recorded stacks.
        unloaded: The code that the program unloaded.

    Raises:
        LocktopError: The file is damaged.
    """
    taken_units = semaphore_ownership.taken_units(draft)
    if not taken_units:
        return False
    unloaded.refresh()
    draft.locks = tuple(
        [
            replace(lock, taken_units=_locate(taken_units[lock.id], frames, unloaded))
            if lock.id in taken_units
            else lock
            for lock in draft.locks
        ]
    )
    return True


def _locate(taken: TakenUnits, frames: StackFrames, unloaded: UnloadedCode) -> TakenUnits:
    takers = [_set_site(taker, frames, unloaded) for taker in taken.takers]
    return replace(taken, takers=tuple(takers))


def _set_site(taker: UnitTaker, frames: StackFrames, unloaded: UnloadedCode) -> UnitTaker:
    """Add the call site of a stack, and remove a call site that may be of unloaded code."""
    if not taker.stack:
        return replace(taker, site=0) if unloaded.may_have_had(taker.site) else taker
    site = next(iter(frames.addresses(taker.stack)), 0)  # dlclose() flags the addresses of stacks
    return replace(taker, site=0 if site >> lib.LT_UNLOADED_BIT else site)
